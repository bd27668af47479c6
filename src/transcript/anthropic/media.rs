//! Images and documents.

use serde_json::{Value, json};

use super::super::base64;
use crate::message::{Media, MediaSource};

const PDF: &str = "application/pdf";
const PLAIN: &str = "text/plain";

/// The block of some media; the error says what the form has no word for.
pub(super) fn block(media: &Media) -> Result<Value, &'static str> {
    let mime_type = media.mime_type.as_deref();
    let (kind, source) = match (&media.source, mime_type) {
        (MediaSource::Url(url), None) => ("image", json!({"type": "url", "url": url})),
        (MediaSource::Url(url), Some(PDF)) => ("document", json!({"type": "url", "url": url})),
        (MediaSource::Url(_), Some(_)) => return Err("media at a URL with another MIME type than application/pdf"),
        (MediaSource::Bytes(_), None) => return Err("media without a MIME type"),
        (MediaSource::Bytes(bytes), Some(mime_type)) => match std::str::from_utf8(bytes) {
            Ok(text) if mime_type == PLAIN => {
                ("document", json!({"type": "text", "media_type": mime_type, "data": text}))
            }
            _ => {
                let kind = if mime_type.starts_with("image/") { "image" } else { "document" };
                (kind, json!({"type": "base64", "media_type": mime_type, "data": base64::encode(bytes)}))
            }
        },
    };
    Ok(json!({"type": kind, "source": source}))
}

/// What a source says, of a block of some kind.
pub(super) struct Source {
    pub(super) kind: String,
    pub(super) media_type: Option<String>,
    pub(super) data: Option<String>,
    pub(super) url: Option<String>,
}

impl Source {
    /// The media, if [`block`] makes the same block of it.
    pub(super) fn into_media(self, block_kind: &str) -> Option<Media> {
        let is_image = block_kind == "image";
        match (self.kind.as_str(), self.media_type, self.data, self.url) {
            ("url", None, None, Some(url)) if is_image => Some(Media::url(url)),
            ("url", None, None, Some(url)) => Some(Media::url(url).with_mime_type(PDF)),
            ("text", Some(mime_type), Some(text), None) if mime_type == PLAIN && !is_image => {
                Some(Media::bytes(mime_type, text))
            }
            ("base64", Some(mime_type), Some(data), None) if mime_type.starts_with("image/") == is_image => {
                let bytes = base64::decode(&data)?;
                let is_said_as_text = mime_type == PLAIN && std::str::from_utf8(&bytes).is_ok();
                (!is_said_as_text).then(|| Media::bytes(mime_type, bytes))
            }
            _ => None,
        }
    }
}
