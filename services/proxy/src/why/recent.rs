//! Which of the remembered requests an operator may want to look at: those that were retried, refused or failed.
//! Remembers where they stand, never what they were.

use super::story::millis;
use super::{Record, RequestId, What};
use serde::Serialize;

/// How many a worker remembers.
const KEPT: usize = 16;

/// One such request in a line.
#[derive(Debug, Serialize)]
pub(crate) struct Glimpse {
    request_id: String,
    chain: Option<String>,
    asked: String,
    status: u16,
    attempts: usize,
    took_ms: f64,
    pub(crate) started_unix_ms: u64,
}

/// Where the last of them stand in the ring of records.
#[derive(Debug, Default)]
pub(super) struct Recent {
    places: Vec<(usize, RequestId)>,
    next: usize,
}

impl Recent {
    /// The record at `place` is finished.
    pub(super) fn finished(&mut self, place: usize, record: &Record) {
        if !is_notable(record) {
            return;
        }
        if self.places.len() < KEPT {
            self.places.push((place, record.id));
        } else {
            self.places[self.next] = (place, record.id);
            self.next = (self.next + 1) % KEPT;
        }
    }

    /// Those of them that have not been overwritten in `records`.
    pub(super) fn glimpses(&self, records: &[Record], chain: impl Fn(u32) -> Option<String>) -> Vec<Glimpse> {
        let still_there = |(place, id): &(usize, RequestId)| records.get(*place).filter(|r| r.id == *id);
        self.places.iter().filter_map(still_there).map(|record| glimpse(record, &chain)).collect()
    }
}

fn is_notable(record: &Record) -> bool {
    record.status == 429 || record.status >= 500 || attempts(record) > 1
}

fn attempts(record: &Record) -> usize {
    let asked = |what: &What| matches!(what, What::Answered { .. } | What::Failed { .. });
    record.steps.iter().filter(|step| asked(&step.what)).count()
}

fn glimpse(record: &Record, chain: impl Fn(u32) -> Option<String>) -> Glimpse {
    Glimpse {
        request_id: record.id.to_string(),
        chain: record.chain.and_then(chain),
        asked: record.asked.clone(),
        status: record.status,
        attempts: attempts(record),
        took_ms: millis(record.took),
        started_unix_ms: record.started,
    }
}
