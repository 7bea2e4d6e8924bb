//! HTTP/1.1 connections to one origin that wait for their next request. Which endpoint asks does not matter to them: its path
//! and its headers come with each request.

use crate::target::Target;
use crate::watched::Heard;
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// Idle connections are closed before the usual 60 s of load balancers and nodes, whenever the pools are tidied.
const IDLE: Duration = Duration::from_secs(50);
/// Idle connections kept per worker and origin, whose endpoints may be many.
const MOST_IDLE: usize = 1024;

/// Where a connection leads, and whether TLS is spoken on it.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Origin {
    tls: bool,
    host: Box<str>,
    port: u16,
}

impl Origin {
    pub(super) fn of(target: &Target) -> Origin {
        Origin { tls: target.tls, host: target.host.clone(), port: target.port }
    }
}

/// One of them, or one that is to become one.
pub(super) struct Sender {
    pub(super) requests: SendRequest<Full<Bytes>>,
    /// What came over it before a request, or that it idled, makes it one that was kept.
    pub(super) heard: Heard,
}

pub(super) struct Kept {
    idle: RefCell<Vec<(Sender, Instant)>>,
    /// When it was last tidied: near enough to tell how long a connection idles.
    tidied: Cell<Instant>,
}

impl Kept {
    pub(super) fn new() -> Kept {
        Kept { idle: RefCell::default(), tidied: Cell::new(Instant::now()) }
    }

    pub(super) fn put(&self, sender: Sender) {
        let mut idle = self.idle.borrow_mut();
        if !sender.requests.is_closed() && idle.len() < MOST_IDLE {
            idle.push((sender, self.tidied.get()));
        }
    }

    /// The connection that was used last, once it can take a request. `None`: a new one is needed.
    pub(super) async fn take(&self) -> Option<Sender> {
        loop {
            let (mut sender, since) = self.idle.borrow_mut().pop()?;
            if sender.requests.ready().await.is_ok() {
                if since != self.tidied.get() {
                    // Fresh no more, though it may have been made for a request that never came.
                    sender.heard.note();
                }
                return Some(sender);
            }
        }
    }

    pub(super) fn has_any(&self) -> bool {
        self.idle.borrow().iter().rev().any(|(sender, _)| !sender.requests.is_closed())
    }

    /// Closes what idled too long.
    pub(super) fn tidy(&self, now: Instant) {
        self.tidied.set(now);
        let fresh = |since: Instant| now.saturating_duration_since(since) < IDLE;
        self.idle.borrow_mut().retain(|(sender, since)| !sender.requests.is_closed() && fresh(*since));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: a request sent to another host, another port, or in the clear, and paths that keep connections apart.
    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let origin = |url: &str| {
            let url = config::SecretUrl::parse(url, &["http", "https"]).expect("a good URL");
            Origin::of(&Target::new(&url, &[]).expect("a good target"))
        };
        let same = origin("https://a.example/eth/key-1");
        for (url, expected) in [
            ("https://A.example:443/polygon?key=2", true),
            ("https://user:pw@a.example/", true),
            ("http://a.example/eth/key-1", false),
            ("http://a.example:443/eth/key-1", false),
            ("https://a.example:8443/eth/key-1", false),
            ("https://b.example/eth/key-1", false),
        ] {
            assert_eq!(origin(url) == same, expected, "{url}");
        }
    }
}
