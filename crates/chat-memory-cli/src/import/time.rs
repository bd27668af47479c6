//! Times as others write them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::value::RawValue;

use super::json::{self, Fields};

/// Takes the first field that is a time.
pub(super) fn take(fields: &mut Fields<'_>, names: &[&str]) -> Option<SystemTime> {
    let (name, time) = names.iter().find_map(|name| Some((name, fields.get(name).and_then(of_json)?)))?;
    fields.take(name);
    Some(time)
}

/// The time that a JSON string or number says.
pub(super) fn of_json(raw: &RawValue) -> Option<SystemTime> {
    json::text(raw).and_then(|text| of_text(&text))
}

/// A date and time of ISO 8601, of UTC where it names no zone; or a number since 1970, of seconds, or by its size of thousandths,
/// millionths or billionths.
pub(super) fn of_text(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    if let Some(nanoseconds) = number(text) {
        return since_1970(nanoseconds);
    }
    let timestamp = text.parse::<Timestamp>().ok().or_else(|| {
        let local: DateTime = text.parse().ok()?;
        TimeZone::UTC.to_timestamp(local).ok()
    })?;
    SystemTime::try_from(timestamp).ok()
}

/// The nanoseconds since 1970 that a number says. Its decimals are taken as they stand: a float would round them.
fn number(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 20 || !are_digits(whole) || !are_digits(decimals) {
        return exponential(text);
    }
    let whole: i128 = whole.parse().ok()?;
    let nanoseconds: i128 = format!("{decimals:0<9}").get(..9)?.parse().ok()?;
    let per_second = match whole {
        0..100_000_000_000 => 1,
        100_000_000_000..100_000_000_000_000 => 1_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000_000,
        _ => 1_000_000_000,
    };
    Some(sign * (whole * 1_000_000_000 + nanoseconds) / per_second)
}

/// Seconds such as `1.7e9`.
fn exponential(text: &str) -> Option<i128> {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit() || first == '-') && text.contains(['e', 'E']);
    let seconds: f64 = text.parse().ok().filter(|_| is_number)?;
    (seconds.abs() < 1e11).then_some((seconds * 1e9) as i128)
}

fn since_1970(nanoseconds: i128) -> Option<SystemTime> {
    let distance = nanoseconds.unsigned_abs();
    let seconds = u64::try_from(distance / 1_000_000_000).ok()?;
    let distance = Duration::new(seconds, u32::try_from(distance % 1_000_000_000).ok()?);
    if nanoseconds < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ways_to_say_a_time() {
        let at = |seconds, nanoseconds| Some(UNIX_EPOCH + Duration::new(seconds, nanoseconds));
        assert_eq!(of_text("1704629915.775304"), at(1_704_629_915, 775_304_000));
        assert_eq!(of_text("1704629915"), at(1_704_629_915, 0));
        assert_eq!(of_text("1704629915775"), at(1_704_629_915, 775_000_000));
        assert_eq!(of_text("1704629915775304"), at(1_704_629_915, 775_304_000));
        assert_eq!(of_text("1704629915775304001"), at(1_704_629_915, 775_304_001));
        assert_eq!(of_text("1.704629915e9"), at(1_704_629_915, 0));
        assert_eq!(of_text("-1.5"), Some(UNIX_EPOCH - Duration::new(1, 500_000_000)));
        for text in [
            "2024-01-07T12:18:35.5Z",
            "2024-01-07 12:18:35.5",
            "2024-01-07T13:18:35.5+01:00",
            "2024-01-07 12:18:35.5+00",
            "2024-01-07T12:18:35.500+0000",
        ] {
            assert_eq!(of_text(text), at(1_704_629_915, 500_000_000), "{text}");
        }
        for text in ["", "x", "yesterday", "NaN", "inf", "e", "99999999999999999999999", "1e400", "12:30", "-"] {
            assert_eq!(of_text(text), None, "{text}");
        }
    }
}
