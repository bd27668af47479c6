//! Conversations as one page that needs nothing else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chat_memory::{Content, Entry, Media, MediaSource, ResultPart};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::text::{count, harmless, on_a_line, size};
use crate::time;

/// Writes a page. Whatever was said is text on it: nothing of it is run, nor fetched from anywhere.
pub fn write(id: &str, entries: &[Entry]) -> String {
    let title = on_a_line(id);
    let times = entries.iter().map(|entry| entry.recorded_at);
    let span = match (times.clone().min(), times.max()) {
        (Some(first), Some(last)) => format!("{} – {}", time::short(first), time::short(last)),
        _ => String::new(),
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                // Even if there were a hole in what follows.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(include_str!("page.css"))) }
            }
            body {
                header {
                    h1 dir="auto" { (title) }
                    p { (count(entries.len() as u64, "message")) " · " (span) }
                }
                main { @for entry in entries { (message(entry)) } }
            }
        }
    };
    page.into_string()
}

fn message(entry: &Entry) -> Markup {
    let message = &entry.message;
    let said = message.created_at().unwrap_or(entry.recorded_at);
    let role = message.role().as_str();
    html! {
        article class=(role) id={ "m" (entry.seq) } {
            h2 {
                span.role { (role) }
                @if let Some(name) = message.name() { " " bdi.name { (on_a_line(name)) } }
                a.number href={ "#m" (entry.seq) } { "#" (entry.seq) }
                time datetime=(time::utc(said).unwrap_or_default()) { (time::local(said)) }
            }
            @for part in message.content() { (content(part)) }
            @if message.content().is_empty() { p.empty { "no content" } }
        }
    }
}

fn content(content: &Content) -> Markup {
    match content {
        Content::Text(text) => html! { div.text dir="auto" { (harmless(text)) } },
        Content::Media(media) => self::media(media),
        Content::ToolCall(call) => html! {
            details.call {
                summary { "calls " bdi { b { (on_a_line(&call.name)) } } " " code { (on_a_line(&call.id)) } }
                pre dir="auto" { (harmless(&pretty(&call.arguments))) }
            }
        },
        Content::ToolResult(result) => html! {
            details.result.failed[result.is_error] open[result.is_error] {
                summary {
                    @if result.is_error { "failed: " } @else { "result of " }
                    bdi { b { (on_a_line(result.name.as_deref().unwrap_or(&result.call_id))) } }
                    " " code { (on_a_line(&result.call_id)) }
                }
                @for part in &result.parts {
                    @match part {
                        ResultPart::Text(text) => pre dir="auto" { (harmless(text)) },
                        ResultPart::Media(media) => (self::media(media)),
                        ResultPart::Opaque(opaque) => pre { (harmless(&pretty(&opaque.json))) },
                        _ => p.empty { "a part that this version does not know" },
                    }
                }
            }
        },
        Content::Reasoning(reasoning) => html! {
            details.reasoning {
                summary { @if reasoning.redacted.is_some() { "thinks (hidden by the provider)" } @else { "thinks" } }
                div.text dir="auto" { (harmless(&reasoning.text)) }
            }
        },
        Content::Opaque(opaque) => html! {
            details.opaque {
                summary { "a part of " bdi { (on_a_line(&opaque.provider)) } "'s own" }
                pre { (harmless(&pretty(&opaque.json))) }
            }
        },
        _ => html! { p.empty { "a part that this version does not know" } },
    }
}

/// Pictures that a browser only draws; an SVG could be more than a picture.
const PICTURES: [&str; 5] = ["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"];

fn media(media: &Media) -> Markup {
    let kind = media.mime_type.as_deref().unwrap_or("media");
    match &media.source {
        MediaSource::Bytes(bytes) if PICTURES.contains(&kind) => html! {
            img src={ "data:" (kind) ";base64," (STANDARD.encode(bytes)) } alt={ (kind) ", " (size(bytes.len() as u64)) };
        },
        MediaSource::Bytes(bytes) => html! { p.media { (on_a_line(kind)) ", " (size(bytes.len() as u64)) } },
        MediaSource::Url(url) if url.starts_with("https://") || url.starts_with("http://") => html! {
            p.media { (on_a_line(kind)) ": " a href=(harmless(url)) rel="noopener noreferrer nofollow" { (on_a_line(url)) } }
        },
        MediaSource::Url(url) => {
            html! { p.media { (on_a_line(kind)) ": " (on_a_line(crate::text::cut(url, Some(200)).0)) } }
        }
        _ => html! { p.media { (on_a_line(kind)) } },
    }
}

/// JSON with line breaks; anything else as it stands.
fn pretty(json: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(json);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| json.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chat_memory::{Message, Opaque, Reasoning, Role, ToolResult};
    use std::time::UNIX_EPOCH;

    #[test]
    fn nothing_that_was_said_is_markup() {
        let hostile = "</pre></style><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u{0}";
        let message = Message::new(Role::Assistant, [])
            .with_name(hostile)
            .with_content(Content::Text(hostile.to_owned()))
            .with_tool_call(hostile, hostile, hostile)
            .with_content(ToolResult::new(hostile).with_text(hostile).with_error())
            .with_content(Reasoning::new(hostile))
            .with_content(Opaque::new(hostile, hostile))
            .with_media(Media::url("javascript:alert(3)"))
            .with_media(Media::url(format!("https://example.com/{hostile}")))
            .with_media(Media::bytes(hostile, *b"x"))
            .with_media(Media::bytes("image/svg+xml", *b"<svg onload=alert(4)>"));
        let page = write(hostile, &[Entry::new(0, UNIX_EPOCH, message)]);
        for markup in ["<script", "<img", "onerror=alert(2)>\"", "href=\"javascript", "<svg", "\u{0}"] {
            assert!(!page.contains(markup), "{markup}");
        }
        assert_eq!(page.matches("<style>").count(), 1);
        assert_eq!(page.matches("</style>").count(), 1);
    }
}
