//! Conversations in and out of the JSON forms that others read and write.
//!
//! What a form cannot say is reported as a [`Warning`], never dropped in silence.

pub mod anthropic;
mod base64;
mod extra;
mod json;
pub mod jsonl;
pub mod openai;
pub mod responses;

use std::borrow::Cow;
use std::fmt;

use serde_json::value::RawValue;

use crate::message::Message;

/// JSON text in which every `\uXXXX` that is half of a surrogate pair is replaced by `\ufffd`, and the offsets, in bytes, of those.
///
/// JSON may hold halves, which JavaScript and Python write where a text was cut; no Unicode text can, so parsers refuse the whole
/// document. The forms of this module are mended by themselves; this is for readers of other ones. Lines and columns stay the same.
///
/// ```
/// use chat_memory::transcript::mend_surrogates;
///
/// let (text, offsets) = mend_surrogates(r#"{"content":"cut here \ud83d"}"#);
/// assert_eq!((text.as_ref(), offsets), (r#"{"content":"cut here \ufffd"}"#, vec![21]));
/// ```
pub fn mend_surrogates(text: &str) -> (Cow<'_, str>, Vec<usize>) {
    json::mend_surrogates(text)
}

/// Messages read from another form.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Import {
    /// The messages, in the order of the text.
    pub messages: Vec<Message>,
    /// What could not be taken as it stands.
    pub warnings: Vec<Warning>,
}

/// Messages written in another form.
#[derive(Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Export {
    /// One JSON object per message of that form, each on a single line.
    pub objects: Vec<String>,
    /// The instructions, as JSON on a single line, where the form keeps them outside its messages: `system` of
    /// [`anthropic`].
    pub system: Option<String>,
    /// What the form cannot say.
    pub warnings: Vec<Warning>,
}

impl Import {
    /// Reports something of the message that comes next.
    fn warn(&mut self, text: &str) {
        self.warnings.push(Warning { position: self.messages.len(), text: text.to_owned() });
    }

    fn note_surrogates(&mut self, source: &json::Source<'_>, part: &RawValue) {
        if source.replaced_in(part.get()) > 0 {
            self.warn("half of a surrogate pair became U+FFFD");
        }
    }
}

impl Export {
    /// One JSON array, a message a line; with instructions outside the messages an object of `system` and `messages`.
    pub fn to_json(&self) -> String {
        let list =
            if self.objects.is_empty() { "[]".to_owned() } else { format!("[\n{}\n]", self.objects.join(",\n")) };
        match &self.system {
            Some(system) => format!("{{\"system\":{system},\"messages\":{list}}}\n"),
            None => format!("{list}\n"),
        }
    }

    /// JSON Lines: an object a line, instructions outside the messages as a first one of the role `system`.
    pub fn to_json_lines(&self) -> String {
        let system = self.system.iter().map(|system| format!("{{\"role\":\"system\",\"content\":{system}}}\n"));
        system.chain(self.objects.iter().map(|object| format!("{object}\n"))).collect()
    }

    /// Reports what could not be said of a message, if there is anything.
    fn cannot_say(&mut self, position: usize, mut unsaid: Vec<&'static str>) {
        unsaid.dedup();
        if !unsaid.is_empty() {
            let text = format!("the form cannot say: {}", unsaid.join(", "));
            self.warnings.push(Warning { position, text });
        }
    }
}

/// Shows how much was written, never what.
impl fmt::Debug for Export {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("objects", &self.objects.len())
            .field("system", &self.system.is_some())
            .field("warnings", &self.warnings)
            .finish()
    }
}

/// Something that a conversion changed or left out.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The message's position among the messages that were converted, from 0.
    pub position: usize,
    /// What was changed or left out. It never holds what was said.
    pub text: String,
}
