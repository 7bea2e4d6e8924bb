//! Settings that are one word of a few. Decides which word means what.

use super::value::{Kind, Value};
use crate::finding::{did_you_mean, quoted};

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
                    let hint = did_you_mean(text, Self::WORDS.iter().copied());
                    format!("unknown word {}{hint} (one of {})", quoted(text), Self::WORDS.join(", "))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_name_the_nearest() {
        assert_eq!(Selection::parse("LATENCY", Kind::Text), Ok(Selection::Latency));
        let error = Selection::parse("latncy", Kind::Text).unwrap_err();
        assert_eq!(error, "unknown word \"latncy\", did you mean \"latency\"? (one of least_used, latency)");
    }
}
