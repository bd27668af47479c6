//! An answer put together while it streams. Pure.

use serde_json::Value;

use super::model::Reply;
use crate::message::json::parse;
use crate::message::{Content, Message, Reasoning, Role, ToolCall};

/// Collects an answer that comes in pieces, and becomes the [`Reply`] that a model gives to an advisor.
///
/// Feed it each piece as it comes, and end it with [`finish`](Self::finish), or with [`interrupted`](Self::interrupted) where the stream
/// broke off: then what came is remembered and marked, as [`Interrupted`](super::Interrupted) says.
///
/// Parts keep the order in which they began. Pieces of text that follow each other are one part; so are pieces of reasoning.
///
/// ```
/// use chat_memory::{INTERRUPTED, InMemoryChatMemory, MemoryAdvisor, Message, ModelRequest, Reply, StreamedReply};
///
/// // A provider's stream of pieces, which breaks off.
/// let stream = [Ok("Once "), Ok("upon "), Err(std::io::Error::other("connection reset"))];
///
/// let model = |_: &ModelRequest| -> Result<Reply, std::io::Error> {
///     let mut reply = StreamedReply::new();
///     for piece in &stream {
///         match piece {
///             Ok(text) => reply.text(text), // and show it to the user
///             Err(_) => return Ok(reply.interrupted()),
///         }
///     }
///     Ok(reply.finish())
/// };
/// let advisor = MemoryAdvisor::new(InMemoryChatMemory::new());
/// let outcome = advisor.turn("user-42", [Message::user("A story!")], &model)?;
/// assert!(outcome.is_interrupted);
/// assert_eq!(outcome.messages[1].text(), "Once upon ");
/// assert!(outcome.messages[1].metadata().get(INTERRUPTED).is_some());
/// # Ok::<(), chat_memory::TurnError<std::io::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct StreamedReply {
    parts: Vec<Part>,
}

#[derive(Debug, Clone)]
enum Part {
    Said(Content),
    /// A call, and the number that its pieces carry.
    Call(usize, ToolCall),
}

impl StreamedReply {
    /// An answer of which nothing came yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A piece of text.
    pub fn text(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Said(Content::Text(text))) => text.push_str(piece),
            _ => self.content(Content::Text(piece.to_owned())),
        }
    }

    /// A piece of what the model thinks before it speaks. Behind a [signature](Self::signature) another thought begins.
    pub fn reasoning(&mut self, piece: &str) {
        if piece.is_empty() {
            return;
        }
        match self.unsigned_thought() {
            Some(thought) => thought.text.push_str(piece),
            None => self.content(Reasoning::new(piece)),
        }
    }

    /// The provider's signature, whole, over the thought that came last; one without a thought stands for a thought that is withheld.
    pub fn signature(&mut self, signature: &str) {
        match self.unsigned_thought() {
            Some(thought) => thought.signature = Some(signature.to_owned()),
            None => self.content(Reasoning::new("").with_signature(signature)),
        }
    }

    /// A piece of a tool call: the number that tells the answer's calls apart, the call's id and the tool's name, which come at
    /// first, and as much of the text of the arguments as this piece has.
    ///
    /// So they are in an item of OpenAI's `delta.tool_calls`. Of Anthropic's stream, `content_block_start` has the id and the name, and
    /// an `input_json_delta` the text, both with the block's `index`.
    ///
    /// An id and a name that are said again change nothing, and another id under the same number begins another call.
    ///
    /// ```
    /// use chat_memory::StreamedReply;
    ///
    /// let mut reply = StreamedReply::new();
    /// reply.tool_call(0, Some("c1"), Some("weather"), "");
    /// reply.tool_call(0, None, None, "{\"city\":");
    /// reply.tool_call(0, None, None, "\"Oslo\"}");
    /// let reply = reply.finish();
    /// assert_eq!(reply.messages[0].tool_calls().next().unwrap().arguments, r#"{"city":"Oslo"}"#);
    /// ```
    pub fn tool_call(&mut self, index: usize, id: Option<&str>, name: Option<&str>, arguments: &str) {
        let (id, name) = (id.unwrap_or_default(), name.unwrap_or_default());
        let known = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Call(at, call) if *at == index => Some(call),
            _ => None,
        });
        match known.filter(|call| id.is_empty() || call.id.is_empty() || call.id == id) {
            Some(call) => {
                if call.id.is_empty() {
                    id.clone_into(&mut call.id);
                }
                if call.name.is_empty() {
                    name.clone_into(&mut call.name);
                }
                call.arguments.push_str(arguments);
            }
            None => self.parts.push(Part::Call(index, ToolCall::new(id, name, arguments))),
        }
    }

    /// A part that comes whole, such as a provider's own.
    pub fn content(&mut self, part: impl Into<Content>) {
        self.parts.push(Part::Said(part.into()));
    }

    /// The answer, which came to its end: everything as it came. A call without any text of arguments gets those of an empty
    /// object, for that is what it means.
    pub fn finish(self) -> Reply {
        let parts = self.parts.into_iter().map(|part| match part {
            Part::Call(_, call) if call.arguments.is_empty() => ToolCall { arguments: "{}".to_owned(), ..call }.into(),
            part => part.into_content(),
        });
        Reply { messages: assistant(parts.collect()), is_interrupted: false }
    }

    /// The answer, which was cut off: what can be shown and sent again of it.
    ///
    /// Calls stay whose arguments are a whole JSON object, to which nothing could have been added. Nobody runs them; a next request
    /// says that they were interrupted. Other calls are left out, and so is a thought at the end, of which nothing came: providers
    /// do not take it back. Where no text, no call and no other content is left, the reply holds no message, as if the model had said nothing.
    pub fn interrupted(self) -> Reply {
        let is_finished = |part: &Part| match part {
            Part::Call(_, call) => matches!(parse(&call.arguments), Ok(Value::Object(_))),
            Part::Said(_) => true,
        };
        let mut parts: Vec<Content> = self.parts.into_iter().filter(is_finished).map(Part::into_content).collect();
        let is_thought = |part: &mut Content| matches!(part, Content::Reasoning(_));
        while parts.pop_if(is_thought).is_some() {}
        let says_something = |part: &Content| match part {
            Content::Reasoning(_) => false,
            Content::Text(text) => !text.trim().is_empty(),
            _ => true,
        };
        if !parts.iter().any(says_something) {
            parts.clear();
        }
        Reply { messages: assistant(parts), is_interrupted: true }
    }

    /// The last part, if it is a thought that is not signed yet.
    fn unsigned_thought(&mut self) -> Option<&mut Reasoning> {
        match self.parts.last_mut() {
            Some(Part::Said(Content::Reasoning(thought)))
                if thought.signature.is_none() && thought.redacted.is_none() =>
            {
                Some(thought)
            }
            _ => None,
        }
    }
}

impl Part {
    fn into_content(self) -> Content {
        match self {
            Part::Said(content) => content,
            Part::Call(_, call) => call.into(),
        }
    }
}

/// A message of these parts; without any, none.
fn assistant(parts: Vec<Content>) -> Vec<Message> {
    if parts.is_empty() { Vec::new() } else { vec![Message::new(Role::Assistant, parts)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(reply: &Reply) -> &[Content] {
        assert_eq!(reply.messages.len(), 1);
        assert_eq!(reply.messages[0].role(), Role::Assistant);
        reply.messages[0].content()
    }

    fn text(text: &str) -> Content {
        Content::Text(text.to_owned())
    }

    #[test]
    fn parts_stay_in_the_order_in_which_they_began() {
        let mut reply = StreamedReply::new();
        reply.text("");
        reply.reasoning("h");
        reply.reasoning("m");
        reply.text("Let ");
        reply.text("me look.\n");
        reply.tool_call(0, Some("c1"), Some("look"), "{\"a");
        reply.tool_call(1, Some("c2"), Some("look"), "");
        reply.tool_call(0, None, None, "\":1}");
        reply.tool_call(1, Some(""), Some("look"), "[");
        reply.text("");
        reply.text("So.");
        let reply = reply.finish();
        assert!(!reply.is_interrupted);
        let expected = [
            Reasoning::new("hm").into(),
            text("Let me look.\n"),
            ToolCall::new("c1", "look", "{\"a\":1}").into(),
            ToolCall::new("c2", "look", "[").into(),
            text("So."),
        ];
        assert_eq!(content(&reply), expected);
    }

    #[test]
    fn a_signature_ends_a_thought() {
        let mut reply = StreamedReply::new();
        reply.reasoning("one");
        reply.signature("s1");
        reply.reasoning("two");
        reply.signature("s2");
        reply.signature("s3");
        reply.content(Reasoning::new("").with_redacted("r"));
        reply.reasoning("three");
        reply.text("Yes.");
        let expected = [
            Reasoning::new("one").with_signature("s1").into(),
            Reasoning::new("two").with_signature("s2").into(),
            Reasoning::new("").with_signature("s3").into(),
            Reasoning::new("").with_redacted("r").into(),
            Reasoning::new("three").into(),
            text("Yes."),
        ];
        assert_eq!(content(&reply.finish()), expected);
    }

    #[test]
    fn calls_under_one_number_are_told_apart_by_their_ids() {
        let mut reply = StreamedReply::new();
        reply.tool_call(0, Some("c1"), Some("look"), "{}");
        reply.tool_call(0, Some("c2"), Some("look"), "{\"a\"");
        reply.tool_call(0, Some("c2"), Some("look"), ":2}");
        // One that gets its id and its name late.
        reply.tool_call(3, None, None, "{");
        reply.tool_call(3, Some("c3"), None, "");
        reply.tool_call(3, None, Some("find"), "}");
        let expected = [
            ToolCall::new("c1", "look", "{}").into(),
            ToolCall::new("c2", "look", "{\"a\":2}").into(),
            ToolCall::new("c3", "find", "{}").into(),
        ];
        assert_eq!(content(&reply.finish()), expected);
    }

    #[test]
    fn a_call_without_arguments_calls_with_an_empty_object_unless_it_was_cut_off() {
        let mut reply = StreamedReply::new();
        reply.text("Now.");
        reply.tool_call(1, Some("c1"), Some("now"), "");
        assert_eq!(content(&reply.clone().finish())[1..], [ToolCall::new("c1", "now", "{}").into()]);
        assert_eq!(content(&reply.interrupted()), [text("Now.")]);
    }

    #[test]
    fn of_an_answer_that_was_cut_off_whole_calls_stay() {
        for (arguments, stays) in [
            (r#"{"city":"Oslo"}"#, true),
            ("{} \n", true),
            (r#"{"city":"Os"#, false),
            (r#"{"a":{}"#, false),
            ("", false),
            ("12", false),
            ("{}x", false),
        ] {
            let mut reply = StreamedReply::new();
            reply.reasoning("hm");
            reply.tool_call(0, Some("c1"), Some("weather"), arguments);
            let reply = reply.interrupted();
            assert!(reply.is_interrupted);
            match stays {
                true => assert_eq!(
                    content(&reply),
                    [Reasoning::new("hm").into(), ToolCall::new("c1", "weather", arguments).into()]
                ),
                false => assert_eq!(reply.messages, [], "{arguments}"),
            }
        }
    }

    #[test]
    fn what_says_nothing_yet_is_no_message() {
        let mut reply = StreamedReply::new();
        assert_eq!(reply.clone().finish(), Reply::default());
        assert_eq!(reply.clone().interrupted().messages, []);
        reply.reasoning("hm");
        reply.signature("s");
        assert_eq!(reply.clone().interrupted().messages, []);
        reply.text("\n\n");
        reply.reasoning("hm");
        assert_eq!(reply.clone().interrupted().messages, []);
        reply.text("Yes");
        reply.reasoning("and");
        let kept =
            [Reasoning::new("hm").with_signature("s").into(), text("\n\n"), Reasoning::new("hm").into(), text("Yes")];
        assert_eq!(content(&reply.interrupted()), kept);
    }

    #[test]
    fn debug_shows_no_content() {
        let mut reply = StreamedReply::new();
        reply.text("canary");
        reply.reasoning("canary");
        reply.signature("canary");
        reply.tool_call(0, Some("canary"), Some("canary"), "canary");
        assert!(!format!("{reply:?}").contains("canary"));
    }
}
