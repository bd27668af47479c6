//! Real conversations of every form, and how many there are.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use chat_memory::{Content, Message, Role};

use super::{conversations, messages, refused};
use crate::import::{Archive, Conversation, Format, read};

/// The folder with them; without it a test is skipped, where that is allowed.
fn real_data() -> Option<PathBuf> {
    let place = std::env::var_os("CHAT_MEMORY_TEST_DATA").map(PathBuf::from);
    let place = place.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    if place.is_dir() {
        return Some(place);
    }
    let reason = "no real conversations; name their folder in CHAT_MEMORY_TEST_DATA";
    assert!(std::env::var_os("CHAT_MEMORY_TEST_REQUIRE").is_none(), "nothing may be skipped here: {reason}");
    println!("skipped: {reason}");
    None
}

/// A file, read without being told its form, and the same when told.
fn imported(name: &str, format: Format) -> Option<Archive> {
    let text = fs::read_to_string(real_data()?.join(name)).unwrap();
    let archive = read(name, &text, None).unwrap();
    assert_eq!(archive.format, format, "{name}");
    let told = read(name, &text, Some(format)).unwrap();
    assert_eq!(format!("{archive:?}"), format!("{told:?}"));
    Some(archive)
}

/// All conversations of a file of which nothing is refused.
fn all(name: &str, format: Format) -> Option<Vec<Conversation>> {
    let archive = imported(name, format)?;
    assert!(refused(&archive).is_empty(), "{name}: {:?}", refused(&archive));
    Some(conversations(archive))
}

fn count(all: &[Conversation]) -> (usize, usize) {
    (all.len(), all.iter().map(|one| messages(one).len()).sum())
}

fn said(all: &[Conversation]) -> impl Iterator<Item = &Message> {
    all.iter().flat_map(messages)
}

/// How many calls have no result, and how many results no call, by ids.
fn unpaired(all: &[Conversation]) -> (usize, usize) {
    let (mut calls, mut results) = (0, 0);
    for one in all {
        let mut open: Vec<&str> = Vec::new();
        for message in messages(one) {
            open.extend(message.tool_calls().map(|call| call.id.as_str()));
            for result in message.tool_results() {
                match open.iter().position(|id| *id == result.call_id) {
                    Some(place) => _ = open.remove(place),
                    None => results += 1,
                }
            }
        }
        calls += open.len();
    }
    (calls, results)
}

#[test]
fn openai_chat() {
    let Some(all) = all("openai-chat/airline.json", Format::OpenAi) else { return };
    assert_eq!(count(&all), (200, 5_308));
    assert_eq!(all.iter().map(|one| messages(one).len()).max(), Some(62));
    assert_eq!((all[0].id.as_str(), all[199].id.as_str()), ("airline/0", "airline/199"));
    assert!(all.iter().all(|one| one.notes.is_empty()));
    assert_eq!(unpaired(&all), (0, 0));
    let last_is_result = |one: &&Conversation| messages(one).last().unwrap().role() == Role::Tool;
    assert_eq!(all.iter().filter(last_is_result).count(), 51);
    assert_eq!(messages(&all[0])[0].metadata().get("openai").unwrap()["conversation"]["task_id"], 0);
}

#[test]
fn sharegpt() {
    let Some(plain) = all("sharegpt/fastchat-dummy_conversation.json", Format::ShareGpt) else { return };
    assert_eq!((count(&plain), plain[0].id.as_str()), ((500, 2_000), "identity_0"));
    let english = all("sharegpt/glaive_toolcall_en_demo.json", Format::ShareGpt).unwrap();
    assert_eq!((count(&english), unpaired(&english)), ((300, 1_914), (0, 0)));
    let chinese = all("sharegpt/glaive_toolcall_zh_demo.json", Format::ShareGpt).unwrap();
    // Two answers to what nobody asked, which are kept.
    assert_eq!((count(&chinese), unpaired(&chinese)), ((300, 1_880), (0, 2)));
    for one in [197, 293] {
        let unasked = messages(&chinese[one]).iter().flat_map(Message::tool_results);
        assert_eq!(unasked.filter(|result| result.call_id.starts_with("unasked")).count(), 1);
    }
    let preferences = all("sharegpt/dpo_zh_demo.json", Format::ShareGpt).unwrap();
    assert_eq!(count(&preferences), (300, 664));
    assert!(preferences.iter().all(|one| one.notes.len() == 1));
    let reasoning = all("sharegpt/reason_tool_use_demo_50.jsonl", Format::ShareGpt).unwrap();
    assert_eq!(count(&reasoning), (50, 274));
    let parts = || said(&reasoning).flat_map(Message::content);
    assert_eq!(parts().filter(|part| matches!(part, Content::Reasoning(_))).count(), 112);
    assert_eq!(parts().filter(|part| matches!(part, Content::ToolCall(_))).count(), 68);
    assert!(parts().all(|part| !matches!(part, Content::Opaque(_))));
}

#[test]
fn agent_jsonl() {
    let Some(all) = all("agent-jsonl/large-session.jsonl", Format::Pi) else { return };
    assert_eq!((count(&all), all[0].id.as_str()), ((1, 914), "d703a1a9-1b7b-4fb1-b512-c9738b1fe617"));
    assert_eq!(unpaired(&all), (18, 0));
    // The line that begins the session is none of the 1,019 that is left out.
    assert!(all[0].notes[0].contains("104 times"), "{:?}", all[0].notes);
    assert!(said(&all).all(|message| message.created_at().is_some()));
    assert!(said(&all).flat_map(Message::content).all(|part| !matches!(part, Content::Opaque(_))));
}

#[test]
fn swe_agent() {
    let files = [("ctf_crypto_BabyTimeCapsule", 19), ("ctf_web_i_got_id_demo", 43), ("function_calling_simple", 12)];
    for (name, length) in files {
        let Some(all) = all(&format!("swe-agent/{name}.traj"), Format::OpenAi) else { return };
        assert_eq!((count(&all), all[0].id.as_str()), ((1, length), name));
        assert_eq!(unpaired(&all), (0, 0));
    }
    let all = all("swe-agent/function_calling_simple.traj", Format::OpenAi).unwrap();
    assert_eq!(said(&all).flat_map(Message::tool_results).count(), 5);
}

/// All 46 lines: 38 messages, 3 titles, and 5 that are no lines of a session.
#[test]
fn claude_code() {
    let mut lines = 0;
    for (name, sessions, lost, titles) in [
        ("edge_cases", &[("edge_cases", 12), ("todowrite_session", 1)][..], &[11, 13, 14, 15, 16][..], 1),
        ("representative_messages", &[("test_session", 11)], &[], 1),
        ("session_b", &[("session_b", 3)], &[], 0),
        ("todowrite_examples", &[("todowrite_session", 11)], &[], 1),
    ] {
        let Some(archive) = imported(&format!("claude-code/{name}.jsonl"), Format::ClaudeCode) else { return };
        assert_eq!(refused(&archive).iter().map(|refused| refused.line).collect::<Vec<_>>(), lost);
        let all = conversations(archive);
        let shape: Vec<_> = all.iter().map(|one| (one.id.as_str(), messages(one).len())).collect();
        assert_eq!(shape, sessions);
        assert_eq!(all.iter().filter(|one| one.title.is_some()).count(), titles);
        assert!(said(&all).all(|message| message.created_at().is_some() && message.id().is_some()));
        lines += count(&all).1 + lost.len() + titles;
    }
    assert_eq!(lines, 46);
}

#[test]
fn chatgpt_export() {
    let Some(first) = all("chatgpt-export/librechat-fixture_chatgpt-export.json", Format::ChatGpt) else { return };
    assert_eq!(first.iter().map(|one| messages(one).len()).collect::<Vec<_>>(), [15, 4]);
    assert_eq!(unpaired(&first), (0, 1));
    let citations = all("chatgpt-export/librechat-fixture_chatgpt-citations.json", Format::ChatGpt).unwrap();
    assert_eq!((count(&citations), citations[0].notes.len()), ((1, 2), 2));
    let tree = all("chatgpt-export/librechat-fixture_chatgpt-tree.json", Format::ChatGpt).unwrap();
    assert_eq!(count(&tree), (1, 6));
    assert_eq!(tree[0].notes.last().unwrap(), "messages on other branches were left out: 5");
    for one in first.iter().chain(&citations).chain(&tree) {
        assert!(one.title.is_some() && one.id.len() == 36);
    }
}

#[test]
fn provider_recordings() {
    for (name, format, shape) in [
        ("image_prompt_from_fixture", Format::Anthropic, &[3][..]),
        ("interleaved_reasoning_between_tool_calls", Format::OpenAi, &[7]),
        ("multi_step_tool_use", Format::Anthropic, &[7]),
        ("parallel_tool_use_single_turn", Format::Anthropic, &[5]),
    ] {
        let Some(all) = all(&format!("provider-recordings/{name}.json"), format) else { return };
        assert_eq!(all.iter().map(|one| messages(one).len()).collect::<Vec<_>>(), shape, "{name}");
        assert_eq!((all[0].id.as_str(), unpaired(&all)), (name, (0, 0)));
    }
}

#[test]
fn oasst() {
    let Some(all) = all("oasst/en_100_tree.jsonl", Format::Oasst) else { return };
    let different: HashSet<&str> = said(&all).map(|message| message.id().unwrap()).collect();
    let trees: HashSet<&str> = all.iter().map(|one| one.id.rsplit_once('/').unwrap().0).collect();
    assert_eq!((trees.len(), different.len(), count(&all)), (100, 1_167, (626, 2_198)));
}

/// Each file, cut off somewhere: some of it comes in, or the place is named.
#[test]
fn files_that_were_cut_off() {
    let Some(data) = real_data() else { return };
    for folder in ["chatgpt-export", "claude-code", "provider-recordings", "sharegpt", "swe-agent"] {
        for entry in fs::read_dir(data.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            for tenth in (1..10).filter(|_| text.len() < 300_000) {
                let cut = (0..=text.len() * tenth / 10).rev().find(|at| text.is_char_boundary(*at)).unwrap();
                let name = path.file_name().unwrap().to_str().unwrap();
                match read(name, &text[..cut], None) {
                    Ok(archive) if name.ends_with("jsonl") => {
                        let lost = refused(&archive);
                        let last = text[..cut].trim_end().lines().count();
                        let is_whole = text[cut..].starts_with('\n') || text[..cut].ends_with('\n');
                        assert!(is_whole || lost.iter().any(|refused| refused.line == last), "{name}: {lost:?}");
                    }
                    Ok(_) => panic!("{name} is whole"),
                    Err(refused) => assert!(refused.line > 0 && refused.reason.contains("JSON"), "{name}: {refused}"),
                }
            }
        }
    }
}
