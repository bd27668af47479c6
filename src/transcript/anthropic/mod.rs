//! Anthropic's Messages.
//!
//! <https://docs.claude.com/en/api/messages>
//!
//! | in the form | here |
//! |---|---|
//! | `system`, a string or text blocks | a message of [`Role::System`](crate::Role), the first |
//! | `content`: a string, a list of blocks | [`Content::Text`](crate::Content::Text), a part each |
//! | `image`, `document` with base64, text or a URL | [`Media`](crate::Media); a document at a URL is `application/pdf` |
//! | `tool_use` of an assistant | [`ToolCall`](crate::ToolCall), its arguments the very text of `input` |
//! | `tool_result`s of a user, one behind the other | a message of [`Role::Tool`](crate::Role) with a [`ToolResult`](crate::ToolResult) each |
//! | `thinking`, `redacted_thinking` | [`Reasoning`](crate::Reasoning) with `signature`; with `redacted` |
//! | any other block | [`Opaque`](crate::Opaque) of `anthropic`, word for word |
//! | `id` and further fields of a response | the id, and `response` in the metadata entry `anthropic`, which an export reports and leaves out: a request must not have them |
//! | any other field, such as `cache_control` | that metadata entry, from which an export puts it back |
//!
//! A user message with results and other blocks becomes several messages, and is one again in an export. Messages of results
//! that follow each other are written as one, because a model that gets them apart learns not to call tools side by side.
//!
//! Reading and writing again gives the same JSON values, but for what the form has two ways to say: a string becomes a list
//! of one text block, `is_error` that is `false`, a `content` of a result that is an empty list and a known field that is `null`
//! are left out. Numbers beyond 64 bits in fields without a place become floats, and of a key that an object has twice the last
//! counts.
//!
//! Arguments that are no JSON object, such as those of an answer that was cut off, are written as the text under the key
//! `INVALID_JSON`, and read back.
//!
//! ```
//! use chat_memory::{Message, transcript::anthropic};
//!
//! let messages = [
//!     Message::system("You are brief."),
//!     Message::user("What is the weather in Oslo?"),
//!     Message::assistant("Let me look.").with_tool_call("c1", "weather", r#"{"city": "Oslo"}"#),
//! ];
//! let export = anthropic::write(&messages);
//! assert_eq!(export.system.as_deref(), Some(r#"[{"type":"text","text":"You are brief."}]"#));
//! assert_eq!(export.objects[0], r#"{"role":"user","content":[{"type":"text","text":"What is the weather in Oslo?"}]}"#);
//! assert_eq!(anthropic::read(&export.to_json())?.messages, messages);
//! # Ok::<(), chat_memory::Error>(())
//! ```

mod media;
mod read;
mod write;

pub use read::read;
pub use write::write;

/// The provider of opaque parts, and the metadata entry of fields that have no other place.
const PROVIDER: &str = "anthropic";
/// Inside that entry: what a response says beside its content.
const RESPONSE: &str = "response";
/// Inside that entry: that the message goes on with the one before it.
const JOINED: &str = "joined";
/// The only key of an `input` that stands for arguments that are no JSON object.
const INVALID_JSON: &str = "INVALID_JSON";
