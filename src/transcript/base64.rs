//! Base64 as in RFC 4648, section 4: the form in which the chat interfaces carry bytes.

use crate::message::Media;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let [a, b, c] = [0, 1, 2].map(|at| u32::from(group.get(at).copied().unwrap_or(0)));
        let bits = a << 16 | b << 8 | c;
        for at in 0..4 {
            let sextet = (bits >> (18 - 6 * at)) & 63;
            let digit = ALPHABET.get(sextet as usize).copied().unwrap_or(b'=');
            text.push(if at <= group.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// The bytes, if the text is what [`encode`] makes of them; so nothing is lost by keeping the bytes alone.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.as_bytes().chunks(4) {
        let mut bits = 0_u32;
        for digit in group {
            bits = bits << 6 | value(*digit)?;
        }
        let bits = bits << (6 * (4 - group.len()));
        bytes.extend([16, 8, 0].iter().take(group.len() * 6 / 8).map(|shift| (bits >> shift) as u8));
    }
    (encode(&bytes) == text).then_some(bytes)
}

/// A `data:` URL.
pub(super) fn data_url(mime_type: &str, bytes: &[u8]) -> String {
    format!("data:{mime_type};base64,{}", encode(bytes))
}

/// The media of a `data:` URL, if [`data_url`] makes the same URL of it.
pub(super) fn from_data_url(url: &str) -> Option<Media> {
    let (mime_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(Media::bytes(mime_type, decode(data)?))
}

fn value(digit: u8) -> Option<u32> {
    let value = match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc() {
        let vectors =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE=")];
        for (bytes, text) in vectors {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    #[test]
    fn what_would_not_come_back_the_same_is_refused() {
        for text in ["Zg", "Zg=", "Zh==", "Zm9v\n", "Zm-v", "=", "Z", "Zm9v====", "Zg==Zg=="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
