//! What was learned of an account, by whichever law, as one versioned line for the store. Decides which law a line is
//! of, what each law reads in the other's, and whether a record is news to others.

use crate::steady::Level;
use crate::{Estimate, Malformed, Params, Peaks, Record, Source, Span};

/// A record of one of the laws.
#[derive(Debug, Clone, PartialEq)]
pub enum Learned {
    /// Version 1.
    Aimd(Record),
    /// Version 2.
    Steady(Box<Level>),
}

/// What a record tells those who have the stored one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// Nothing.
    None,
    /// Something that can wait some seconds.
    Slight,
    /// A decision.
    Decision,
}

impl Learned {
    /// The record as one line without blanks.
    #[must_use]
    pub fn encode(&self) -> String {
        match self {
            Self::Aimd(record) => record.encode(),
            Self::Steady(level) => level.encode(),
        }
    }

    /// Reads back what [`Learned::encode`] wrote.
    ///
    /// # Errors
    /// [`Malformed`] for a line of no version known here.
    pub fn decode(line: &str) -> Result<Self, Malformed> {
        match line.split_once('|') {
            Some((Level::VERSION, _)) => Level::decode(line).map(|level| Self::Steady(Box::new(level))),
            _ => Record::decode(line).map(Self::Aimd),
        }
    }

    /// As AIMD reads it: a steady level is the ceiling of its window, and grows from there.
    #[must_use]
    pub fn into_aimd(self, params: &Params) -> Record {
        let level = match self {
            Self::Aimd(record) => return record,
            Self::Steady(level) => level,
        };
        let ceiling = level.ceiling() as u64;
        let estimate = Estimate {
            ceiling,
            step: (ceiling / 10).max(1),
            before: ceiling,
            last_decrease: level.settled,
            refused_level: level.level as u64,
            clean_since: 0,
            source: Source::Stored,
        };
        let mut record = Record::new(params);
        let longer = record.spans.iter().position(|span| span.window_ms >= level.window_ms);
        match longer {
            Some(i) if record.spans[i].window_ms == level.window_ms => {
                record.spans[i].estimate = Some(estimate);
            }
            _ => record.spans = vec![Span { estimate: Some(estimate), ..Span::new(level.window_ms) }],
        }
        record
    }

    /// As the steady law reads it: the tightest of AIMD's ceilings is a level to start from.
    #[must_use]
    pub fn into_steady(self, params: &Params) -> Option<Level> {
        let record = match self {
            Self::Steady(level) => return Some(*level),
            Self::Aimd(record) => record,
        };
        let known = record.spans.iter().filter_map(|span| {
            let at = span.estimate?.last_decrease;
            Some((span.window_ms, span.ceiling(params, at)? as f64, at))
        });
        let per_ms = |(window_ms, ceiling, _): &(u64, f64, u64)| ceiling / *window_ms as f64;
        let tightest = known.min_by(|a, b| per_ms(a).total_cmp(&per_ms(b)));
        tightest.map(|(window_ms, ceiling, at)| Level::stored(window_ms, ceiling, at))
    }

    /// What others, who have `stored`, would hear.
    #[must_use]
    pub fn news(&self, stored: Option<&Self>) -> News {
        match (self, stored) {
            (Self::Aimd(ours), None) => {
                let seen = ours.spans.iter().any(|span| span.clean != Peaks::default());
                if ours.has_estimate() || seen { News::Decision } else { News::None }
            }
            (Self::Aimd(ours), Some(Self::Aimd(theirs))) => {
                // As it would be read back: who cut first is no difference.
                let ours = Record::decode(&ours.encode()).unwrap_or_else(|_| ours.clone());
                if ours == *theirs {
                    News::None
                } else if ours.last_decrease() > theirs.last_decrease() {
                    News::Decision
                } else {
                    News::Slight
                }
            }
            // Others run the steady law on this account: they know more.
            (Self::Aimd(_), Some(Self::Steady(_))) => News::None,
            (Self::Steady(_), None | Some(Self::Aimd(_))) => News::Decision,
            (Self::Steady(ours), Some(Self::Steady(theirs))) => {
                if ours.decisions > theirs.decisions {
                    News::Decision
                } else {
                    News::None
                }
            }
        }
    }
}
