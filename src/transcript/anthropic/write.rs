//! To the Anthropic form.

use serde_json::{Map, Value, json};

use super::super::extra::{Kept, add, beside, merge};
use super::super::{Export, json, responses};
use super::{INVALID_JSON, JOINED, PROVIDER, RESPONSE, media, read};
use crate::message::{Content, Message, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult};

/// Writes messages in the Anthropic form: [`Export::system`] for the field `system` of a request, and [`Export::objects`] for
/// `messages`.
///
/// ```
/// use chat_memory::{Message, transcript::anthropic};
///
/// let export = anthropic::write(&[Message::user("hello").with_name("ada")]);
/// assert_eq!(export.objects, [r#"{"role":"user","content":[{"type":"text","text":"hello"}]}"#]);
/// assert_eq!(export.warnings[0].text, "the form cannot say: name");
/// ```
pub fn write(messages: &[Message]) -> Export {
    let mut export = Export::default();
    let mut system: Option<Vec<String>> = None;
    let mut turns: Vec<Turn> = Vec::new();
    for (position, message) in messages.iter().enumerate() {
        let mut writer = Writer {
            role: message.role(),
            kept: Kept::of(message, PROVIDER),
            is_of_responses: message.metadata().get(responses::PROVIDER).is_some(),
            unsaid: Vec::new(),
        };
        let blocks = writer.blocks(message);
        if message.role().is_system() {
            if system.is_some() {
                writer.unsaid.push("where one system message ends and the next begins");
            }
            if !turns.is_empty() {
                writer.unsaid.push("a system message amid the others, which moved to the beginning");
            }
            system.get_or_insert_default().extend(blocks);
        } else {
            writer.put(blocks, &mut turns);
        }
        writer.beside(message);
        export.cannot_say(position, writer.unsaid);
    }
    export.system = system.map(|blocks| list(&blocks));
    export.objects = turns.into_iter().map(Turn::into_object).collect();
    export
}

/// Whether arguments are no JSON object, and are more than nothing.
pub(super) fn is_unsayable(arguments: &str) -> bool {
    !arguments.is_empty() && json::object_on_a_line(arguments).is_none()
}

/// A message of the form.
struct Turn {
    is_user: bool,
    /// The role of the last message in it.
    last: Role,
    fields: Map<String, Value>,
    blocks: Vec<String>,
}

impl Turn {
    fn into_object(self) -> String {
        let mut object = Map::new();
        object.insert("role".to_owned(), if self.is_user { "user" } else { "assistant" }.into());
        add(&mut object, self.fields);
        json::with_field(object, "content", &list(&self.blocks))
    }
}

struct Writer<'a> {
    role: Role,
    /// Fields that an import found no other place for.
    kept: Kept<'a>,
    /// Whether OpenAI's model thought what is in the message; both keep sealed thoughts in the same place.
    is_of_responses: bool,
    unsaid: Vec<&'static str>,
}

impl<'a> Writer<'a> {
    /// Puts a message behind the others, or into the last one.
    fn put(&mut self, blocks: Vec<String>, turns: &mut Vec<Turn>) {
        let is_user = self.role != Role::Assistant;
        let is_joined = self.kept.get(JOINED).is_some_and(|joined| joined == true);
        let fields = self.kept.fields();
        match turns.last_mut() {
            Some(turn)
                if is_user && turn.is_user && (is_joined || (self.role, turn.last) == (Role::Tool, Role::Tool)) =>
            {
                if turn.last == self.role || turn.blocks.is_empty() || blocks.is_empty() {
                    self.unsaid.push("where the message before it ends");
                }
                turn.last = self.role;
                add(&mut turn.fields, fields);
                turn.blocks.extend(blocks);
            }
            _ => turns.push(Turn { is_user, last: self.role, fields, blocks }),
        }
    }

    /// The blocks of a message; in one of results these come first, as the form wants it.
    fn blocks(&mut self, message: &'a Message) -> Vec<String> {
        let (mut results, mut others) = (Vec::new(), Vec::new());
        for part in message.content() {
            let more = self.kept.next(part);
            match part {
                Content::ToolResult(result) if self.role == Role::Tool => results.push(self.result(result, more)),
                part => others.extend(self.block(part, more)),
            }
        }
        if self.role == Role::Tool && (results.is_empty() || !others.is_empty()) {
            self.unsaid.push("a tool message of anything but results, which became the user's");
        }
        results.append(&mut others);
        results
    }

    fn block(&mut self, part: &Content, more: Option<&Value>) -> Option<String> {
        let is_said = match part {
            Content::Text(_) | Content::Opaque(_) => true,
            _ => !self.role.is_system(),
        };
        if !is_said {
            self.unsaid.push("anything but text in a system message");
            return None;
        }
        match part {
            Content::Text(text) => Some(object(json!({"type": "text", "text": text}), more)),
            Content::Media(media) => match media::block(media) {
                Ok(block) => Some(object(block, more)),
                Err(unsaid) => self.cannot_say(unsaid),
            },
            Content::ToolCall(call) if self.role == Role::Assistant => Some(self.call(call, more)),
            Content::ToolCall(_) => self.cannot_say("a tool call of another role than assistant"),
            Content::ToolResult(_) => self.cannot_say("a tool result of another role than tool"),
            Content::Reasoning(thought) => self.thought(thought, more),
            Content::Opaque(opaque) => {
                self.opaque(opaque, if self.role == Role::Tool { Role::User } else { self.role })
            }
        }
    }

    fn thought(&mut self, thought: &Reasoning, more: Option<&Value>) -> Option<String> {
        if self.is_of_responses {
            return self.cannot_say("another provider's thought");
        }
        let is_own = more.and_then(|more| more.get("type")).is_some_and(|kind| kind == "thinking");
        let block = match thought {
            Reasoning { text, signature: None, redacted: None } if is_own => {
                json!({"type": "thinking", "thinking": text})
            }
            Reasoning { signature: None, redacted: None, .. } => {
                return self.cannot_say("a thought without a signature");
            }
            Reasoning { text, signature: Some(signature), redacted: None } => {
                json!({"type": "thinking", "thinking": text, "signature": signature})
            }
            Reasoning { text, signature: None, redacted: Some(data) } if text.is_empty() => {
                json!({"type": "redacted_thinking", "data": data})
            }
            _ => return self.cannot_say("a thought that is redacted and yet in clear"),
        };
        Some(object(block, more))
    }

    fn call(&mut self, call: &ToolCall, more: Option<&Value>) -> String {
        let ToolCall { id, name, arguments } = call;
        let mut block = json!({"type": "tool_use", "id": id, "name": name});
        merge(&mut block, more);
        let input = match json::object_on_a_line(arguments) {
            Some(input) => {
                if input != *arguments {
                    self.unsaid.push("line breaks of arguments, or space around them");
                }
                input
            }
            None if arguments.is_empty() => {
                self.unsaid.push("arguments of no text, which became an empty object");
                "{}".to_owned()
            }
            None => json!({INVALID_JSON: arguments}).to_string(),
        };
        with_field(block, "input", &input)
    }

    fn result(&mut self, result: &ToolResult, more: Option<&Value>) -> String {
        let mut more = more.cloned().unwrap_or_default();
        let inside = more.as_object_mut().and_then(|more| more.shift_remove("content"));
        let mut block = json!({"type": "tool_result", "tool_use_id": result.call_id});
        if result.is_error {
            merge(&mut block, Some(&json!({"is_error": true})));
        }
        merge(&mut block, Some(&more));
        if result.name.is_some() {
            self.unsaid.push("the name of a result's tool");
        }
        let mut blocks = Vec::new();
        for (position, part) in result.parts.iter().enumerate() {
            let more = inside.as_ref().and_then(|inside| inside.get(position.to_string()));
            blocks.extend(match part {
                ResultPart::Text(text) => Some(object(json!({"type": "text", "text": text}), more)),
                ResultPart::Media(media) => match media::block(media) {
                    Ok(block) => Some(object(block, more)),
                    Err(unsaid) => self.cannot_say(unsaid),
                },
                ResultPart::Opaque(opaque) => self.opaque(opaque, Role::Tool),
            });
        }
        if blocks.is_empty() { block.to_string() } else { with_field(block, "content", &list(&blocks)) }
    }

    fn opaque(&mut self, opaque: &Opaque, role: Role) -> Option<String> {
        if opaque.provider != PROVIDER {
            return self.cannot_say("another provider's part");
        }
        let Some(block) = json::object_on_a_line(&opaque.json) else {
            return self.cannot_say("an opaque part that is no JSON object");
        };
        match read::part(&block, role) {
            Ok(Content::Opaque(_)) => {}
            Ok(_) => self.unsaid.push("that a part is opaque"),
            Err(_) => return self.cannot_say("an opaque part that is no block of the form"),
        }
        if block != opaque.json {
            self.unsaid.push("line breaks of an opaque part, or space around it");
        }
        Some(block)
    }

    /// What a message has beside its content.
    fn beside(&mut self, message: &Message) {
        let said = [
            (self.role == Role::Developer, "the role developer, which became system"),
            (message.name().is_some(), "name"),
            (self.kept.get(RESPONSE).is_some(), "fields of a response"),
            (self.role.is_system() && !self.kept.fields().is_empty(), "fields of a system message"),
        ];
        self.unsaid.extend(said.into_iter().filter_map(|(is_there, name)| is_there.then_some(name)));
        self.unsaid.extend(beside(message, PROVIDER));
    }

    fn cannot_say(&mut self, what: &'static str) -> Option<String> {
        self.unsaid.push(what);
        None
    }
}

/// The text of a block with what an import found beside it.
fn object(mut block: Value, more: Option<&Value>) -> String {
    merge(&mut block, more);
    block.to_string()
}

fn with_field(block: Value, name: &str, json: &str) -> String {
    match block {
        Value::Object(block) => json::with_field(block, name, json),
        _ => String::new(),
    }
}

fn list(blocks: &[String]) -> String {
    format!("[{}]", blocks.join(","))
}
