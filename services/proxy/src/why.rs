//! What happened to a request: who was asked, who was passed over and why, what they said. Kept for the last
//! requests of each worker and told to an operator who has the request's id.

mod id;
mod recent;
mod story;

pub(crate) use id::RequestId;
pub(crate) use recent::Glimpse;
pub(crate) use story::{Story, of_level, tell};

use crate::select::Skip;
use aimd::steady::Level;
use detect::Judgement;
use recent::Recent;
use std::time::Duration;

/// Requests remembered per worker.
const REMEMBERED: usize = 4096;
/// Steps remembered per request.
const MOST_STEPS: usize = 64;

/// One thing that happened, at a time since the request's start.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) at: Duration,
    pub(crate) what: What,
}

/// What happened. Endpoints are told by their numbers.
#[derive(Clone, Debug)]
pub(crate) enum What {
    Skipped {
        endpoint: u32,
        skip: Skip,
        /// What the steady law knew of an endpoint that is full by its estimate.
        level: Option<Box<Level>>,
    },
    Answered {
        endpoint: u32,
        status: u16,
        judgement: Judgement,
        took: Duration,
    },
    Failed {
        endpoint: u32,
        how: String,
        took: Duration,
    },
    /// The connection that had been kept for it closed under it.
    SentAgain {
        endpoint: u32,
        how: String,
    },
    Waited {
        took: Duration,
    },
    /// At a gate of ours.
    Queued {
        took: Duration,
    },
    LastResort {
        endpoint: u32,
    },
    Overflow {
        endpoint: u32,
    },
    Resolved {
        how: &'static str,
    },
}

/// The story of one request.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) id: RequestId,
    /// Its number; its name is looked up when somebody asks: the story of a request that nobody asks for touches no more than it must.
    pub(crate) chain: Option<u32>,
    /// The generation of the detection rules that judged its answers.
    pub(crate) rules: u32,
    /// The method, or how many calls a batch had.
    pub(crate) asked: String,
    /// Unix milliseconds.
    pub(crate) started: u64,
    pub(crate) steps: Vec<Step>,
    pub(crate) status: u16,
    pub(crate) reason: Option<&'static str>,
    pub(crate) took: Duration,
}

impl Record {
    pub(crate) fn push(&mut self, at: Duration, what: What) {
        if self.steps.len() < MOST_STEPS {
            self.steps.push(Step { at, what });
        }
    }
}

/// The last requests of one worker.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    records: Vec<Record>,
    next: usize,
    recent: Recent,
}

impl Ring {
    /// A record to fill; it reuses the memory of the one that is forgotten for it.
    pub(crate) fn start(&mut self, id: RequestId, started: u64) -> Record {
        let mut record = if self.records.len() < REMEMBERED {
            None
        } else {
            let empty = Record::empty(id);
            Some(std::mem::replace(&mut self.records[self.next], empty))
        }
        .unwrap_or_else(|| Record::empty(id));
        record.steps.clear();
        record.asked.clear();
        Record { id, started, chain: None, status: 0, reason: None, took: Duration::ZERO, ..record }
    }

    pub(crate) fn finish(&mut self, record: Record) {
        let place = if self.records.len() < REMEMBERED { self.records.len() } else { self.next };
        self.recent.finished(place, &record);
        if self.records.len() < REMEMBERED {
            self.records.push(record);
        } else {
            self.records[self.next] = record;
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    pub(crate) fn find(&self, id: RequestId) -> Option<&Record> {
        self.records.iter().find(|record| record.id == id)
    }

    /// The last requests that were retried, refused or failed.
    pub(crate) fn recent(&self, chain: impl Fn(u32) -> Option<String>) -> Vec<Glimpse> {
        self.recent.glimpses(&self.records, chain)
    }
}

impl Record {
    pub(crate) fn empty(id: RequestId) -> Record {
        Record {
            id,
            chain: None,
            rules: 0,
            asked: String::new(),
            started: 0,
            steps: Vec::new(),
            status: 0,
            reason: None,
            took: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(count: u64) -> RequestId {
        RequestId { process: 7, worker: 1, count }
    }

    #[test]
    fn the_last_requests_are_remembered_and_older_ones_are_not() {
        let mut ring = Ring::default();
        for count in 0..REMEMBERED as u64 + 10 {
            let record = ring.start(id(count), 0);
            ring.finish(record);
        }
        assert!(ring.find(id(9)).is_none());
        assert!(ring.find(id(10)).is_some(), "kills: forgetting one too many");
        assert!(ring.find(id(REMEMBERED as u64 + 9)).is_some());
    }

    // Kills: showing what went well, or a request whose place another one took.
    #[test]
    fn only_what_went_otherwise_is_shown_and_only_while_it_is_remembered() {
        let mut ring = Ring::default();
        let finish = |ring: &mut Ring, count: u64, status: u16, tries: usize| {
            let mut record = ring.start(id(count), 0);
            record.status = status;
            for _ in 0..tries {
                let how = "timeout".to_owned();
                record.push(Duration::ZERO, What::Failed { endpoint: 1, how, took: Duration::ZERO });
            }
            ring.finish(record);
        };
        for (count, status, tries) in [(0, 200, 1), (1, 200, 2), (2, 429, 0), (3, 502, 1), (4, 400, 1)] {
            finish(&mut ring, count, status, tries);
        }
        let shown = |ring: &Ring| {
            let ids =
                ring.recent(|_| None).into_iter().map(|one| serde_json::json!(one)["request_id"].clone());
            ids.collect::<Vec<_>>()
        };
        assert_eq!(shown(&ring), [1, 2, 3].map(|count| serde_json::json!(id(count).to_string())));
        (5..REMEMBERED as u64 + 3).for_each(|count| finish(&mut ring, count, 200, 1));
        assert_eq!(shown(&ring), [serde_json::json!(id(3).to_string())], "1 and 2 are forgotten");
    }

    #[test]
    fn memory_of_a_forgotten_record_does_not_leak_into_the_next() {
        let mut ring = Ring::default();
        for count in 0..=REMEMBERED as u64 {
            let mut record = ring.start(id(count), 0);
            assert!(record.steps.is_empty() && record.asked.is_empty());
            record.push(Duration::ZERO, What::Waited { took: Duration::ZERO });
            record.asked.push_str("eth_call");
            ring.finish(record);
        }
    }
}
