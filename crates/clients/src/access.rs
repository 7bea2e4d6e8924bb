//! What a client may do: on which chains, by which methods, until when. Decides permission; never who is asking.

use crate::Limits;

/// The rights and limits of one client, or of everybody without a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// `None`: all.
    pub chains: Option<Vec<Box<str>>>,
    pub methods: Methods,
    /// From this instant on (Unix milliseconds) nothing is allowed.
    pub expires: Option<u64>,
    pub limits: Limits,
}

/// Which methods may be called. Patterns may hold `*`, which stands for anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Methods {
    /// Empty: all.
    pub allow: Vec<Box<str>>,
    /// Rules over what is allowed.
    pub deny: Vec<Box<str>>,
}

impl Access {
    #[must_use]
    pub fn has_expired(&self, now: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    #[must_use]
    pub fn allows_chain(&self, chain: &str) -> bool {
        self.chains.as_ref().is_none_or(|chains| chains.iter().any(|allowed| **allowed == *chain))
    }
}

impl Methods {
    #[must_use]
    pub fn allow(&self, method: &str) -> bool {
        let any = |patterns: &[Box<str>]| patterns.iter().any(|pattern| fits(pattern, method));
        (self.allow.is_empty() || any(&self.allow)) && !any(&self.deny)
    }
}

/// Whether `text` is what `pattern` stands for. What lies between two stars is looked for from the left, and the last
/// piece at the end: linear, whatever the pattern.
fn fits(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for piece in middle.split('*') {
        let Some(at) = text.find(piece) else { return false };
        text = &text[at + piece.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: a pattern that fits a part of a method, overlapping ends, deny that loses to allow.
    #[test]
    fn patterns_fit_whole_methods() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "eth_call", true),
            ("eth_call", "eth_call", true),
            ("eth_call", "eth_callMany", false),
            ("debug_*", "debug_traceCall", true),
            ("debug_*", "xdebug_traceCall", false),
            ("*_call", "eth_call", true),
            ("eth_*By*", "eth_getBlockByHash", true),
            ("eth_*By*", "eth_getBlock", false),
            ("ab*ba", "aba", false),
            ("a**b", "ab", true),
            ("a*b*c", "abbc", true),
            ("a*b*c", "acb", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
        let methods = |allow: &[&str], deny: &[&str]| Methods {
            allow: allow.iter().map(|pattern| (*pattern).into()).collect(),
            deny: deny.iter().map(|pattern| (*pattern).into()).collect(),
        };
        assert!(methods(&[], &[]).allow("anything"));
        assert!(!methods(&["*"], &["debug_*"]).allow("debug_x"));
        assert!(methods(&["eth_*"], &["eth_send*"]).allow("eth_call"));
        assert!(!methods(&["eth_*"], &["eth_send*"]).allow("eth_sendRawTransaction"));
        assert!(!methods(&["eth_*"], &[]).allow("net_version"));
    }

    #[test]
    fn access_ends_and_is_bound_to_chains() {
        let access = Access { chains: Some(vec!["main".into()]), expires: Some(1_000), ..Access::default() };
        assert!(access.allows_chain("main") && !access.allows_chain("mai") && !access.allows_chain("other"));
        assert!(!access.has_expired(999) && access.has_expired(1_000));
        assert!(Access::default().allows_chain("any") && !Access::default().has_expired(u64::MAX));
        assert!(
            !Access { chains: Some(Vec::new()), ..Access::default() }.allows_chain("main"),
            "an empty list is none"
        );
    }
}
