//! The items of OpenAI's Responses API: its `input`, and the `output` of a response.
//!
//! <https://platform.openai.com/docs/api-reference/responses/create>
//!
//! | in the form | here |
//! |---|---|
//! | `instructions` of a request object | a message of [`Role::System`](crate::Role), the first; an item of that role in an export |
//! | a `message` of system, developer or user | a message with a part for each part |
//! | `message`, `reasoning` and calls of the assistant, one behind the other | one message: what belongs together in a window |
//! | `input_text`, `output_text`; a string | [`Content::Text`](crate::Content::Text) |
//! | `input_image`, `input_file` with a `data:` URL; with another URL | [`Media`](crate::Media) by bytes; by URL |
//! | `reasoning` | [`Reasoning`](crate::Reasoning): the text of its summary, else of its content; `encrypted_content` is `redacted` |
//! | `function_call`, `custom_tool_call` | [`ToolCall`](crate::ToolCall) |
//! | their outputs | a message of [`Role::Tool`](crate::Role) each |
//! | any other item | [`Opaque`](crate::Opaque) of `openai-responses`, word for word, in a message of the assistant |
//! | any other part, such as a `refusal` | [`Opaque`](crate::Opaque) of `openai-responses-part`, word for word |
//! | any other field, such as an item's `id` | the metadata entry `openai-responses`, from which an export puts it back |
//!
//! The form has no ends of messages for the assistant. An item goes on with its message, but that a second `message` begins
//! another one while no call is in it. An export reports where messages will not be read as they were.
//!
//! Reading and writing again gives the same JSON values, but for what the form has two ways to say: the `type` of a message
//! is always written, a `content` or `input` that is a string becomes a list, an `output` of a single text becomes a string,
//! and a known field that is `null` is left out. Numbers beyond 64 bits in fields without a place become floats, and of a key
//! that an object has twice the last counts.
//!
//! A thought is written only where an import of this form brought it: the provider refuses what others thought.
//!
//! ```
//! use chat_memory::{Message, transcript::responses};
//!
//! let messages = [
//!     Message::user("What is the weather in Oslo?"),
//!     Message::assistant("Let me look.").with_tool_call("c1", "weather", r#"{"city": "Oslo"}"#),
//! ];
//! let export = responses::write(&messages);
//! assert_eq!(export.objects, [
//!     r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"What is the weather in Oslo?"}]}"#,
//!     r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me look."}]}"#,
//!     r#"{"type":"function_call","call_id":"c1","name":"weather","arguments":"{\"city\": \"Oslo\"}"}"#,
//! ]);
//! assert_eq!(responses::read(&export.to_json())?.messages, messages);
//! # Ok::<(), chat_memory::Error>(())
//! ```

mod part;
mod read;
mod write;

pub use read::read;
pub use write::write;

/// The provider of opaque items, and the metadata entry of fields that have no other place.
pub(super) const PROVIDER: &str = "openai-responses";
/// The provider of opaque parts, which stand inside a message item or an output.
const PART_PROVIDER: &str = "openai-responses-part";
/// Inside the metadata entry: further fields of message items, by the position of their first part.
const ITEMS: &str = "items";

/// The items of a message of the assistant, as far as they matter for where it ends.
#[derive(Clone, Copy, Default)]
struct Seen {
    has_message: bool,
    has_call: bool,
    ends_in_message: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    Call,
    Other,
}

impl Seen {
    /// Whether an item goes on with the message. While a call may wait for its output all do: a message between them would
    /// part the two.
    fn goes_on(self, kind: Kind) -> bool {
        kind != Kind::Message || !self.has_message || self.has_call
    }

    fn with(self, kind: Kind) -> Self {
        Self {
            has_message: self.has_message || kind == Kind::Message,
            has_call: self.has_call || kind == Kind::Call,
            ends_in_message: kind == Kind::Message,
        }
    }
}
