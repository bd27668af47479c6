//! The main job on real conversations: everything comes back, and every view can be sent.

use chat_memory::transcript::openai;
use chat_memory::{
    ChatMemory, Durability, FileChatMemory, InMemoryChatMemory, Message, OpenCalls, Window, model_ready,
};
use serde_json::Value;

use crate::support::{child_part, quick, real_data, start_child};
use crate::{conversations, provider};

#[test]
fn real_conversations_come_back_identical_in_a_new_process() {
    let Some(data) = real_data() else { return };
    let all = conversations::all(&data);
    if let Some((part, directory)) = child_part() {
        assert_eq!(part, "write");
        let memory = quick(&directory);
        for conversation in &all {
            for batch in conversation.messages.chunks(3) {
                memory.add(&conversation.id, batch).unwrap();
            }
        }
        return;
    }
    let messages: usize = all.iter().map(|conversation| conversation.messages.len()).sum();
    assert!(all.len() >= 1_651 && messages > 12_600, "{} conversations, {messages} messages", all.len());

    let directory = tempfile::tempdir().unwrap();
    let test = "real_data::real_conversations_come_back_identical_in_a_new_process";
    assert!(start_child(test, "write", directory.path()).wait().unwrap().success());
    let memory = FileChatMemory::open(directory.path()).unwrap();
    for conversation in &all {
        let found = memory.get(&conversation.id).unwrap();
        assert_eq!(found.len(), conversation.messages.len(), "{}", conversation.id);
        // `Debug` shows no content, so the message that differs is named by its place.
        let differs = found.iter().zip(&conversation.messages).position(|(found, given)| found != given);
        assert_eq!(differs, None, "{}", conversation.id);
    }
}

const WINDOWS: [usize; 5] = [1, 2, 5, 10, 20];

#[test]
fn every_view_of_a_growing_real_conversation_can_be_sent() {
    let Some(data) = real_data() else { return };
    let directory = tempfile::tempdir().unwrap();
    let writer = quick(directory.path());
    let builder = || FileChatMemory::builder(directory.path()).durability(Durability::Process);
    let readers = WINDOWS.map(|count| (count, builder().max_messages(count).open().unwrap()));
    let in_memory = WINDOWS.map(|count| InMemoryChatMemory::builder().max_messages(count).build().unwrap());
    let (mut views, mut shown_whole) = (0, 0);
    for conversation in conversations::all(&data) {
        for (at, message) in conversation.messages.iter().enumerate() {
            let batch = std::slice::from_ref(message);
            writer.add(&conversation.id, batch).unwrap();
            let history = &conversation.messages[..=at];
            for ((count, reader), in_memory) in readers.iter().zip(&in_memory) {
                let context = || format!("{} at {at}, {count} messages", conversation.id);
                let view = reader.get(&conversation.id).unwrap();
                in_memory.add(&conversation.id, batch).unwrap();
                assert_eq!(view, Window::messages(*count).view(history), "{}", context());
                assert_eq!(view, in_memory.get(&conversation.id).unwrap(), "{}", context());
                provider::check_view(history, &view).unwrap_or_else(|wrong| panic!("{wrong}: {}", context()));
                views += 1;
                shown_whole += usize::from(view.len() == history.len());
                if view.len() > *count {
                    // More than the limit only where it is a system message, the question and one unit.
                    let units = view.iter().filter(|message| message.role() == chat_memory::Role::Assistant).count();
                    assert!(units <= 1, "{}", context());
                }
                for open_calls in [OpenCalls::Interrupt, OpenCalls::Drop] {
                    let asked = [&view[..], &[Message::user("and now?")]].concat();
                    let sent = model_ready(&asked, open_calls);
                    provider::check_sent(&sent).unwrap_or_else(|wrong| panic!("{wrong}: {} {open_calls:?}", context()));
                    assert_eq!(sent.last(), asked.last());
                    assert_eq!(model_ready(&sent, open_calls), sent, "{}", context());
                }
            }
            if at + 1 == conversation.messages.len() {
                let asked = [history, &[Message::user("and now?")]].concat();
                provider::check_sent(&model_ready(&asked, OpenCalls::Interrupt)).unwrap();
                provider::check_sent(&model_ready(&asked, OpenCalls::Drop)).unwrap();
            }
        }
    }
    println!("{views} views, of which {shown_whole} show the whole conversation");
    assert!(views > 60_000, "{views}");
}

#[test]
fn openai_conversations_are_written_as_they_were_read() {
    let Some(data) = real_data() else { return };
    let text = std::fs::read_to_string(data.join("openai-chat/airline.json")).unwrap();
    let file: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut messages = 0;
    for (entry, conversation) in file.iter().zip(conversations::airline(&data)) {
        let export = openai::write(&conversation.messages);
        assert_eq!(export.warnings, []);
        let written: Value = serde_json::from_str(&export.to_json()).unwrap();
        assert_eq!(written, entry["traj"], "{}", conversation.id);
        assert_eq!(openai::read(&export.to_json_lines()).unwrap().messages, conversation.messages);
        messages += conversation.messages.len();
    }
    assert_eq!((file.len(), messages), (200, 5_308));
}
