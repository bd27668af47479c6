//! Images, sounds, videos and documents, both ways.
//!
//! rig names the kind of a medium and takes its MIME type from a list; a message has the MIME type alone. Bytes and base64 are
//! the same here; which of them it was is kept beside the part.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use chat_memory::{Content, Media, MediaSource, Opaque, Result, ResultPart};
use rig_core::completion::message::{
    Audio, AudioMediaType, Document, DocumentMediaType, DocumentSourceKind, Image, ImageMediaType, MimeType, Video,
    VideoMediaType,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::extra::{RIG, Rest, read, rest_of, value_of};

/// Inside what is kept beside a part: the kind, where the MIME type does not tell.
pub(crate) const TYPE: &str = "type";
/// How rig had the bytes, where not as base64.
const DATA: &str = "data";
/// A part of rig's own, where its text does not read back equal.
const WHOLE: &str = "whole";

/// What rig's four kinds of media have in common.
pub(crate) trait RigMedia: Serialize + DeserializeOwned + Default {
    /// The kind, as rig's JSON spells it.
    const KIND: &'static str;
    fn mime_type(&self) -> Option<&'static str>;
    fn set_mime_type(&mut self, mime_type: &str);
    fn data(&mut self) -> &mut DocumentSourceKind;
}

macro_rules! rig_media {
    ($($media:ident: $kind:literal, $media_type:ident;)*) => {$(
        impl RigMedia for $media {
            const KIND: &'static str = $kind;

            fn mime_type(&self) -> Option<&'static str> {
                self.media_type.as_ref().map(MimeType::to_mime_type)
            }

            fn set_mime_type(&mut self, mime_type: &str) {
                self.media_type = $media_type::from_mime_type(mime_type);
            }

            fn data(&mut self) -> &mut DocumentSourceKind {
                &mut self.data
            }
        }
    )*};
}
rig_media! {
    Image: "image", ImageMediaType;
    Audio: "audio", AudioMediaType;
    Video: "video", VideoMediaType;
    Document: "document", DocumentMediaType;
}

/// The MIME type and the base64 text of a `data:` URL.
fn in_url(url: &str) -> Option<(&str, &str)> {
    let (kind, base64) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some((kind.split(';').next().unwrap_or(kind), base64))
}

/// The MIME type, of the part or in its address.
pub(crate) fn mime_type_of(media: &Media) -> Option<&str> {
    let in_url = || match &media.source {
        MediaSource::Url(url) => in_url(url).map(|(mime_type, _)| mime_type),
        _ => None,
    };
    media.mime_type.as_deref().or_else(in_url)
}

/// The kind of a medium: as it was kept, or by its MIME type.
pub(crate) fn kind<'a>(media: &Media, rest: &'a Rest) -> &'a str {
    rest.get(TYPE).and_then(Value::as_str).unwrap_or(kind_of(media))
}

fn kind_of(media: &Media) -> &'static str {
    let Some(mime_type) = mime_type_of(media) else {
        return Image::KIND;
    };
    let (kind, _) = mime_type.split_once('/').unwrap_or_default();
    [Image::KIND, Audio::KIND, Video::KIND].into_iter().find(|known| *known == kind).unwrap_or(Document::KIND)
}

/// A part made of one of rig's: what there is of it here.
pub(crate) enum Part {
    Media(Media),
    Opaque(Opaque),
}

impl From<Part> for Content {
    fn from(part: Part) -> Self {
        match part {
            Part::Media(media) => media.into(),
            Part::Opaque(opaque) => opaque.into(),
        }
    }
}

impl From<Part> for ResultPart {
    fn from(part: Part) -> Self {
        match part {
            Part::Media(media) => ResultPart::Media(media),
            Part::Opaque(opaque) => ResultPart::Opaque(opaque),
        }
    }
}

/// Makes a part of a medium of rig's. One without an address and without bytes stays in rig's own form, which `whole` makes.
pub(crate) fn from_media<T, W>(mut media: T, whole: impl FnOnce(T) -> W) -> Result<(Part, Rest)>
where
    T: RigMedia,
    W: Serialize + DeserializeOwned + PartialEq,
{
    let (source, data) = match std::mem::take(media.data()) {
        DocumentSourceKind::Url(url) => {
            let is_data = in_url(&url).is_some();
            (MediaSource::Url(url), is_data.then_some("url"))
        }
        DocumentSourceKind::Raw(bytes) => (MediaSource::Bytes(bytes), Some("raw")),
        DocumentSourceKind::String(text) => (MediaSource::Bytes(text.into_bytes()), Some("string")),
        DocumentSourceKind::Base64(text) => match BASE64_STANDARD.decode(&text) {
            Ok(bytes) => (MediaSource::Bytes(bytes), None),
            Err(_) => {
                *media.data() = DocumentSourceKind::Base64(text);
                return from_whole(&whole(media));
            }
        },
        other @ (DocumentSourceKind::FileId(_) | DocumentSourceKind::Unknown) => {
            *media.data() = other;
            return from_whole(&whole(media));
        }
    };
    let mut part = Media::url(String::new());
    (part.source, part.mime_type) = (source, media.mime_type().map(str::to_owned));

    let mut rest = rest_of(&media, &["data", "media_type"])?;
    if kind_of(&part) != T::KIND {
        rest.insert(TYPE.to_owned(), T::KIND.into());
    }
    if let Some(data) = data {
        rest.insert(DATA.to_owned(), data.into());
    }
    Ok((Part::Media(part), rest))
}

/// A medium of rig's; `None` where what was kept of it does not read.
pub(crate) fn to_media<T: RigMedia>(part: &Media, mut rest: Rest) -> Option<T> {
    rest.shift_remove(TYPE);
    let data = rest.shift_remove(DATA);
    let mut media: T = if rest.is_empty() { T::default() } else { read(rest, [(DATA, json!({"type": "unknown"}))])? };
    let data = data.as_ref().and_then(Value::as_str);
    let mut mime_type = part.mime_type.as_deref();
    *media.data() = match (&part.source, data) {
        (MediaSource::Url(url), data) => match in_url(url) {
            // Providers take it as base64, and not all of them as an address.
            Some((_, base64)) if data.is_none() => {
                mime_type = mime_type_of(part);
                DocumentSourceKind::Base64(base64.to_owned())
            }
            _ => DocumentSourceKind::Url(url.clone()),
        },
        (MediaSource::Bytes(bytes), Some("raw")) => DocumentSourceKind::Raw(bytes.clone()),
        (MediaSource::Bytes(bytes), Some("string")) => {
            DocumentSourceKind::String(String::from_utf8(bytes.clone()).ok()?)
        }
        (MediaSource::Bytes(bytes), _) => DocumentSourceKind::Base64(BASE64_STANDARD.encode(bytes)),
        _ => return None,
    };
    if let Some(mime_type) = mime_type {
        media.set_mime_type(mime_type);
    }
    Some(media)
}

/// A part that only rig knows, word for word.
pub(crate) fn from_whole<W: Serialize + DeserializeOwned + PartialEq>(whole: &W) -> Result<(Part, Rest)> {
    let value = value_of(whole)?;
    let text = value.to_string();
    let mut rest = Rest::new();
    if !serde_json::from_str::<W>(&text).is_ok_and(|read| read == *whole) {
        rest.insert(WHOLE.to_owned(), value);
    }
    Ok((Part::Opaque(Opaque::new(RIG, text)), rest))
}

/// Such a part as it was; `None` for a part of another provider, and for one that does not read.
pub(crate) fn to_whole<W: DeserializeOwned>(part: &Opaque, mut rest: Rest) -> Option<W> {
    match rest.shift_remove(WHOLE) {
        Some(whole) => serde_json::from_value(whole).ok(),
        None if part.provider == RIG => serde_json::from_str(&part.json).ok(),
        None => None,
    }
}
