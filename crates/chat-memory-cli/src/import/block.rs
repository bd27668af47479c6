//! Parts of messages in the forms of the providers, for forms that borrow them.

use chat_memory::transcript::{anthropic, openai};
use chat_memory::{Content, Media, Opaque, ResultPart};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::json;

/// A part that is a string or an object with a `type`, and what it says beside it. What neither provider knows becomes opaque.
pub(super) fn read(raw: &RawValue, key: &str) -> (Content, Map<String, Value>) {
    if raw.get().starts_with('"') {
        return (Content::Text(json::text(raw).unwrap_or_default()), Map::new());
    }
    let of_role = |role: &str| format!("[{{\"role\":\"{role}\",\"content\":[{}]}}]", raw.get());
    let openai = || openai::read(&of_role("user")).ok().map(|import| (import, "openai"));
    // Thoughts are the assistant's.
    let anthropic = || anthropic::read(&of_role("assistant")).ok().map(|import| (import, "anthropic"));
    let known = [openai(), anthropic()].into_iter().flatten().find_map(|(import, provider)| {
        let message = import.messages.into_iter().next()?;
        let more =
            message.metadata().get(provider).and_then(|entry| entry.get("parts")?.get("0")?.as_object().cloned());
        let part = message.content().first()?.clone();
        let is_known = matches!(part, Content::Text(_) | Content::Media(_) | Content::Reasoning(_));
        is_known.then(|| (part, more.unwrap_or_default()))
    });
    known.unwrap_or_else(|| (Opaque::new(key, raw.get()).into(), Map::new()))
}

/// An image by the text of its bytes, where that is base64.
pub(super) fn image(mime_type: &str, base64: &str) -> Option<Media> {
    let source = json!({"type": "base64", "media_type": mime_type, "data": base64});
    let message = json!([{"role": "user", "content": [{"type": "image", "source": source}]}]);
    let import = anthropic::read(&message.to_string()).ok()?;
    match import.messages.first()?.content().first()? {
        Content::Media(media) => Some(media.clone()),
        _ => None,
    }
}

/// A part as one of a result; what no result can have becomes opaque.
pub(super) fn in_result(part: Content, raw: &RawValue, key: &str) -> ResultPart {
    match part {
        Content::Text(text) => ResultPart::Text(text),
        Content::Media(media) => ResultPart::Media(media),
        Content::Opaque(opaque) => ResultPart::Opaque(opaque),
        _ => ResultPart::Opaque(Opaque::new(key, raw.get())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> (Content, Map<String, Value>) {
        read(serde_json::from_str(text).unwrap(), "key")
    }

    #[test]
    fn parts_of_both_providers_are_known() {
        assert_eq!(part(r#""x""#).0, Content::Text("x".into()));
        let (text, more) = part(r#"{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}"#);
        assert_eq!((text, more.len()), (Content::Text("x".into()), 1));
        let image = part(r#"{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}"#).0;
        assert_eq!(image, Media::url("https://example.com/a.png").into());
        let image = part(r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAEC"}}"#).0;
        assert_eq!(image, Media::bytes("image/png", [0, 1, 2]).into());
        assert!(matches!(part(r#"{"type":"thinking","thinking":"hm","signature":"s"}"#).0, Content::Reasoning(_)));
        for unknown in [r#"{"type":"text"}"#, r#"{"x":1}"#, "3", "[]", r#"{"type":"tool_use","id":"a"}"#] {
            assert_eq!(part(unknown), (Opaque::new("key", unknown).into(), Map::new()));
        }
    }

    #[test]
    fn an_image_is_its_bytes() {
        assert_eq!(image("image/png", "AAEC"), Some(Media::bytes("image/png", [0, 1, 2])));
        assert_eq!(image("image/png", "no base64"), None);
    }
}
