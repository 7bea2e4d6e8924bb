//! How the text of one setting becomes a value: Go's booleans, integers with a range, durations, sizes.
//! Decides what a text means; never where it came from or what happens when it is wrong.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::secret::{Secret, SecretUrl};

/// What texts a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `1 t T TRUE true True 0 f F FALSE false False`.
    Bool,
    /// An integer from `min` to `max`.
    Int { min: u64, max: u64 },
    /// Whole seconds, or an integer with `ms`, `s`, `m` or `h`; at least `min_ms` milliseconds, at most 366 days.
    Seconds { min_ms: u64 },
    /// Whole milliseconds, or an integer with `ms`, `s`, `m` or `h`; at least `min_ms`, at most 366 days.
    Millis { min_ms: u64 },
    /// Bytes, or an integer with `KiB`, `MiB` or `GiB`; at least 1.
    Bytes,
    Text,
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
                let number = match kind {
                    Kind::Bytes => bytes(text)?,
                    _ => integer(text)?,
                };
                let (min, max) = match kind {
                    Kind::Int { min, max } => (min, max),
                    _ => (1, u64::MAX),
                };
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
        let (unit, least) = match kind {
            Kind::Millis { min_ms } => ("ms", Duration::from_millis(min_ms)),
            Kind::Seconds { min_ms } => ("s", Duration::from_millis(min_ms)),
            _ => ("s", Duration::ZERO),
        };
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
    fn parse(text: &str, _: Kind) -> Result<Self, String> {
        match text.chars().any(char::is_control) {
            true => Err("has control characters".to_owned()),
            false => Ok(text.to_owned()),
        }
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
        match kind {
            Kind::Url(schemes) => Self::parse(text, schemes),
            _ => Self::parse(text, &["http", "https"]),
        }
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

/// An address range, such as `10.0.0.0/8` or `2001:db8::/32`; a bare address is a range of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// Whether `address` lies in the range. IPv4 addresses mapped into IPv6 count as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let shift = |width: u8| u32::from(width - self.prefix);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(ip)) => {
                (net.to_bits() ^ ip.to_bits()).checked_shr(shift(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(net), IpAddr::V6(ip)) => {
                (net.to_bits() ^ ip.to_bits()).checked_shr(shift(128)).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let address: IpAddr = address.trim().parse().ok()?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Some(width), |prefix| prefix.trim().parse().ok())?;
        (prefix <= width).then_some(Self { address, prefix })
    }
}

impl Value for Vec<Network> {
    fn parse(text: &str, _: Kind) -> Result<Self, String> {
        let networks = text.split(',').map(str::trim).filter(|network| !network.is_empty());
        networks
            .map(|network| Network::parse(network).ok_or_else(|| format!("{network:?} is no address or network")))
            .collect()
    }

    fn show(&self) -> Option<String> {
        let all: Vec<String> = self.iter().map(|n| format!("{}/{}", n.address, n.prefix)).collect();
        (!all.is_empty()).then(|| all.join(","))
    }
}

/// Enums that are chosen by one word, in any case.
macro_rules! choices {
    ($($(#[$doc:meta])* $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal),+ $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$note])* $variant),+ }

        impl $name {
            /// The words, in the order of the variants.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The variant that `word` names, in any case.
            pub fn from_word(word: &str) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|choice| choice.as_str().eq_ignore_ascii_case(word))
            }
        }

        impl Value for $name {
            fn parse(text: &str, _: Kind) -> Result<Self, String> {
                Self::from_word(text).ok_or_else(|| {
                    let hint = crate::finding::did_you_mean(text, Self::WORDS.iter().copied());
                    format!("unknown word {}{hint} (one of {})", crate::finding::quoted(text), Self::WORDS.join(", "))
                })
            }

            fn show(&self) -> Option<String> {
                Some(self.as_str().to_owned())
            }
        }
    )*};
}

choices! {
    /// How much is logged.
    LogLevel { Trace = "trace", Debug = "debug", Info = "info", Warn = "warn", Error = "error", Disabled = "disabled" }
    /// How a log line looks.
    LogFormat { Text = "text", Json = "json" }
    /// Where shared state lives.
    StoreBackend { Memory = "memory", Valkey = "valkey" }
    /// How an endpoint is chosen within its tier.
    Selection { LeastUsed = "least_used", Latency = "latency" }
    /// What client limits do when Valkey stays away.
    DegradedMode { Share = "share", Deny = "deny" }
    /// Who says how far the gates are tightened.
    FlagsProvider {
        Static = "static", Environment = "environment", File = "file", Valkey = "valkey",
        LaunchDarkly = "launchdarkly", Ofrep = "ofrep",
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
            assert_eq!(T::parse(text, kind).as_ref(), expected.as_ref().map_err(|e| e.to_string()).as_ref().map_err(|e| *e), "{text:?}");
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
        check(Kind::Seconds { min_ms: 1 }, &[("0", Err("below the least value, 1ms")), ("1000ms", Ok(ms(1_000)))]);
        check(Kind::Millis { min_ms: 1 }, &[("50", Ok(ms(50))), ("2s", Ok(ms(2_000)))]);
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

    // Kills: a shift by the full width, which would panic or match nothing for /0.
    #[test]
    fn networks_hold_their_addresses() {
        let check = |network: &str, address: &str, expected: bool| {
            let network = Network::parse(network).expect(network);
            assert_eq!(network.contains(address.parse().unwrap()), expected, "{network:?} {address}");
        };
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.0.0.1", "10.0.0.1", true);
        check("10.0.0.1", "10.0.0.2", false);
        check("0.0.0.0/0", "203.0.113.9", true);
        check("0.0.0.0/0", "::1", false);
        check("::/0", "2001:db8::1", true);
        check("2001:db8::/32", "2001:db9::1", false);
        check("10.0.0.0/8", "::ffff:10.1.2.3", true);
        let all = Vec::<Network>::parse(" 10.0.0.0/8, ::1 ,", Kind::Networks).unwrap();
        assert_eq!(all.show().as_deref(), Some("10.0.0.0/8,::1/128"));
        for bad in ["10.0.0.0/33", "::/129", "host", "10.0.0.0/x", "10.0.0/8"] {
            assert!(Vec::<Network>::parse(bad, Kind::Networks).is_err(), "{bad}");
        }
    }

    #[test]
    fn unknown_words_name_the_nearest() {
        assert_eq!(Selection::parse("LATENCY", Kind::Text), Ok(Selection::Latency));
        let error = Selection::parse("latncy", Kind::Text).unwrap_err();
        assert_eq!(error, "unknown word \"latncy\", did you mean \"latency\"? (one of least_used, latency)");
    }
}
