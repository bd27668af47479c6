//! Counting tokens, for a window that is a token budget.

use crate::message::{Content, Media, MediaSource, Message, ResultPart};

/// Counts the tokens of one message, as a model would.
///
/// Any `Fn(&Message) -> usize` is one.
pub trait TokenCounter: Send + Sync {
    /// The number of tokens that this message takes in a request.
    fn count(&self, message: &Message) -> usize;
}

impl<F: Fn(&Message) -> usize + Send + Sync> TokenCounter for F {
    fn count(&self, message: &Message) -> usize {
        self(message)
    }
}

/// A rough count without a tokenizer: a token for four ASCII characters or for one other character, four tokens for the
/// frame of a message, a thousand for an image, a sound or a document.
///
/// It errs on the large side for most languages. Where the budget is tight, count with your model's tokenizer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenEstimate;

impl TokenCounter for TokenEstimate {
    fn count(&self, message: &Message) -> usize {
        const FRAME: usize = 4;
        FRAME + message.content().iter().map(part).sum::<usize>() + message.name().map_or(0, text)
    }
}

fn part(part: &Content) -> usize {
    match part {
        Content::Text(value) => text(value),
        Content::Media(value) => media(value),
        Content::ToolCall(call) => text(&call.id) + text(&call.name) + text(&call.arguments),
        Content::ToolResult(result) => {
            let parts = result.parts.iter().map(|part| match part {
                ResultPart::Text(value) => text(value),
                ResultPart::Media(value) => media(value),
                ResultPart::Opaque(value) => text(&value.json),
            });
            text(&result.call_id) + parts.sum::<usize>()
        }
        Content::Reasoning(reasoning) => text(&reasoning.text),
        Content::Opaque(value) => text(&value.json),
    }
}

fn text(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().count() - ascii;
    ascii.div_ceil(4) + others
}

fn media(media: &Media) -> usize {
    const ATTACHMENT: usize = 1_000;
    match &media.source {
        MediaSource::Bytes(bytes) if bytes.is_empty() => 0,
        _ => ATTACHMENT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_the_script_of_the_text() {
        assert_eq!(TokenEstimate.count(&Message::user("")), 4);
        assert_eq!(TokenEstimate.count(&Message::user("four score and")), 4 + 4);
        assert_eq!(TokenEstimate.count(&Message::user("漢字かな")), 4 + 4);
        assert_eq!(
            TokenEstimate.count(&Message::user("x").with_media(Media::url("https://example.org/a"))),
            4 + 1 + 1_000
        );
    }

    #[test]
    fn every_part_counts() {
        let count = |message: &Message| TokenEstimate.count(message) - 4;
        let empty = Media::bytes("image/png", []);
        assert_eq!(count(&Message::user("").with_media(empty.clone())), 0);
        assert_eq!(count(&Message::user("").with_media(Media::bytes("image/png", [1]))), 1_000);
        assert_eq!(count(&Message::user("").with_name("four")), 1);
        assert_eq!(count(&Message::assistant("").with_tool_call("c1", "look", "{\"a\":1}")), 1 + 1 + 2);
        assert_eq!(count(&Message::assistant("").with_content(crate::Reasoning::new("12345678"))), 2);
        assert_eq!(count(&Message::user("").with_content(crate::Opaque::new("x", "1234567890"))), 3);
        let result = crate::ToolResult::new("c1")
            .with_text("12345")
            .with_part(ResultPart::Media(empty))
            .with_part(ResultPart::Opaque(crate::Opaque::new("x", "[]")));
        assert_eq!(count(&Message::new(crate::Role::Tool, [Content::ToolResult(result)])), 1 + 2 + 1);
    }
}
