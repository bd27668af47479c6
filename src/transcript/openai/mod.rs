//! The messages of OpenAI's chat completions, which most providers and frameworks read and write too.
//!
//! <https://platform.openai.com/docs/api-reference/chat/create>
//!
//! | in the form | here |
//! |---|---|
//! | `content`: null, a string, a list of parts | no part, [`Content::Text`](crate::Content::Text), a part each |
//! | `image_url`, `input_audio`, `file` with the bytes in base64 | [`Media`](crate::Media) by bytes |
//! | `image_url` with another URL | [`Media`](crate::Media) by URL |
//! | `tool_calls`; `function_call`, its ancestor | [`ToolCall`](crate::ToolCall), one each; with an empty id |
//! | a `tool` message; a `function` message | [`ToolResult`](crate::ToolResult); with an empty call id |
//! | `refusal`, `audio`, any other part | [`Opaque`](crate::Opaque) of `openai`, word for word |
//! | any other field | the metadata entry `openai`, which an export puts back |
//!
//! Reading and writing again gives the same JSON values, but for what the form has two ways to say: `content` as a list of a
//! single text becomes a string, an empty list and an empty `tool_calls` go like `null` does, a string in a list becomes a text
//! part, a result without content gets an empty one, and one with an empty `tool_call_id` and a name becomes a `function` message.
//! `is_error`, which is not of the form, is read and not written, numbers beyond 64 bits become floats, and of a key that an
//! object has twice the last counts.

mod read;
mod write;

pub use read::read;
pub use write::write;

/// The provider of opaque parts, and the metadata entry of fields that have no other place.
const PROVIDER: &str = "openai";
