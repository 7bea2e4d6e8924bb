//! Methods that endpoints refused, kept away from them for a while. Most chains have none, and then a request
//! takes no lock.

use bytes::Bytes;
use health::MethodParks;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};

/// An endpoint's number and a method.
type Key = (u32, Box<str>);

/// The parked methods of one chain, over HTTP.
#[derive(Default)]
pub struct Methods {
    kept: AtomicUsize,
    parks: Mutex<MethodParks<Key, Refusal>>,
}

/// What an endpoint said to a method.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// It does not serve the method; the answer is given again when nobody does.
    Unsupported(Stored),
    /// It limits the method by itself, until then (Unix milliseconds).
    Limited { until: u64 },
}

/// A refusal as it came, and where its id stands.
#[derive(Clone, Debug)]
pub struct Stored {
    pub status: http::StatusCode,
    pub body: Bytes,
    pub id: Option<std::ops::Range<usize>>,
    pub judgement: detect::Judgement,
}

impl Methods {
    /// Whether nobody refused anything; asking takes no lock.
    pub fn is_empty(&self) -> bool {
        self.kept.load(Relaxed) == 0
    }

    /// What `endpoint` said to `method`, while that counts.
    pub fn refusal(&self, endpoint: u32, method: &str, now: u64) -> Option<Refusal> {
        if self.is_empty() {
            return None;
        }
        self.parks().refusal(&(endpoint, method.into()), now).cloned()
    }

    /// Keeps `method` away from `endpoint` for as long as a missing method is believed.
    pub fn unsupported(&self, endpoint: u32, method: &str, answer: Stored, now: u64) {
        let until = now.saturating_add(MethodParks::<Key, Refusal>::CAPABILITY_MS);
        self.park(endpoint, method, Refusal::Unsupported(answer), until, now);
    }

    /// Keeps `method` away from `endpoint` until then.
    pub fn limited(&self, endpoint: u32, method: &str, until: u64, now: u64) {
        self.park(endpoint, method, Refusal::Limited { until }, until, now);
    }

    fn park(&self, endpoint: u32, method: &str, refusal: Refusal, until: u64, now: u64) {
        let mut parks = self.parks();
        parks.park((endpoint, method.into()), refusal, until, now);
        self.kept.store(parks.len(), Relaxed);
    }

    fn parks(&self) -> MutexGuard<'_, MethodParks<Key, Refusal>> {
        self.parks.lock().expect("no holder of this lock can panic")
    }
}
