//! What a provider remembers of what it was asked. Bounded; counts go on when it is full.

use std::collections::HashMap;
use std::time::Instant;

use bytes::Bytes;
use http::HeaderMap;
use http::request::Parts;
use serde_json::Value;

use crate::request::Request;

/// One call that a provider was asked.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    /// Null for a notification too; see `notification`.
    pub id: Value,
    pub params: Value,
    pub notification: bool,
    /// Which of the provider's HTTP requests it came with, from 0.
    pub post: usize,
    /// Path and query.
    pub target: String,
    pub headers: HeaderMap,
    /// The whole body of the HTTP request.
    pub body: Bytes,
    pub at: Instant,
}

/// The calls of a provider's life, or since it last forgot.
pub(crate) struct Memory {
    most: usize,
    seen: Vec<Seen>,
    counts: HashMap<String, usize>,
    posts: usize,
}

impl Memory {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, seen: Vec::new(), counts: HashMap::new(), posts: 0 }
    }

    pub(crate) fn forget(&mut self) {
        *self = Self::new(self.most);
    }

    pub(crate) fn seen(&self) -> &[Seen] {
        &self.seen
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.counts.get(method).copied().unwrap_or(0)
    }

    pub(crate) fn total(&self) -> usize {
        self.counts.values().sum()
    }

    pub(crate) fn posts(&self) -> usize {
        self.posts
    }

    /// Takes note of a request that came at `at`.
    pub(crate) fn note(&mut self, head: &Parts, request: &Request, at: Instant) {
        let post = self.posts;
        self.posts += 1;
        for call in request.calls() {
            *self.counts.entry(call.method.clone()).or_default() += 1;
            if self.seen.len() < self.most {
                self.seen.push(Seen {
                    method: call.method.clone(),
                    id: call.id().and_then(|id| serde_json::from_str(id).ok()).unwrap_or_default(),
                    params: call.params.clone(),
                    notification: call.id().is_none(),
                    post,
                    target: head.uri.to_string(),
                    headers: head.headers.clone(),
                    body: request.body.clone(),
                    at,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_memory_still_counts() {
        let (head, ()) = http::Request::new(()).into_parts();
        let body = r#"[{"id":1,"method":"a"},{"method":"a"},{"id":2,"method":"b"}]"#;
        let request = Request::parse(body.into()).expect("JSON");
        let mut memory = Memory::new(2);
        memory.note(&head, &request, Instant::now());
        memory.note(&head, &request, Instant::now());
        assert_eq!((memory.seen().len(), memory.count("a"), memory.total(), memory.posts()), (2, 4, 6, 2));
        assert_eq!((memory.seen()[0].notification, memory.seen()[1].notification), (false, true));
        memory.forget();
        assert_eq!((memory.seen().len(), memory.total(), memory.posts()), (0, 0, 0));
    }
}
