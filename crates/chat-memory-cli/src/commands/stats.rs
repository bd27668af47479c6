//! `stats`: totals, growth, the largest, roles, open tool calls.

use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use chat_memory::{Message, Role};
use serde::{Serialize, Serializer};

use crate::cli::{Global, StatsArgs};
use crate::failure::{Failure, in_full};
use crate::out::{self, BOLD, Out, Styled, YELLOW};
use crate::progress::Progress;
use crate::show::role_style;
use crate::store::{self, Store};
use crate::text::{count, fit, on_a_line, size};
use crate::time;

#[derive(Default, Serialize)]
struct Stats {
    conversations: u64,
    messages: u64,
    bytes: u64,
    #[serde(serialize_with = "utc")]
    first: Option<SystemTime>,
    #[serde(serialize_with = "utc")]
    last: Option<SystemTime>,
    messages_by_role: BTreeMap<&'static str, u64>,
    tool_calls: u64,
    open_tool_calls: u64,
    conversations_with_open_calls: u64,
    messages_by_day: BTreeMap<String, u64>,
    largest: Vec<Large>,
    unreadable: u64,
}

#[derive(Serialize)]
struct Large {
    conversation: String,
    messages: u64,
    bytes: u64,
}

/// How many of the largest are shown, and how many days.
const LARGEST: usize = 5;
const DAYS: usize = 14;

pub fn run(global: &Global, args: &StatsArgs, out: &mut Out) -> Result<(), Failure> {
    let store = Store::open(global)?;
    let store::Catalogue { mut conversations, problems } = store::catalogue(&store.memory)?;
    let mut stats = Stats::default();
    if args.conversations.is_empty() {
        problems.iter().for_each(|problem| out::problem("not read:", problem));
        stats.unreadable = problems.len() as u64;
    } else {
        for id in &args.conversations {
            if !conversations.iter().any(|summary| summary.id == *id) {
                return Err(store::unknown(id));
            }
        }
        conversations.retain(|summary| args.conversations.contains(&summary.id));
    }
    stats.conversations = conversations.len() as u64;
    stats.first = conversations.iter().filter_map(|summary| summary.created).min();
    stats.last = conversations.iter().filter_map(|summary| summary.updated).max();
    let mut progress = Progress::new(conversations.iter().map(|summary| summary.bytes).sum(), "bytes");
    for summary in &conversations {
        if let Err(failure) = stats.add(&store, &summary.id) {
            match failure {
                Failure::Memory(error) => {
                    out::note(format_args!(
                        "{} {}: {}",
                        Styled(YELLOW, "not read:"),
                        on_a_line(&summary.id),
                        in_full(&error)
                    ));
                    stats.unreadable += 1;
                }
                failure => return Err(failure),
            }
        }
        stats.bytes += summary.bytes;
        progress.advance(summary.bytes);
    }
    drop(progress);
    conversations.sort_by_key(|summary| std::cmp::Reverse(summary.bytes));
    stats.largest = conversations
        .into_iter()
        .take(LARGEST)
        .map(|summary| Large { conversation: summary.id, messages: summary.messages, bytes: summary.bytes })
        .collect();
    if out.is_json() {
        out.json(&stats)?
    } else {
        stats.print(out)?
    }
    match stats.unreadable {
        0 => store.verdict(),
        unreadable => Err(Failure::Partly(format!(
            "{} could not be read; `chat-memory verify` says why",
            count(unreadable, "file")
        ))),
    }
}

impl Stats {
    fn add(&mut self, store: &Store, id: &str) -> Result<(), Failure> {
        let mut open: HashMap<String, u64> = HashMap::new();
        store.for_each_chunk(id, |chunk| {
            for entry in &chunk {
                self.messages += 1;
                let message = &entry.message;
                *self.messages_by_role.entry(message.role().as_str()).or_default() += 1;
                *self.messages_by_day.entry(time::day(entry.recorded_at)).or_default() += 1;
                self.tool_calls += message.tool_calls().count() as u64;
                follow_calls(&mut open, message);
            }
            Ok(true)
        })?;
        let still_open: u64 = open.values().sum();
        self.open_tool_calls += still_open;
        self.conversations_with_open_calls += u64::from(still_open > 0);
        Ok(())
    }

    fn print(&self, out: &mut Out) -> Result<(), Failure> {
        let title = |text: &'static str| Styled(BOLD, format!("{text:<14}"));
        let per = if self.conversations == 0 { 0.0 } else { self.messages as f64 / self.conversations as f64 };
        out.line(format_args!("{}{}", title("conversations"), indicatif::HumanCount(self.conversations)))?;
        out.line(format_args!("{}{}, {per:.1} each", title("messages"), indicatif::HumanCount(self.messages)))?;
        out.line(format_args!("{}{}", title("size"), size(self.bytes)))?;
        if let (Some(first), Some(last)) = (self.first, self.last) {
            out.line(format_args!("{}{}", title("first"), time::local(first)))?;
            out.line(format_args!("{}{}", title("last"), time::local(last)))?;
        }
        out.line(format_args!(
            "{}{}, {} open in {}",
            title("tool calls"),
            indicatif::HumanCount(self.tool_calls),
            indicatif::HumanCount(self.open_tool_calls),
            count(self.conversations_with_open_calls, "conversation")
        ))?;
        out.line(format_args!("\n{}", Styled(BOLD, "by role")))?;
        let most = self.messages_by_role.values().copied().max().unwrap_or_default();
        for role in [Role::System, Role::Developer, Role::User, Role::Assistant, Role::Tool] {
            if let Some(number) = self.messages_by_role.get(role.as_str()) {
                let bar = Styled(role_style(role), bar(*number, most));
                out.line(format_args!("  {:<10} {number:>9}  {bar}", role.as_str()).to_string().trim_end())?;
            }
        }
        out.line(format_args!("\n{}", Styled(BOLD, "by day")))?;
        let most = self.messages_by_day.values().copied().max().unwrap_or_default();
        for (day, number) in self.messages_by_day.iter().rev().take(DAYS).rev() {
            out.line(format_args!("  {day} {number:>9}  {}", bar(*number, most)))?;
        }
        out.line(format_args!("\n{}", Styled(BOLD, "largest")))?;
        for Large { conversation, messages, bytes } in &self.largest {
            let id = on_a_line(conversation);
            out.line(format_args!("  {:>9}  {:>14}  {}", size(*bytes), count(*messages, "message"), fit(&id, 60)))?;
        }
        Ok(())
    }
}

fn utc<S: Serializer>(time: &Option<SystemTime>, serializer: S) -> Result<S::Ok, S::Error> {
    time.and_then(time::utc).serialize(serializer)
}

/// A result answers a call of its id that is still open.
fn follow_calls(open: &mut HashMap<String, u64>, message: &Message) {
    for call in message.tool_calls() {
        *open.entry(call.id.clone()).or_default() += 1;
    }
    for result in message.tool_results() {
        if let Some(calls) = open.get_mut(&result.call_id) {
            *calls = calls.saturating_sub(1);
        }
    }
}

fn bar(number: u64, most: u64) -> String {
    const LONGEST: u64 = 30;
    "▇".repeat(usize::try_from((number * LONGEST).div_ceil(most.max(1))).unwrap_or_default())
}
