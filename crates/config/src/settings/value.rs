//! How the text of one setting becomes a value: Go's booleans, integers with a range, durations, sizes.
//! Decides what a text means; never where it came from or what happens when it is wrong.

use std::path::PathBuf;
use std::time::Duration;

use crate::secret::{Secret, SecretUrl};

/// What texts a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `1 t T TRUE true True 0 f F FALSE false False`.
    Bool,
    /// An integer from `min` to `max`.
    Int {
        min: u64,
        max: u64,
    },
    /// Whole seconds, or an integer with `ms`, `s`, `m` or `h`; at least `min_ms` milliseconds, at most 366 days.
    Seconds {
        min_ms: u64,
    },
    /// Whole milliseconds, or an integer with `ms`, `s`, `m` or `h`; at least `min_ms`, at most 366 days.
    Millis {
        min_ms: u64,
    },
    /// Bytes, or an integer with `KiB`, `MiB` or `GiB`; at least 1.
    Bytes,
    Text,
    /// Text that a header may have: visible ASCII and blanks.
    Header,
    /// Letters, digits and `-_.:`, at least one.
    Name,
    /// One of these words, in any case.
    Choice(&'static [&'static str]),
    Path,
    /// Any text; never printed.
    Secret,
    /// A URL with one of these schemes.
    Url(&'static [&'static str]),
    /// Addresses and networks (`10.0.0.0/8`), separated by commas.
    Networks,
}

impl Kind {
    /// The unit of a duration that is written without one, and the least duration.
    fn unit_and_least(self) -> (&'static str, Duration) {
        if let Self::Millis { min_ms } = self {
            return ("ms", Duration::from_millis(min_ms));
        }
        (
            "s",
            if let Self::Seconds { min_ms } = self { Duration::from_millis(min_ms) } else { Duration::ZERO },
        )
    }
}

const LONGEST: Duration = Duration::from_secs(366 * 86_400);

/// A type that a setting can have.
pub(super) trait Value: Sized {
    /// Reads `text` as `kind` says. The error never quotes a secret.
    fn parse(text: &str, kind: Kind) -> Result<Self, String>;

    /// The text that would be read as this value; nothing for a secret and for what is not set.
    fn show(&self) -> Option<String>;
}

impl Value for bool {
    fn parse(text: &str, _: Kind) -> Result<Self, String> {
        match text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
            _ => Err("not a boolean (true or false)".to_owned()),
        }
    }

    fn show(&self) -> Option<String> {
        Some(self.to_string())
    }
}

macro_rules! integers {
    ($($ty:ty)*) => {$(
        impl Value for $ty {
            fn parse(text: &str, kind: Kind) -> Result<Self, String> {
                let number = if kind == Kind::Bytes { bytes(text)? } else { integer(text)? };
                let (min, max) = if let Kind::Int { min, max } = kind { (min, max) } else { (1, u64::MAX) };
                if number < i128::from(min) {
                    return Err(format!("{number} is below the least value, {min}"));
                }
                if number > i128::from(max) {
                    return Err(format!("{number} is above the largest value, {max}"));
                }
                <$ty>::try_from(number).map_err(|_| format!("{number} is too large"))
            }

            fn show(&self) -> Option<String> {
                Some(self.to_string())
            }
        }
    )*};
}
integers!(u16 u32 u64 usize);

impl Value for Duration {
    fn parse(text: &str, kind: Kind) -> Result<Self, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let number = integer(digits).map_err(|_| "not an integer, nor one with ms, s, m or h".to_owned())?;
        let number = u64::try_from(number).map_err(|_| format!("{number} is out of range"))?;
        let (unit, least) = kind.unit_and_least();
        let factor = match if digits.len() == text.len() { unit } else { &text[digits.len()..] } {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err("the unit must be ms, s, m or h".to_owned()),
        };
        let value = Duration::from_millis(number.saturating_mul(factor));
        if value > LONGEST {
            return Err("longer than 366 days".to_owned());
        }
        if value < least {
            return Err(format!("below the least value, {}", show_duration(least)));
        }
        Ok(value)
    }

    fn show(&self) -> Option<String> {
        Some(show_duration(*self))
    }
}

fn show_duration(duration: Duration) -> String {
    match duration.as_millis() {
        millis if millis % 1000 == 0 => format!("{}s", millis / 1000),
        millis => format!("{millis}ms"),
    }
}

impl Value for String {
    fn parse(text: &str, kind: Kind) -> Result<Self, String> {
        if kind == Kind::Header && !text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err("has characters that no header may have".to_owned());
        }
        let named = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
        if kind == Kind::Name && (text.is_empty() || !text.chars().all(named)) {
            return Err("must have letters, digits and -_.: only".to_owned());
        }
        if text.chars().any(char::is_control) {
            return Err("has control characters".to_owned());
        }
        Ok(text.to_owned())
    }

    fn show(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl Value for PathBuf {
    fn parse(text: &str, _: Kind) -> Result<Self, String> {
        Ok(Self::from(text))
    }

    fn show(&self) -> Option<String> {
        Some(self.display().to_string())
    }
}

impl Value for Secret {
    fn parse(text: &str, _: Kind) -> Result<Self, String> {
        Ok(Self::new(text))
    }

    fn show(&self) -> Option<String> {
        None
    }
}

impl Value for SecretUrl {
    fn parse(text: &str, kind: Kind) -> Result<Self, String> {
        let schemes = if let Kind::Url(schemes) = kind { schemes } else { &[] };
        Self::parse(text, schemes)
    }

    fn show(&self) -> Option<String> {
        None
    }
}

impl<T: Value> Value for Option<T> {
    fn parse(text: &str, kind: Kind) -> Result<Self, String> {
        match text {
            "" => Ok(None),
            text => T::parse(text, kind).map(Some),
        }
    }

    fn show(&self) -> Option<String> {
        self.as_ref().and_then(T::show)
    }
}

/// An integer as Go's `Atoi` reads it: an optional sign and digits, nothing else.
fn integer(text: &str) -> Result<i128, String> {
    text.parse::<i128>().map_err(|_| "not an integer".to_owned())
}

fn bytes(text: &str) -> Result<i128, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err("the unit must be KiB, MiB or GiB".to_owned()),
    };
    Ok(integer(digits.trim_end())?.saturating_mul(factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Value + PartialEq + std::fmt::Debug>(kind: Kind, rows: &[(&str, Result<T, &str>)]) {
        for (text, expected) in rows {
            let got = T::parse(text, kind);
            assert_eq!(got.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e), "{text:?}");
        }
    }

    #[test]
    fn booleans_are_gos() {
        for text in ["1", "t", "T", "TRUE", "true", "True"] {
            assert_eq!(bool::parse(text, Kind::Bool), Ok(true), "{text}");
        }
        for text in ["0", "f", "F", "FALSE", "false", "False"] {
            assert_eq!(bool::parse(text, Kind::Bool), Ok(false), "{text}");
        }
        for text in ["yes", "on", "tRUE", "", " true", "2"] {
            assert!(bool::parse(text, Kind::Bool).is_err(), "{text}");
        }
    }

    #[test]
    fn integers_stay_in_their_range() {
        check::<u16>(
            Kind::Int { min: 1, max: 65_535 },
            &[
                ("1", Ok(1)),
                ("007", Ok(7)),
                ("+5", Ok(5)),
                ("65535", Ok(65_535)),
                ("0", Err("0 is below the least value, 1")),
                ("-3", Err("-3 is below the least value, 1")),
                ("65536", Err("65536 is above the largest value, 65535")),
                ("2.5", Err("not an integer")),
                ("1e3", Err("not an integer")),
                ("", Err("not an integer")),
                ("tcp://10.0.0.1:80", Err("not an integer")),
            ],
        );
        assert!(u64::parse(&"9".repeat(30), Kind::Int { min: 0, max: u64::MAX }).is_err());
    }

    #[test]
    fn durations_are_seconds_or_carry_a_unit() {
        let ms = Duration::from_millis;
        check(
            Kind::Seconds { min_ms: 0 },
            &[
                ("0", Ok(ms(0))),
                ("15", Ok(ms(15_000))),
                ("500ms", Ok(ms(500))),
                ("2s", Ok(ms(2_000))),
                ("1m", Ok(ms(60_000))),
                ("366h", Ok(ms(366 * 3_600_000))),
                ("2.5", Err("not an integer, nor one with ms, s, m or h")),
                ("s", Err("not an integer, nor one with ms, s, m or h")),
                ("-1s", Err("-1 is out of range")),
                ("1d", Err("the unit must be ms, s, m or h")),
                ("99999h", Err("longer than 366 days")),
            ],
        );
        check(
            Kind::Seconds { min_ms: 1 },
            &[("0", Err("below the least value, 1ms")), ("1000ms", Ok(ms(1_000)))],
        );
        check(Kind::Millis { min_ms: 1 }, &[("50", Ok(ms(50))), ("2s", Ok(ms(2_000)))]);
    }

    #[test]
    fn texts_fit_where_they_go() {
        let text = |text: &str| Ok(text.to_owned());
        check(Kind::Text, &[("ä", text("ä")), ("", text("")), ("a\nb", Err("has control characters"))]);
        check(
            Kind::Header,
            &[("GET, POST", text("GET, POST")), ("ä", Err("has characters that no header may have"))],
        );
        let only = "must have letters, digits and -_.: only";
        check(Kind::Name, &[("a-b_c.d:1", text("a-b_c.d:1")), ("a{b}", Err(only)), ("", Err(only))]);
    }

    #[test]
    fn sizes_are_bytes_or_carry_a_unit() {
        check::<u64>(
            Kind::Bytes,
            &[
                ("1", Ok(1)),
                ("10MiB", Ok(10 << 20)),
                ("4 KiB", Ok(4096)),
                ("0", Err("0 is below the least value, 1")),
                ("5 apples", Err("the unit must be KiB, MiB or GiB")),
            ],
        );
    }
}
