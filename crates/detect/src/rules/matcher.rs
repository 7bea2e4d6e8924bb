//! Finds the first rule whose conditions all hold. One pass over the words finds the phrases of all rules;
//! an expression runs only where everything else in its rule holds already.

use std::collections::HashMap;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::head::Head;
use crate::rules::file::{Rule, When};
use crate::rules::providers;
use crate::said::Said;
use crate::verdict::{Detail, Scope, Verdict};

/// What a rule says, with its name.
pub(super) type Says = (String, Verdict, Scope, Detail);

/// Compiled conditions, in the order they are asked.
#[derive(Debug)]
pub(super) struct Matcher {
    automaton: AhoCorasick,
    conditions: Vec<Condition>,
    /// The phrases that the conditions name, as bits among those found.
    masks: Vec<Mask>,
}

/// Some of 64 phrases.
#[derive(Debug, Clone, Copy)]
struct Mask {
    word: usize,
    bits: u64,
}

#[derive(Debug)]
struct Condition {
    when: When,
    text: Range<usize>,
    and: Range<usize>,
    not: Range<usize>,
}

/// A refusal, with what is looked up once for all rules.
pub(super) struct Asked<'a> {
    head: &'a Head<'a>,
    said: &'a Said,
    provider: Option<&'a str>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(head: &'a Head<'a>, said: &'a Said) -> Asked<'a> {
        let provider = head.provider.or_else(|| providers::of_host(head.host?));
        Asked { head, said, provider }
    }
}

/// The rules' conditions compiled, and what they say.
pub(super) fn compile(rules: Vec<Rule>) -> (Matcher, Vec<Says>) {
    let mut patterns = Patterns::default();
    let mut conditions = Vec::with_capacity(rules.len());
    let mut says = Vec::with_capacity(rules.len());
    for Rule { name, verdict, scope, detail, mut when } in rules {
        let text = patterns.intern(std::mem::take(&mut when.text));
        let and = patterns.intern(std::mem::take(&mut when.and));
        let not = patterns.intern(std::mem::take(&mut when.not));
        conditions.push(Condition { when, text, and, not });
        says.push((name, verdict, scope, detail));
    }
    let automaton = AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::DFA))
        .build(&patterns.order)
        .expect("some thousand short phrases are far below the automaton's bounds");
    (Matcher { automaton, conditions, masks: patterns.masks }, says)
}

#[derive(Default)]
struct Patterns {
    order: Vec<String>,
    known: HashMap<String, usize>,
    masks: Vec<Mask>,
}

impl Patterns {
    fn intern(&mut self, phrases: Vec<String>) -> Range<usize> {
        let from = self.masks.len();
        for phrase in phrases {
            let next = self.order.len();
            let index = *self.known.entry(phrase).or_insert_with_key(|phrase| {
                self.order.push(phrase.clone());
                next
            });
            let (word, bits) = (index / 64, 1 << (index % 64));
            match self.masks[from..].iter_mut().find(|mask| mask.word == word) {
                Some(mask) => mask.bits |= bits,
                None => self.masks.push(Mask { word, bits }),
            }
        }
        from..self.masks.len()
    }
}

impl Matcher {
    /// The first condition that holds.
    pub(super) fn first(&self, asked: &Asked<'_>) -> Option<usize> {
        let found = self.found(&asked.said.words);
        self.conditions.iter().position(|condition| self.holds(condition, asked, &found))
    }

    /// One bit per pattern.
    fn found(&self, words: &str) -> Vec<u64> {
        let mut found = vec![0; self.automaton.patterns_len().div_ceil(64)];
        for hit in self.automaton.find_overlapping_iter(words) {
            let pattern = hit.pattern().as_usize();
            found[pattern / 64] |= 1 << (pattern % 64);
        }
        found
    }

    fn holds(&self, condition: &Condition, asked: &Asked<'_>, found: &[u64]) -> bool {
        let any = |range: &Range<usize>| {
            self.masks[range.clone()].iter().any(|mask| found[mask.word] & mask.bits != 0)
        };
        (condition.text.is_empty() || any(&condition.text))
            && (condition.and.is_empty() || any(&condition.and))
            && condition.when.head_holds(asked)
            && !any(&condition.not)
            && condition.when.regex.as_ref().is_none_or(|regex| regex.is_match(&asked.said.text))
    }
}

impl When {
    /// The conditions that need no text.
    fn head_holds(&self, asked: &Asked<'_>) -> bool {
        let Asked { head, said, provider } = asked;
        self.envelope.is_none_or(|envelope| envelope == said.envelope)
            && self.protocol.is_none_or(|protocol| protocol == head.protocol)
            && one_of(&self.status, head.status, |(from, to), status| (from..=to).contains(&&status))
            && one_of(&self.code, said.code, |code, said| *code == said)
            && one_of(&self.close, head.ws_close, |close, (code, _)| *close == code)
            && one_of(&self.provider, *provider, |named, provider| providers::is(provider, named))
            && one_of(&self.method, head.method, |glob, method| glob_matches(glob, method))
            && self.header.iter().all(|(name, value)| has_header(head, name, value.as_deref()))
    }
}

/// Whether `actual` is one of those listed; an empty list asks nothing.
fn one_of<T, A: Copy>(listed: &[T], actual: Option<A>, same: impl Fn(&T, A) -> bool) -> bool {
    listed.is_empty() || actual.is_some_and(|actual| listed.iter().any(|one| same(one, actual)))
}

fn glob_matches(glob: &str, method: &str) -> bool {
    match glob.strip_suffix('*') {
        Some(start) => method.starts_with(start),
        None => method == glob,
    }
}

fn has_header(head: &Head<'_>, name: &http::HeaderName, value: Option<&str>) -> bool {
    head.headers.get_all(name).iter().any(|header| {
        value.is_none_or(|value| header.to_str().is_ok_and(|text| text.trim().eq_ignore_ascii_case(value)))
    })
}
