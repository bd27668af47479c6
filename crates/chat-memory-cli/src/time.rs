//! Times, as people write and read them.

use std::str::FromStr;
use std::time::SystemTime;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, ZonedDateTime};

/// A time that was given as an argument.
#[derive(Debug, Clone, Copy)]
pub struct Moment(pub SystemTime);

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let zone = TimeZone::system();
        let zoned = |local: DateTime| local.to_zoned_datetime(zone.clone()).ok().map(|zoned| zoned.timestamp());
        let timestamp = text.parse::<Timestamp>().ok();
        let timestamp = timestamp.or_else(|| text.parse::<DateTime>().ok().and_then(zoned));
        let timestamp = timestamp.or_else(|| text.parse::<Date>().ok().and_then(|date| zoned(date.at(0, 0, 0, 0))));
        let ago = || {
            // A span that is negative, as in "2h ago", would be in the future.
            let span = text.parse::<Span>().ok().filter(|span| !span.is_negative())?;
            ZonedDateTime::now().checked_sub(span).ok().map(|zoned| zoned.timestamp())
        };
        let timestamp = timestamp.or_else(ago);
        let rule = "it is a time such as 2026-11-30, '2026-11-30 14:00', 2026-11-30T13:00:00Z, or how long ago: 2h, 3d";
        timestamp.and_then(|timestamp| SystemTime::try_from(timestamp).ok()).map(Self).ok_or_else(|| rule.to_owned())
    }
}

/// A time in the local zone, to the second.
pub fn local(time: SystemTime) -> String {
    in_zone(time, "%Y-%m-%d %H:%M:%S")
}

/// A time in the local zone, to the minute.
pub fn short(time: SystemTime) -> String {
    in_zone(time, "%Y-%m-%d %H:%M")
}

/// A day in the local zone.
pub fn day(time: SystemTime) -> String {
    in_zone(time, "%Y-%m-%d")
}

fn in_zone(time: SystemTime, format: &str) -> String {
    let zoned = Timestamp::try_from(time).map(|timestamp| timestamp.to_zoned_datetime(TimeZone::system()));
    zoned.map_or_else(|_| "?".to_owned(), |zoned| zoned.strftime(format).to_string())
}

/// A time for machines: RFC 3339, in UTC.
pub fn utc(time: SystemTime) -> Option<String> {
    Timestamp::try_from(time).ok().map(|timestamp| timestamp.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_forms_that_people_write() {
        let given = |text: &str| text.parse::<Moment>().map(|moment| utc(moment.0).unwrap());
        assert_eq!(given("2026-11-30T13:00:00Z").unwrap(), "2026-11-30T13:00:00Z");
        for text in ["2026-11-30", "2026-11-30 14:00", "2026-11-30T14:00:01", "2h", "3 days", "1w"] {
            assert!(given(text).is_ok(), "{text}");
        }
        for text in ["", "yesterday", "2h ago", "-2h", "2026-13-01", "9999999999999y"] {
            assert!(given(text).is_err(), "{text}");
        }
    }
}
