//! Everything that rig can say, and by chance.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::strategy::Union;
use rig_core::completion::Message;
use rig_core::completion::message::*;
use serde_json::{Map, Value, json};

/// A strategy for a type of rig's, with one for each variant. Where rig has another one, this does not compile; of types that may
/// grow, `of_types_that_may_grow` finds out.
macro_rules! every {
    ($(#[$open:meta])? $name:ident: $type:ident { $($variant:ident => $strategy:expr,)* }) => {
        pub fn $name() -> BoxedStrategy<$type> {
            $(#[$open])?
            const _: fn(&$type) = |value| match value {
                $($type::$variant { .. } => {})*
            };
            Union::new([$($strategy.boxed()),*]).boxed()
        }
    };
    (open $name:ident: $type:ident { $($variant:ident => $strategy:expr,)* }) => {
        pub fn $name() -> BoxedStrategy<$type> {
            Union::new([$($strategy.boxed()),*]).boxed()
        }
    };
}

every! { message: Message {
    System => any::<String>().prop_map(|content| Message::System { content }),
    User => vec(user_content(), 0..5).prop_map(|content| Message::User { content }),
    Assistant => turn(vec(assistant_content(), 0..5)).prop_map(Message::Assistant),
} }

every! { user_content: UserContent {
    Text => text().prop_map(UserContent::Text),
    ToolResult => tool_result(call_id()).prop_map(UserContent::ToolResult),
    Image => image().prop_map(UserContent::Image),
    Audio => (data(), option::of(audio_type())).prop_map(|(data, media_type)| UserContent::Audio(Audio { data, media_type })),
    Video => (data(), option::of(video_type()), params()).prop_map(|(data, media_type, additional_params)| {
        UserContent::Video(Video { data, media_type, additional_params })
    }),
    Document => (data(), option::of(document_type()), params()).prop_map(|(data, media_type, additional_params)| {
        UserContent::Document(Document { data, media_type, additional_params })
    }),
} }

every! { open assistant_content: AssistantContent {
    Text => text().prop_map(AssistantContent::Text),
    ToolCall => tool_call(call_id()),
    Reasoning => reasoning(),
    Image => image().prop_map(AssistantContent::Image),
    Opaque => (json(), any::<bool>()).prop_map(|(item, replay)| AssistantContent::Opaque(Opaque { item, replay })),
} }

every! { result_content: ToolResultContent {
    Text => text().prop_map(ToolResultContent::Text),
    Image => image().prop_map(ToolResultContent::Image),
    Json => json().prop_map(|value| ToolResultContent::Json { value }),
} }

every! { data: DocumentSourceKind {
    Url => prop_oneof![any::<String>(), Just("data:audio/wav;base64,AAEC".to_owned())].prop_map(DocumentSourceKind::Url),
    Base64 => prop_oneof![
        any::<String>(),
        "[A-Za-z0-9+/]{0,9}={0,2}",
        vec(any::<[u8; 3]>(), 0..4).prop_map(|bytes| bytes.iter().map(|[a, ..]| if a % 2 == 0 { "AbC+" } else { "/9z0" }).collect()),
    ].prop_map(DocumentSourceKind::Base64),
    FileId => any::<String>().prop_map(DocumentSourceKind::FileId),
    Raw => vec(any::<u8>(), 0..20).prop_map(DocumentSourceKind::Raw),
    String => any::<String>().prop_map(DocumentSourceKind::String),
    Unknown => Just(DocumentSourceKind::Unknown),
} }

macro_rules! units {
    ($($name:ident: $type:ident { $($variant:ident)* })*) => {$(
        every! { $name: $type { $($variant => Just($type::$variant),)* } }
    )*};
}
units! {
    image_type: ImageMediaType { JPEG PNG GIF WEBP HEIC HEIF SVG }
    document_type: DocumentMediaType { PDF TXT RTF HTML CSS MARKDOWN CSV XML Javascript Python }
    audio_type: AudioMediaType { WAV MP3 AIFF AAC OGG FLAC M4A PCM16 PCM24 }
    video_type: VideoMediaType { AVI MP4 MPEG MOV WEBM }
    detail: ImageDetail { Low High Auto }
}

every! { call_id: CallId {
    // Some come twice.
    Provider => prop_oneof![Just("call-1".to_owned()), any::<String>()].prop_map(|id| {
        CallId::Provider(ProviderCallId::new(id).unwrap_or_else(|| ProviderCallId::new("call-2").unwrap()))
    }),
    Local => any::<u128>().prop_map(local_id),
} }

fn local_id(bits: u128) -> CallId {
    let hex = format!("{bits:032x}");
    let uuid = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
    CallId::Local(serde_json::from_value(uuid.into()).unwrap())
}

every! { open stop: StopReason {
    Stop => Just(StopReason::Stop),
    Length => Just(StopReason::Length),
    ToolUse => Just(StopReason::ToolUse),
    Error => any::<String>().prop_map(StopReason::Error),
    Aborted => any::<String>().prop_map(StopReason::Aborted),
} }

every! { open location: SourceLocation {
    Document => (option::of(any::<u32>()), option::of(any::<String>()), option::of(document_range()))
        .prop_map(|(index, id, within)| SourceLocation::Document { index, id, within }),
    Url => any::<String>().prop_map(|url| SourceLocation::Url { url }),
    File => (any::<String>(), option::of(any::<String>()), option::of(any::<String>()))
        .prop_map(|(file_id, filename, container_id)| SourceLocation::File { file_id, filename, container_id }),
    SearchResult => (any::<u32>(), any::<String>(), option::of(any::<std::ops::Range<u32>>()))
        .prop_map(|(index, source, blocks)| SourceLocation::SearchResult { index, source, blocks }),
    ToolOutput => any::<String>().prop_map(|id| SourceLocation::ToolOutput { id }),
} }

every! { open document_range: DocumentRange {
    Chars => any::<std::ops::Range<u64>>().prop_map(DocumentRange::Chars),
    Pages => any::<std::ops::Range<u32>>().prop_map(DocumentRange::Pages),
    Blocks => any::<std::ops::Range<u32>>().prop_map(DocumentRange::Blocks),
} }

/// Any JSON that is not too deep, of any keys.
pub fn json() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any::<String>(), inner), 0..4).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
    .boxed()
}

/// What rig's own JSON keeps: there is no telling `null` from nothing.
fn params() -> BoxedStrategy<Option<Value>> {
    json().prop_map(|params| Some(params).filter(|params| !params.is_null())).boxed()
}

fn object() -> BoxedStrategy<Map<String, Value>> {
    vec((any::<String>(), json()), 0..4).prop_map(|entries| entries.into_iter().collect()).boxed()
}

/// A provider's item, of this block or of another one.
fn native() -> BoxedStrategy<Option<Native>> {
    option::of((json(), any::<u64>()))
        .prop_map(|native| native.map(|(item, of)| Native { item, fingerprint: Fingerprint::of(&of) }))
        .boxed()
}

/// Whether the item is the block's own.
fn with_own_item(block: AssistantContent, item: Option<Value>) -> AssistantContent {
    match item {
        Some(item) => block.with_native(item),
        None => block,
    }
}

pub fn text() -> BoxedStrategy<Text> {
    let citation = (vec(source(), 0..3), option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>())));
    (any::<String>(), vec(citation, 0..3), native(), any::<bool>())
        .prop_map(|(said, citations, native, is_edited)| {
            let text = Text::new(said);
            let mut ends: Vec<usize> = text.text.char_indices().map(|(at, _)| at).collect();
            ends.push(text.text.len());
            let citations: Vec<Citation> = citations
                .into_iter()
                .map(|(sources, span)| {
                    let mut citation = Citation::new(sources);
                    let (one, other) = span.map_or((0, 0), |(one, other)| (*one.get(&ends), *other.get(&ends)));
                    citation.span = span.and_then(|_| text.span(one.min(other)..one.max(other)));
                    citation
                })
                .collect();
            let mut text = text.with_citations(citations);
            text.native = native;
            if is_edited {
                text.text.push('.');
            }
            text
        })
        .boxed()
}

fn source() -> BoxedStrategy<Source> {
    let text = || option::of(any::<String>());
    (location(), text(), text(), option::of(0.0_f32..=1.0))
        .prop_map(|(location, title, cited_text, confidence)| {
            let mut source = Source::new(location);
            (source.title, source.cited_text, source.confidence) = (title, cited_text, confidence);
            source
        })
        .boxed()
}

fn image() -> BoxedStrategy<Image> {
    (data(), option::of(image_type()), option::of(detail()), native())
        .prop_map(|(data, media_type, detail, native)| Image { data, media_type, detail, native })
        .boxed()
}

fn reasoning() -> BoxedStrategy<AssistantContent> {
    let items = prop_oneof![
        json(),
        any::<String>().prop_map(|it| json!({"type": "thinking", "thinking": "hm", "signature": it})),
        any::<String>().prop_map(|it| json!({"type": "redacted_thinking", "data": it})),
        any::<String>().prop_map(|it| json!({"type": "reasoning", "summary": [], "encrypted_content": it})),
    ];
    (any::<String>(), any::<bool>(), native(), option::of(items))
        .prop_map(|(text, redacted, native, item)| {
            with_own_item(AssistantContent::Reasoning(Reasoning { text, redacted, native }), item)
        })
        .boxed()
}

/// A tool's name, which rig does not let be empty.
fn name() -> BoxedStrategy<ToolName> {
    prop_oneof![Just("f".to_owned()), any::<String>()]
        .prop_map(|name| ToolName::new(format!("{name}_")).unwrap())
        .boxed()
}

fn function() -> BoxedStrategy<ToolFunction> {
    prop_oneof![
        (name(), json()).prop_map(|(name, arguments)| ToolFunction::new(name, arguments)),
        (name(), any::<String>()).prop_map(|(name, text)| ToolFunction::parse(name, &text)),
        (name(), object(), any::<prop::sample::Index>()).prop_map(|(name, object, end)| {
            // What a model wrote until it was cut off.
            let text = Value::Object(object).to_string();
            let end = end.index(text.len() + 1);
            ToolFunction::parse(name, text.get(..end).unwrap_or(&text))
        }),
        (name(), object(), option::of(any::<String>()))
            .prop_map(|(name, arguments, invalid_arguments)| { ToolFunction { name, arguments, invalid_arguments } }),
    ]
    .boxed()
}

pub fn tool_call(id: impl Strategy<Value = CallId> + 'static) -> BoxedStrategy<AssistantContent> {
    (id, function(), native(), option::of(json()))
        .prop_map(|(id, function, native, item)| {
            with_own_item(AssistantContent::ToolCall(ToolCall { id, function, native }), item)
        })
        .boxed()
}

pub fn tool_result(call: impl Strategy<Value = CallId> + 'static) -> BoxedStrategy<ToolResult> {
    (call, name(), vec(result_content(), 0..4), any::<bool>())
        .prop_map(|(call, name, content, is_error)| ToolResult { call, name, content, is_error })
        .boxed()
}

pub fn turn(content: impl Strategy<Value = Vec<AssistantContent>> + 'static) -> BoxedStrategy<AssistantMessage> {
    let text = || option::of(any::<String>());
    let origin = (any::<String>(), any::<String>(), any::<String>(), text(), text(), option::of(any::<u64>()))
        .prop_map(|(api, provider, model, response_model, response_id, context)| Origin {
            api: api.into(),
            provider,
            model,
            response_model,
            response_id,
            context: context.map(|context| Fingerprint::of(&context)),
        });
    (content, option::of(origin), option::of(stop()))
        .prop_map(|(content, origin, stop)| AssistantMessage::new(content).with_origin(origin).with_stop(stop))
        .boxed()
}

/// A conversation as rig's agents have it: each call is answered, in the next message, and no id comes twice.
pub fn conversation() -> BoxedStrategy<Vec<Message>> {
    let question = || {
        let part = user_content().prop_filter("no result", |part| !matches!(part, UserContent::ToolResult(_)));
        vec(part, 1..3).prop_map(|content| Message::User { content })
    };
    let block = || {
        let answer =
            assistant_content().prop_filter("no call", |block| !matches!(block, AssistantContent::ToolCall(_)));
        prop_oneof![2 => answer, 1 => tool_call(call_id())]
    };
    let step = (turn(vec(block(), 1..4)), vec(tool_result(call_id()), 3), option::of((user_content(), 0..4_usize)));
    vec((question(), vec(step, 0..3)), 0..3)
        .prop_map(|turns| {
            let mut ids = 0_u128;
            let mut said = Vec::new();
            'turns: for (question, steps) in turns {
                said.push(question);
                for (mut turn, mut results, beside) in steps {
                    // Without a word or a call it would not be sent.
                    turn.content.push(AssistantContent::text("said"));
                    let mut answers = Vec::new();
                    for block in &mut turn.content {
                        if let AssistantContent::ToolCall(call) = block {
                            ids += 1;
                            call.id = match &call.id {
                                CallId::Provider(_) => CallId::from_wire(format!("call-{ids}")),
                                CallId::Local(_) => local_id(ids),
                            };
                            let mut result = results.pop().unwrap();
                            result.call = call.id.clone();
                            answers.push(UserContent::ToolResult(result));
                        }
                    }
                    said.push(Message::Assistant(turn));
                    if answers.is_empty() {
                        continue 'turns;
                    }
                    match beside {
                        Some((UserContent::ToolResult(_), _)) | None => {}
                        Some((part, at)) => answers.insert(at.min(answers.len()), part),
                    }
                    said.push(Message::User { content: answers });
                }
                said.push(Message::assistant("done"));
            }
            said
        })
        .boxed()
}

/// The names of an enum's variants, as its reader lists them to one that it does not know.
fn variants<T: serde::de::DeserializeOwned>(unknown: Value) -> Vec<String> {
    let error = serde_json::from_value::<T>(unknown).err().unwrap().to_string();
    let (_, names) = error.split_once("expected one of ").unwrap();
    names.split(", ").map(|name| name.trim_matches('`').to_owned()).collect()
}

#[test]
fn of_types_that_may_grow_every_variant_is_made() {
    let tagged = || json!({"type": "?"});
    assert_eq!(variants::<AssistantContent>(tagged()), ["text", "toolcall", "reasoning", "image", "opaque"]);
    assert_eq!(variants::<StopReason>(json!("?")), ["stop", "length", "tool_use", "error", "aborted"]);
    assert_eq!(variants::<SourceLocation>(tagged()), ["document", "url", "file", "search_result", "tool_output"]);
    assert_eq!(variants::<DocumentRange>(json!({"unit": "?"})), ["chars", "pages", "blocks"]);
}
