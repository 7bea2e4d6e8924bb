//! The record as a short line of text, for a store that compares and sets strings. Decides the format and its
//! version; a line it does not understand is refused whole.
//!
//! `1|<window>,<clean slot>,<clean uses joined by .>[,<ceiling>,<step>,<before>,<last decrease>,<refused
//! level>,<clean since>,<source>]|…`, all numbers decimal.

use std::fmt::Write as _;

use crate::{Estimate, Peaks, Record, Source, Span};

const VERSION: &str = "1";
/// More spans than any law keeps: longer lines are not ours.
const MOST_SPANS: usize = 8;

/// A stored line that is not a record of a version known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("not a learned record of a known version")
    }
}

impl std::error::Error for Malformed {}

impl Record {
    /// The record as one line without blanks.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut line = String::from(VERSION);
        for span in &self.spans {
            line.push('|');
            encode_span(&mut line, span);
        }
        line
    }

    /// Reads back what [`Record::encode`] wrote. Estimates read back carry [`Source::Stored`], unless they were
    /// stated by a provider.
    ///
    /// # Errors
    /// [`Malformed`] for another version, a missing or superfluous field, a window of 0 or no window at all.
    pub fn decode(line: &str) -> Result<Self, Malformed> {
        let mut parts = line.split('|');
        if parts.next() != Some(VERSION) {
            return Err(Malformed);
        }
        let spans = parts.map(decode_span).collect::<Result<Vec<_>, _>>()?;
        let ordered = spans.windows(2).all(|pair| pair[0].window_ms < pair[1].window_ms);
        if spans.is_empty() || spans.len() > MOST_SPANS || !ordered {
            return Err(Malformed);
        }
        Ok(Self { spans })
    }
}

fn encode_span(line: &mut String, span: &Span) {
    let (slot, uses) = span.clean.parts();
    let uses: Vec<String> = uses.iter().map(u64::to_string).collect();
    let _ = write!(line, "{},{slot},{}", span.window_ms, uses.join("."));
    if let Some(e) = &span.estimate {
        let source = match e.source {
            Source::Hit => 'h',
            Source::Stated => 's',
            Source::Stored => 'r',
        };
        let _ = write!(
            line,
            ",{},{},{},{},{},{},{source}",
            e.ceiling, e.step, e.before, e.last_decrease, e.refused_level, e.clean_since
        );
    }
}

fn decode_span(part: &str) -> Result<Span, Malformed> {
    let fields: Vec<&str> = part.split(',').collect();
    let [window, slot, uses, estimate @ ..] = fields.as_slice() else { return Err(Malformed) };
    let window_ms = number(window)?;
    let uses = uses.split('.').map(number).collect::<Result<Vec<_>, _>>()?;
    let clean = Peaks::from_parts(number(slot)?, uses.try_into().map_err(|_| Malformed)?);
    let estimate = if estimate.is_empty() { None } else { Some(decode_estimate(estimate)?) };
    if window_ms == 0 { Err(Malformed) } else { Ok(Span { window_ms, estimate, clean }) }
}

fn decode_estimate(fields: &[&str]) -> Result<Estimate, Malformed> {
    let [ceiling, step, before, last, refused, clean, source] = fields else { return Err(Malformed) };
    let source = match *source {
        "h" | "r" => Source::Stored,
        "s" => Source::Stated,
        _ => return Err(Malformed),
    };
    Ok(Estimate {
        ceiling: number(ceiling)?,
        step: number(step)?,
        before: number(before)?,
        last_decrease: number(last)?,
        refused_level: number(refused)?,
        clean_since: number(clean)?,
        source,
    })
}

fn number(text: &str) -> Result<u64, Malformed> {
    text.parse().map_err(|_| Malformed)
}
