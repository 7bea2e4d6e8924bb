//! What processes tell each other about endpoints: what a checker measured, and whom a proxy ejected. Encodings only;
//! what follows from it is decided elsewhere.

use std::fmt::Write as _;

/// What a checker found at one endpoint over one protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its debounced state.
    pub healthy: bool,
    /// Its latest probe.
    pub ok: bool,
    /// How long that probe took, in milliseconds.
    pub took_ms: u64,
    /// The newest block it is known to have; 0: none.
    pub block: u64,
}

/// Something that another process told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A checker measured `subject`, so long ago.
    Found { subject: String, finding: Finding, age_ms: u64 },
    /// A proxy ejected `subject` on its own evidence.
    Ejected { subject: String },
}

/// The name of an endpoint over one protocol among all processes of a deployment. Neither a line nor a blank is in it.
#[must_use]
pub fn subject(chain: &str, endpoint: &str, protocol: &str) -> String {
    let mut name = String::with_capacity(chain.len() + endpoint.len() + protocol.len() + 2);
    for (index, part) in [chain, endpoint, protocol].into_iter().enumerate() {
        if index > 0 {
            name.push('/');
        }
        for char in part.chars() {
            match char {
                '/' | '%' | ' ' => drop(write!(name, "%{:02X}", u32::from(char))),
                char if char.is_control() => drop(write!(name, "%{:02X}", u32::from(char))),
                char => name.push(char),
            }
        }
    }
    name
}

impl Finding {
    /// As it is stored, after the time.
    pub(crate) fn encode(&self) -> String {
        let Finding { healthy, ok, took_ms, block } = *self;
        format!("{}:{}:{took_ms}:{block}", u8::from(healthy), u8::from(ok))
    }

    /// A stored finding, and the server's time when it was written.
    pub(crate) fn decode(text: &str) -> Option<(u64, Finding)> {
        let mut parts = text.split(':');
        let mut number = || parts.next()?.parse::<u64>().ok();
        let at = number()?;
        let (healthy, ok) = (flag(number()?)?, flag(number()?)?);
        Some((at, Finding { healthy, ok, took_ms: number()?, block: number()? }))
    }
}

fn flag(number: u64) -> Option<bool> {
    match number {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_read_as_it_was_written_and_later_fields_are_no_harm() {
        let finding = Finding { healthy: true, ok: false, took_ms: 12, block: 1_234 };
        let text = format!("99:{}", finding.encode());
        assert_eq!(Finding::decode(&text), Some((99, finding)));
        assert_eq!(Finding::decode(&format!("{text}:new")), Some((99, finding)));
        for bad in ["", "99", "99:2:0:1:1", "99:1:1:1", "x:1:1:1:1", "-1:1:1:1:1"] {
            assert_eq!(Finding::decode(bad), None, "{bad}");
        }
    }

    /// Kills: two endpoints under one name, and a name that breaks its message.
    #[test]
    fn names_are_different_and_on_one_line() {
        let names = [
            subject("a/b", "c", "http"),
            subject("a", "b/c", "http"),
            subject("a", "b", "ws"),
            subject("a%2Fb", "c", "http"),
            subject("a\nf", "c d", "http"),
        ];
        for (i, name) in names.iter().enumerate() {
            assert!(!name.contains(['\n', ' ']), "{name}");
            assert!(names[i + 1..].iter().all(|other| other != name), "{name}");
        }
    }
}
