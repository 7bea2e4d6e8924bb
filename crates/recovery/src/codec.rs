//! A record as a short text, and back: `1;until;probe;changed;attempts;successes;wait;first;returned;asked;reason`.
//! Decoding never guesses: an unknown version or a damaged text is an error, and the caller starts afresh.

use std::fmt;
use std::str::{FromStr, Split};

use crate::record::{Reason, Record};

/// The version that this code writes, and the only one it reads.
const VERSION: u64 = 1;

/// Why a stored record cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// Written by a newer release, with this version.
    UnknownVersion(u64),
    /// Not a record; the field that is missing or wrong.
    Malformed(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownVersion(version) => {
                write!(f, "recovery record has version {version}, this release reads {VERSION}")
            }
            Self::Malformed(field) => write!(f, "recovery record has no readable {field}"),
        }
    }
}

impl std::error::Error for DecodeError {}

impl Record {
    /// The record as text, at most 200 bytes.
    #[must_use]
    pub fn encode(&self) -> String {
        let Self { parked_until, next_probe, changed_at, attempts, successes, wait_ms, .. } = self;
        let Self { first_hit, returned_at, asked_until, reason, .. } = self;
        format!(
            "{VERSION};{parked_until};{next_probe};{changed_at};{attempts};{successes};{wait_ms};\
             {first_hit};{returned_at};{asked_until};{}",
            reason.as_str()
        )
    }

    /// Reads what [`Record::encode`] wrote.
    ///
    /// # Errors
    /// When the text is of another version, or no record at all.
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        let mut fields = text.split(';');
        let version = field(&mut fields, "version")?;
        if version != VERSION {
            return Err(DecodeError::UnknownVersion(version));
        }
        let record = Self {
            parked_until: field(&mut fields, "parked_until")?,
            next_probe: field(&mut fields, "next_probe")?,
            changed_at: field(&mut fields, "changed_at")?,
            attempts: field(&mut fields, "attempts")?,
            successes: field(&mut fields, "successes")?,
            wait_ms: field(&mut fields, "wait_ms")?,
            first_hit: field(&mut fields, "first_hit")?,
            returned_at: field(&mut fields, "returned_at")?,
            asked_until: field(&mut fields, "asked_until")?,
            reason: reason(fields.next()).ok_or(DecodeError::Malformed("reason"))?,
        };
        match fields.next() {
            None => Ok(record),
            Some(_) => Err(DecodeError::Malformed("end")),
        }
    }
}

fn field<T: FromStr>(fields: &mut Split<'_, char>, name: &'static str) -> Result<T, DecodeError> {
    fields.next().and_then(|text| text.parse().ok()).ok_or(DecodeError::Malformed(name))
}

fn reason(name: Option<&str>) -> Option<Reason> {
    let all = [Reason::Burst, Reason::Hinted, Reason::Quota, Reason::QuotaDaily, Reason::Ban, Reason::Auth];
    all.into_iter().find(|reason| Some(reason.as_str()) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let record = Record {
            parked_until: 1_800_000_000_500,
            next_probe: 1_800_000_000_400,
            changed_at: 1_800_000_000_000,
            attempts: 3,
            successes: 1,
            wait_ms: u64::MAX,
            first_hit: 7,
            returned_at: 8,
            asked_until: 9,
            reason: Reason::QuotaDaily,
        };
        let text = record.encode();
        assert_eq!(
            text,
            "1;1800000000500;1800000000400;1800000000000;3;1;18446744073709551615;7;8;9;quota_daily"
        );
        assert_eq!(Record::decode(&text), Ok(record));
    }

    #[test]
    fn what_is_not_a_record_of_this_version_is_refused() {
        let check = |text, expected| assert_eq!(Record::decode(text), Err(expected), "{text:?}");
        check("2;anything", DecodeError::UnknownVersion(2));
        check("", DecodeError::Malformed("version"));
        check("1", DecodeError::Malformed("parked_until"));
        check("1;1;1;1;-1;0;0;0;0;0;burst", DecodeError::Malformed("attempts"));
        check("1;1;1;1;1;0;0;0;0;0;whim", DecodeError::Malformed("reason"));
        check("1;1;1;1;1;0;0;0;0;0;burst;1", DecodeError::Malformed("end"));
        check("{\"rate_limited\":true}", DecodeError::Malformed("version"));
    }

    #[test]
    fn the_error_names_the_newer_version() {
        let text = DecodeError::UnknownVersion(9).to_string();
        assert_eq!(text, "recovery record has version 9, this release reads 1");
    }
}
