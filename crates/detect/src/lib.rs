//! What a provider's answer means. Pure.
//!
//! An answer (status, headers, body, close code) goes in, a [`Judgement`] comes out: a verdict, what it
//! is about, how long the provider asks to wait and the rule that said so. The rules are data: an ordered
//! table under `rules/`, with the operator's own put in front. This crate never acts on what it finds,
//! never reads a clock and never looks into the payload of a success.

mod verdict;

mod head;

mod rules;

mod said;
mod words;

mod answer;

mod wait;
mod window;

mod capture;
mod object;
mod scan;
mod stream;

pub mod line;

pub use head::{Head, Protocol};
pub use rules::{Rules, RulesError};
pub use stream::{Item, Stream, WHOLE};
pub use verdict::{Detail, Judgement, NamedWindow, RuleId, Scope, Verdict};
pub use wait::exhausted;
