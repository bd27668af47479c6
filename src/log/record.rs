//! The records of a frame's payload: messages, as flat rows of small structs, in bincode.
//!
//! bincode is named here and nowhere else. A message is a head, then as many part rows as the head says (a tool result is
//! followed by rows of its own), then the entries of its metadata. Every row is decoded by borrowing from the payload, so a
//! count or a length that is wrong fails before anything is allocated for it, and rows never nest.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bincode::{BorrowDecode, Encode};
use serde_json::Value;

use super::FrameHeader;
use crate::message::{
    Content, Media, MediaSource, Message, Metadata, Opaque, Reasoning, ResultPart, Role, ToolCall, ToolResult, json,
};

/// Little-endian, integers of variable length; no row may claim more bytes than a frame can have.
type Config = bincode::config::Configuration<
    bincode::config::LittleEndian,
    bincode::config::Varint,
    bincode::config::Limit<{ u32::MAX as usize }>,
>;

const CONFIG: Config = bincode::config::standard().with_limit::<{ u32::MAX as usize }>();

/// A message of nothing: role, three options, two counts.
const SHORTEST: usize = 6;

/// Rows are generic over their texts: `&str` to decode them, bytes to walk over them, which leaves out the check for UTF-8.
#[derive(Encode, BorrowDecode)]
struct Head<T> {
    role: RoleRow,
    id: Option<T>,
    name: Option<T>,
    created_at: Option<TimeRow>,
    parts: u32,
    metadata: u32,
}

#[derive(Encode, BorrowDecode)]
enum RoleRow {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

/// A time before 1970 counts backwards from it.
#[derive(Encode, BorrowDecode)]
struct TimeRow {
    before_1970: bool,
    seconds: u64,
    nanoseconds: u32,
}

#[derive(Encode, BorrowDecode)]
enum PartRow<T, B> {
    Text(T),
    MediaUrl {
        mime_type: Option<T>,
        url: T,
    },
    MediaBytes {
        mime_type: Option<T>,
        bytes: B,
    },
    ToolCall {
        id: T,
        name: T,
        arguments: T,
    },
    /// Followed by `parts` rows that are no tool calls, results or reasoning.
    ToolResult {
        call_id: T,
        name: Option<T>,
        is_error: bool,
        parts: u32,
    },
    Reasoning {
        text: T,
        signature: Option<T>,
        redacted: Option<T>,
    },
    Opaque {
        provider: T,
        json: T,
    },
}

#[derive(Encode, BorrowDecode)]
struct EntryRow<T> {
    key: T,
    value: ValueRow<T>,
}

/// Plain values as they are; everything else as its JSON text.
#[derive(Encode, BorrowDecode)]
enum ValueRow<T> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(T),
    Json(T),
}

type Part<'a> = PartRow<&'a str, &'a [u8]>;

/// Why messages cannot be encoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EncodeError;

/// Why a payload whose checksum holds cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DecodeError;

/// Appends the records of `messages`.
pub(crate) fn encode(messages: &[Message], payload: &mut Vec<u8>) -> Result<(), EncodeError> {
    messages.iter().try_for_each(|message| encode_message(message, payload))
}

/// The messages of a payload, found but not yet decoded: a reader that wants the newest few decodes no others.
pub(crate) struct Records<'a> {
    payload: &'a [u8],
    /// Where each message begins.
    starts: Vec<u32>,
}

impl<'a> Records<'a> {
    /// Finds the `count` messages of a payload, which must be used up by them.
    ///
    /// Walks all rows without keeping any, so that a payload which breaks off at its end costs no memory before it is
    /// refused, and no count that the bytes do not bear out is ever reserved for.
    pub(crate) fn find(payload: &'a [u8], count: u32) -> Result<Self, DecodeError> {
        if count as usize > payload.len() / SHORTEST {
            return Err(DecodeError);
        }
        let mut starts = Vec::with_capacity(count as usize);
        let mut rows = Rows(payload);
        for _ in 0..count {
            let start = u32::try_from(payload.len() - rows.0.len()).map_err(|_| DecodeError)?;
            starts.push(start);
            rows.skip_message()?;
        }
        if rows.0.is_empty() { Ok(Self { payload, starts }) } else { Err(DecodeError) }
    }

    /// All messages, oldest first; decoding one can still fail.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = Result<Message, DecodeError>> + ExactSizeIterator {
        self.starts.iter().map(|start| self.rows(*start)?.message())
    }

    /// All messages that can be decoded with the sequence numbers of their frame, without keeping hold of this.
    pub(crate) fn numbered(self, header: &FrameHeader) -> impl DoubleEndedIterator<Item = (u64, Message)> + use<'a> {
        let Self { payload, starts } = self;
        header.seqs().zip(starts).filter_map(move |(seq, start)| {
            let mut rows = payload.get(start as usize..).map(Rows)?;
            Some((seq, rows.message().ok()?))
        })
    }

    /// The role of each message, oldest first, after all of the message was checked: it decodes if this is no error. Nothing of
    /// it is kept, for what a row becomes takes many times the memory of the shortest rows.
    pub(crate) fn checked_roles(&self) -> impl Iterator<Item = Result<Role, DecodeError>> {
        self.starts.iter().map(|start| self.rows(*start)?.check_message())
    }

    /// The newest message whose role is wanted, of those up to a position.
    pub(crate) fn newest(&self, upto: u64, wanted: impl Fn(Role) -> bool) -> Option<Result<Message, DecodeError>> {
        let old_enough = usize::try_from(upto).ok().and_then(|upto| self.starts.get(..=upto)).unwrap_or(&self.starts);
        let role = |start: u32| self.rows(start)?.next::<Head<&[u8]>>().map(|head| Role::from(head.role));
        let newest = old_enough.iter().rfind(|start| role(**start).is_ok_and(&wanted))?;
        Some(self.rows(*newest).and_then(|mut rows| rows.message()))
    }

    fn rows(&self, start: u32) -> Result<Rows<'a>, DecodeError> {
        self.payload.get(start as usize..).map(Rows).ok_or(DecodeError)
    }
}

/// Takes rows off the front.
struct Rows<'a>(&'a [u8]);

impl<'a> Rows<'a> {
    fn next<T: BorrowDecode<'a, ()>>(&mut self) -> Result<T, DecodeError> {
        let (row, used) = bincode::borrow_decode_from_slice(self.0, CONFIG).map_err(|_| DecodeError)?;
        self.0 = self.0.get(used..).ok_or(DecodeError)?;
        Ok(row)
    }

    fn skip_message(&mut self) -> Result<(), DecodeError> {
        let head: Head<&[u8]> = self.next()?;
        for _ in 0..head.parts {
            if let PartRow::<&[u8], &[u8]>::ToolResult { parts, .. } = self.next()? {
                for _ in 0..parts {
                    self.next::<PartRow<&[u8], &[u8]>>()?;
                }
            }
        }
        for _ in 0..head.metadata {
            self.next::<EntryRow<&[u8]>>()?;
        }
        Ok(())
    }

    /// The role of a message that [`message`](Self::message) would decode.
    fn check_message(&mut self) -> Result<Role, DecodeError> {
        let Head::<&str> { role, created_at, parts, metadata, .. } = self.next()?;
        created_at.map(SystemTime::try_from).transpose()?;
        for _ in 0..parts {
            if let PartRow::ToolResult { parts, .. } = self.next::<Part<'_>>()? {
                for _ in 0..parts {
                    self.next::<Part<'_>>()?.check_in_result()?;
                }
            }
        }
        for _ in 0..metadata {
            self.next::<EntryRow<&str>>()?.value.check()?;
        }
        Ok(role.into())
    }

    /// Capacities are reserved as the rows say: they were walked before.
    fn message(&mut self) -> Result<Message, DecodeError> {
        let Head::<&str> { role, id, name, created_at, parts, metadata } = self.next()?;
        let mut content = Vec::with_capacity(parts as usize);
        for _ in 0..parts {
            content.push(self.part()?);
        }
        let mut entries = Vec::with_capacity(metadata as usize);
        for _ in 0..metadata {
            let EntryRow::<&str> { key, value } = self.next()?;
            entries.push((key.to_owned(), value.try_into()?));
        }
        let created_at = created_at.map(SystemTime::try_from).transpose()?;
        let (id, name) = (id.map(str::to_owned), name.map(str::to_owned));
        Ok(Message::of_fields(role.into(), content, id, name, created_at, Metadata::from_entries(entries)))
    }

    fn part(&mut self) -> Result<Content, DecodeError> {
        Ok(match self.next::<Part<'_>>()? {
            PartRow::ToolCall { id, name, arguments } => Content::ToolCall(ToolCall::new(id, name, arguments)),
            PartRow::ToolResult { call_id, name, is_error, parts } => {
                let mut result = ToolResult::new(call_id);
                result.name = name.map(str::to_owned);
                result.is_error = is_error;
                result.parts.reserve_exact(parts as usize);
                for _ in 0..parts {
                    result.parts.push(self.next::<Part<'_>>()?.try_into()?);
                }
                Content::ToolResult(result)
            }
            PartRow::Reasoning { text, signature, redacted } => {
                let mut reasoning = Reasoning::new(text);
                reasoning.signature = signature.map(str::to_owned);
                reasoning.redacted = redacted.map(str::to_owned);
                Content::Reasoning(reasoning)
            }
            plain => match ResultPart::try_from(plain)? {
                ResultPart::Text(text) => Content::Text(text),
                ResultPart::Media(media) => Content::Media(media),
                ResultPart::Opaque(opaque) => Content::Opaque(opaque),
            },
        })
    }
}

fn encode_message(message: &Message, payload: &mut Vec<u8>) -> Result<(), EncodeError> {
    let head = Head {
        role: message.role().into(),
        id: message.id(),
        name: message.name(),
        created_at: message.created_at().map(TimeRow::from),
        parts: count(message.content().len())?,
        metadata: count(message.metadata().len())?,
    };
    put(head, payload)?;
    for part in message.content() {
        match part {
            Content::Text(text) => put(Part::Text(text), payload)?,
            Content::Media(media) => put(Part::from(media), payload)?,
            Content::ToolCall(ToolCall { id, name, arguments }) => {
                put(Part::ToolCall { id, name, arguments }, payload)?;
            }
            Content::ToolResult(ToolResult { call_id, name, parts, is_error }) => {
                let (name, is_error, rows) = (name.as_deref(), *is_error, count(parts.len())?);
                put(Part::ToolResult { call_id, name, is_error, parts: rows }, payload)?;
                for part in parts {
                    put(Part::from(part), payload)?;
                }
            }
            Content::Reasoning(Reasoning { text, signature, redacted }) => {
                let (signature, redacted) = (signature.as_deref(), redacted.as_deref());
                put(Part::Reasoning { text, signature, redacted }, payload)?;
            }
            Content::Opaque(Opaque { provider, json }) => put(Part::Opaque { provider, json }, payload)?,
        }
    }
    for (key, value) in message.metadata().iter() {
        let json;
        let value = match plain(value) {
            Some(plain) => plain,
            None => {
                json = value.to_string();
                ValueRow::Json(json.as_str())
            }
        };
        put(EntryRow { key, value }, payload)?;
    }
    Ok(())
}

/// The value as a row of its own, where that says it exactly.
fn plain(value: &Value) -> Option<ValueRow<&str>> {
    Some(match value {
        Value::Null => ValueRow::Null,
        Value::Bool(value) => ValueRow::Bool(*value),
        Value::String(value) => ValueRow::Text(value),
        Value::Number(number) => {
            if let Some(value) = number.as_u64() {
                ValueRow::Unsigned(value)
            } else if let Some(value) = number.as_i64() {
                ValueRow::Signed(value)
            } else {
                // With serde_json's `arbitrary_precision` a number can be more than a float says.
                let value = number.as_f64()?;
                (serde_json::Number::from_f64(value).as_ref() == Some(number)).then_some(ValueRow::Float(value))?
            }
        }
        Value::Array(_) | Value::Object(_) => return None,
    })
}

fn put(row: impl Encode, payload: &mut Vec<u8>) -> Result<(), EncodeError> {
    bincode::encode_into_std_write(row, payload, CONFIG).map(drop).map_err(|_| EncodeError)
}

fn count(len: usize) -> Result<u32, EncodeError> {
    u32::try_from(len).map_err(|_| EncodeError)
}

impl From<Role> for RoleRow {
    fn from(role: Role) -> Self {
        match role {
            Role::System => RoleRow::System,
            Role::Developer => RoleRow::Developer,
            Role::User => RoleRow::User,
            Role::Assistant => RoleRow::Assistant,
            Role::Tool => RoleRow::Tool,
        }
    }
}

impl From<RoleRow> for Role {
    fn from(role: RoleRow) -> Self {
        match role {
            RoleRow::System => Role::System,
            RoleRow::Developer => Role::Developer,
            RoleRow::User => Role::User,
            RoleRow::Assistant => Role::Assistant,
            RoleRow::Tool => Role::Tool,
        }
    }
}

impl From<SystemTime> for TimeRow {
    fn from(time: SystemTime) -> Self {
        let (before_1970, distance) = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => (false, after),
            Err(before) => (true, before.duration()),
        };
        Self { before_1970, seconds: distance.as_secs(), nanoseconds: distance.subsec_nanos() }
    }
}

impl TryFrom<TimeRow> for SystemTime {
    type Error = DecodeError;

    fn try_from(row: TimeRow) -> Result<Self, DecodeError> {
        if row.nanoseconds >= 1_000_000_000 {
            return Err(DecodeError);
        }
        let distance = Duration::new(row.seconds, row.nanoseconds);
        let time = if row.before_1970 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
        time.ok_or(DecodeError)
    }
}

impl<'a> From<&'a Media> for Part<'a> {
    fn from(media: &'a Media) -> Self {
        let mime_type = media.mime_type.as_deref();
        match &media.source {
            MediaSource::Url(url) => PartRow::MediaUrl { mime_type, url },
            MediaSource::Bytes(bytes) => PartRow::MediaBytes { mime_type, bytes },
        }
    }
}

impl<'a> From<&'a ResultPart> for Part<'a> {
    fn from(part: &'a ResultPart) -> Self {
        match part {
            ResultPart::Text(text) => PartRow::Text(text),
            ResultPart::Media(media) => Part::from(media),
            ResultPart::Opaque(Opaque { provider, json }) => PartRow::Opaque { provider, json },
        }
    }
}

impl Part<'_> {
    /// Whether it may be part of a result.
    fn check_in_result(&self) -> Result<(), DecodeError> {
        match self {
            PartRow::ToolCall { .. } | PartRow::ToolResult { .. } | PartRow::Reasoning { .. } => Err(DecodeError),
            PartRow::Text(_) | PartRow::MediaUrl { .. } | PartRow::MediaBytes { .. } | PartRow::Opaque { .. } => Ok(()),
        }
    }
}

impl ValueRow<&str> {
    /// Whether there is such a value.
    fn check(&self) -> Result<(), DecodeError> {
        match self {
            ValueRow::Float(value) => value.is_finite().then_some(()).ok_or(DecodeError),
            ValueRow::Json(text) => json::check(text).map_err(|_| DecodeError),
            _ => Ok(()),
        }
    }
}

impl TryFrom<Part<'_>> for ResultPart {
    type Error = DecodeError;

    fn try_from(row: Part<'_>) -> Result<Self, DecodeError> {
        let media = |mut media: Media, mime_type: Option<&str>| {
            media.mime_type = mime_type.map(str::to_owned);
            ResultPart::Media(media)
        };
        Ok(match row {
            PartRow::Text(text) => ResultPart::Text(text.to_owned()),
            PartRow::MediaUrl { mime_type, url } => media(Media::url(url), mime_type),
            PartRow::MediaBytes { mime_type, bytes } => media(Media::bytes("", bytes), mime_type),
            PartRow::Opaque { provider, json } => ResultPart::Opaque(Opaque::new(provider, json)),
            PartRow::ToolCall { .. } | PartRow::ToolResult { .. } | PartRow::Reasoning { .. } => {
                return Err(DecodeError);
            }
        })
    }
}

impl TryFrom<ValueRow<&str>> for Value {
    type Error = DecodeError;

    fn try_from(row: ValueRow<&str>) -> Result<Self, DecodeError> {
        Ok(match row {
            ValueRow::Null => Value::Null,
            ValueRow::Bool(value) => value.into(),
            ValueRow::Unsigned(value) => value.into(),
            ValueRow::Signed(value) => value.into(),
            ValueRow::Float(value) => serde_json::Number::from_f64(value).ok_or(DecodeError)?.into(),
            ValueRow::Text(value) => value.into(),
            ValueRow::Json(json) => json::parse(json).map_err(|_| DecodeError)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn every_kind() -> Vec<Message> {
        let time = |seconds: i64, nanos| {
            let distance = Duration::new(seconds.unsigned_abs(), nanos);
            if seconds < 0 { UNIX_EPOCH - distance } else { UNIX_EPOCH + distance }
        };
        vec![
            Message::system("s"),
            Message::developer("").with_created_at(time(1_764_000_000, 999_999_999)),
            Message::user("größer 漢字 👩‍👩‍👧‍👦 \u{0} \u{202e}abc").with_name("Ada").with_id(""),
            Message::new(Role::Assistant, []).with_created_at(time(-5, 1)),
            Message::assistant("text").with_tool_call("c1", "f", "{broken").with_tool_call("c1", "g", ""),
            Message::assistant("")
                .with_content(Reasoning::new("thought").with_signature("sig"))
                .with_content(Reasoning::new("").with_redacted("sealed"))
                .with_content(Opaque::new("openai", "{\"type\": \"x\",  \"y\":1}")),
            Message::user("look")
                .with_media(Media::url("https://example.org/a.png"))
                .with_media(Media::url("data:,").with_mime_type("text/plain"))
                .with_media(Media::bytes("image/png", [0, 255, 128]))
                .with_media(Media::bytes("", [])),
            Message::new(Role::Tool, [])
                .with_content(
                    ToolResult::new("c1")
                        .with_name("f")
                        .with_text("a")
                        .with_part(ResultPart::Media(Media::bytes("image/png", [1])))
                        .with_part(ResultPart::Opaque(Opaque::new("x", "null")))
                        .with_error(),
                )
                .with_content(ToolResult::new("c1")),
            Message::user("m")
                .with_metadata("z", json!(null))
                .with_metadata("a", u64::MAX)
                .with_metadata("i", i64::MIN)
                .with_metadata("f", 0.1 + 0.2)
                .with_metadata("g", -0.0)
                .with_metadata("", true)
                .with_metadata("s", "text")
                .with_metadata("n", json!({"b": [1, 2.5, {"a": null}], "a": u64::MAX, "e": 1e300})),
        ]
    }

    fn decode(payload: &[u8], count: u32) -> Result<Vec<Message>, DecodeError> {
        Records::find(payload, count)?.iter().collect()
    }

    fn encoded(messages: &[Message]) -> Vec<u8> {
        let mut payload = Vec::new();
        encode(messages, &mut payload).unwrap();
        payload
    }

    #[test]
    fn every_kind_of_content_comes_back_equal() {
        let messages = every_kind();
        let decoded = decode(&encoded(&messages), messages.len() as u32).unwrap();
        assert_eq!(decoded, messages);
        // Equality of JSON objects overlooks the order of their keys.
        let texts = |messages: &[Message]| -> Vec<String> {
            messages.iter().flat_map(|message| message.metadata().iter().map(|(k, v)| format!("{k}{v}"))).collect()
        };
        assert_eq!(texts(&decoded), texts(&messages));
    }

    #[test]
    fn a_payload_must_hold_its_messages_and_nothing_more() {
        let payload = encoded(&every_kind());
        let count = every_kind().len() as u32;
        assert_eq!(decode(&payload, count - 1), Err(DecodeError));
        assert_eq!(decode(&payload, count + 1), Err(DecodeError));
        assert_eq!(decode(&[&payload[..], &[0]].concat(), count), Err(DecodeError));
        assert_eq!(decode(&[], u32::MAX), Err(DecodeError));
        for cut in 0..payload.len() {
            assert_eq!(decode(&payload[..cut], count), Err(DecodeError), "{cut}");
        }
    }

    #[test]
    fn no_bytes_make_it_panic() {
        // A payload only reaches this after its checksum held; it has to stand any bytes all the same.
        let payload = encoded(&every_kind());
        for bit in 0..payload.len() * 8 {
            let mut payload = payload.clone();
            payload[bit / 8] ^= 1 << (bit % 8);
            let _ = decode(&payload, every_kind().len() as u32);
        }
        let mut state = 1_u64;
        for len in 0..10_000 {
            let bytes: Vec<u8> = (0..len % 64)
                .map(|_| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 56) as u8
                })
                .collect();
            let _ = decode(&bytes, (state >> 33) as u32);
        }
    }

    #[test]
    fn the_shortest_message_is_as_long_as_the_bound_says() {
        assert_eq!(encoded(&[Message::new(Role::Tool, [])]).len(), SHORTEST);
    }

    #[test]
    fn the_newest_of_a_role_is_found() {
        let messages = [Message::user("1"), Message::system("s"), Message::user("2"), Message::assistant("a")];
        let payload = encoded(&messages);
        let records = Records::find(&payload, 4).unwrap();
        let newest = |wanted: fn(Role) -> bool| records.newest(u64::MAX, wanted).map(Result::unwrap);
        assert_eq!(newest(|role| role == Role::User), Some(messages[2].clone()));
        assert_eq!(newest(Role::is_system), Some(messages[1].clone()));
        assert_eq!(newest(|role| role == Role::Tool), None);
        let user = records.newest(1, |role| role == Role::User).map(Result::unwrap);
        assert_eq!(user, Some(messages[0].clone()));
    }

    /// Who keeps no message has to find wrong what cannot be decoded, and nothing else.
    #[test]
    fn a_check_agrees_with_decoding_whatever_byte_is_harmed() {
        let messages = every_kind();
        let payload = encoded(&messages);
        let count = messages.len() as u32;
        let (mut decodes, mut does_not) = (0, 0);
        for at in 0..payload.len() {
            for value in 0..=u8::MAX {
                let mut harmed = payload.clone();
                harmed[at] = value;
                let Ok(records) = Records::find(&harmed, count) else { continue };
                let checked: Vec<Result<Role, DecodeError>> = records.checked_roles().collect();
                let decoded: Vec<Result<Role, DecodeError>> =
                    records.iter().map(|message| message.map(|message| message.role())).collect();
                assert_eq!(checked, decoded, "{value} at {at}");
                decodes += decoded.iter().filter(|role| role.is_ok()).count();
                does_not += decoded.iter().filter(|role| role.is_err()).count();
            }
        }
        assert!(decodes > 1_000 && does_not > 1_000, "{decodes} {does_not}");
    }

    #[test]
    fn values_that_are_no_values_are_refused() {
        let message = Message::user("m").with_metadata("f", 1.5).with_metadata("n", json!({"b": 1}));
        let payload = encoded(std::slice::from_ref(&message));
        let find = |wanted: &[u8]| payload.windows(wanted.len()).position(|bytes| bytes == wanted).unwrap();
        let mut not_finite = payload.clone();
        not_finite[find(&1.5_f64.to_le_bytes())..][..8].copy_from_slice(&f64::NAN.to_le_bytes());
        let mut not_json = payload.clone();
        not_json[find(b"{\"b\"")] = b'[';
        for harmed in [not_finite, not_json] {
            assert!(decode(&harmed, 1).is_err());
            assert!(Records::find(&harmed, 1).unwrap().checked_roles().all(|role| role.is_err()));
        }
    }

    #[test]
    fn simple_values_are_no_json_texts() {
        let message =
            Message::user("m").with_metadata("yes", true).with_metadata("half", 0.5).with_metadata("n", 12_345);
        let payload = encoded(std::slice::from_ref(&message));
        for text in ["true", "0.5", "12345"] {
            assert!(!payload.windows(text.len()).any(|bytes| bytes == text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn as_many_messages_fit_as_are_there() {
        let shortest = vec![Message::new(Role::User, []); 10];
        let payload = encoded(&shortest);
        assert_eq!(payload.len(), 10 * SHORTEST);
        assert_eq!(decode(&payload, 10).unwrap(), shortest);
        assert!(decode(&payload, 11).is_err());
    }
}
