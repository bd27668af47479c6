//! The parts of a message item, and of an output.

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::super::base64;
use super::super::json::{self, Fields, Source};
use super::PART_PROVIDER;
use crate::error::Result;
use crate::message::{Content, Media, MediaSource, Opaque, Role};

/// Reads a part, and what it says beside what a [`Content`] holds.
pub(super) fn read(source: &Source<'_>, raw: &RawValue, role: Role) -> Result<(Content, Map<String, Value>)> {
    if raw.get().starts_with('"') {
        return Ok((Content::Text(json::read(source, raw)?), Map::new()));
    }
    let mut fields: Fields<'_> = json::read(source, raw)?;
    let kind = fields.take("type").ok_or_else(|| source.error_at(raw.get(), "a part has no `type`"))?;
    let kind: String = json::read(source, kind)?;
    let mut string = |name: &str| fields.take(name).map(|value| json::read::<String>(source, value)).transpose();
    let (content, usual) = match kind.as_str() {
        "input_text" | "output_text" | "text" => match string("text")? {
            Some(text) => (Some(Content::Text(text)), text_kind(role)),
            None => return Err(source.error_at(raw.get(), "a text part has no `text`")),
        },
        // An assistant's message holds none.
        "input_image" if role != Role::Assistant => {
            let media = string("image_url")?.map(|url| media_of(url, "image/"));
            (media.map(Content::Media), "input_image")
        }
        "input_file" if role != Role::Assistant => {
            let media = match string("file_data")? {
                Some(data) => base64::from_data_url(&data),
                None => string("file_url")?.map(Media::url),
            };
            let usual = media.as_ref().map_or("", media_kind);
            (media.map(Content::Media), usual)
        }
        _ => (None, ""),
    };
    let Some(content) = content else {
        return Ok((Opaque::new(PART_PROVIDER, raw.get()).into(), Map::new()));
    };
    let mut more = json::rest(source, fields)?;
    if kind != usual {
        more.insert("type".to_owned(), kind.into());
    }
    Ok((content, more))
}

/// The part that is read of a text.
pub(super) fn of_text(text: &str, role: Role) -> Result<Content> {
    let source = Source::new(text);
    let raw = serde_json::from_str(&source.text).map_err(|error| source.parse_error(&source.text, &error))?;
    read(&source, raw, role).map(|(content, _)| content)
}

pub(super) fn text(text: &str, role: Role, kept_kind: Option<&str>) -> Value {
    let kind = kept_kind.filter(|kind| matches!(*kind, "input_text" | "output_text" | "text"));
    json!({"type": kind.unwrap_or(text_kind(role)), "text": text})
}

/// The part of some media; what the form cannot say of it is added to `unsaid`.
pub(super) fn media(media: &Media, kept_kind: Option<&str>, unsaid: &mut Vec<&'static str>) -> Option<Value> {
    let kind = kept_kind.filter(|kind| *kind == "input_file").unwrap_or(media_kind(media));
    match (&media.source, &media.mime_type) {
        (MediaSource::Url(url), mime_type) => {
            if mime_type.is_some() {
                unsaid.push("the MIME type of a URL");
            }
            if kind == "input_file" {
                return Some(json!({"type": kind, "file_url": url}));
            }
            if media_of(url.clone(), "image/").source != media.source {
                unsaid.push("that bytes are in a URL");
            }
            Some(json!({"type": kind, "image_url": url}))
        }
        (MediaSource::Bytes(bytes), Some(mime_type)) => {
            let url = base64::data_url(mime_type, bytes);
            if base64::from_data_url(&url).as_ref() != Some(media) {
                unsaid.push("media of a MIME type that no URL can hold");
                return None;
            }
            let field = if kind == "input_file" { "file_data" } else { "image_url" };
            Some(json!({"type": kind, field: url}))
        }
        (MediaSource::Bytes(_), None) => {
            unsaid.push("media without a MIME type");
            None
        }
    }
}

fn text_kind(role: Role) -> &'static str {
    if role == Role::Assistant { "output_text" } else { "input_text" }
}

/// An image, and whatever is at a URL of which nothing else is known, is written as an image.
fn media_kind(media: &Media) -> &'static str {
    match (&media.source, media.mime_type.as_deref()) {
        (MediaSource::Url(_), None) => "input_image",
        (_, Some(mime_type)) if mime_type.starts_with("image/") => "input_image",
        _ => "input_file",
    }
}

/// The bytes in a URL, if they are of a kind, else what is at it.
fn media_of(url: String, kind: &str) -> Media {
    let is_of_kind = |media: &Media| media.mime_type.as_ref().is_some_and(|mime_type| mime_type.starts_with(kind));
    base64::from_data_url(&url).filter(is_of_kind).unwrap_or_else(|| Media::url(url))
}
