//! How much of an answer is held before the client sees any of it: until the verdict is certain and the body is
//! complete or [`ENOUGH`] of it is here. What cannot be judged within the bounds streams on, unscanned.

use super::{Answer, Ask, Rest};
use crate::decode::{Decoder, SLICE};
use crate::net::Purse;
use crate::worker::Worker;
use bytes::Bytes;
use detect::{Detail, Head, Judgement, Rules, Stream, Verdict};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};
use std::collections::VecDeque;

/// Held bytes after which a certain verdict is committed.
const ENOUGH: usize = 64 * 1024;

/// An answer as far as it was read.
pub(super) struct Holding<'a> {
    worker: &'a Worker,
    rules: &'a Rules,
    head: &'a Head<'a>,
    stream: Stream,
    /// Decodes for the judge, and for the client when it did not offer this coding.
    decoder: Option<Decoder>,
    /// The answer's content coding, if it has one.
    coding: Option<&'a HeaderValue>,
    keep_decoded: bool,
    certain: Option<Judgement>,
    chunks: VecDeque<Bytes>,
    bytes: usize,
    rest: Rest,
}

fn undecodable(error: &std::io::Error) -> String {
    format!("the answer cannot be decoded: {error}")
}

fn is_identity(coding: &HeaderValue) -> bool {
    coding.as_bytes().trim_ascii().is_empty() || coding.as_bytes().eq_ignore_ascii_case(b"identity")
}

impl<'a> Holding<'a> {
    /// Nothing of it is read yet.
    ///
    /// # Errors
    /// It has a content coding that we cannot read.
    pub(super) fn new(
        worker: &'a Worker,
        rules: &'a Rules,
        head: &'a Head<'a>,
        ask: &Ask<'_>,
        rest: Rest,
    ) -> Result<Holding<'a>, String> {
        let coding = head.headers.get(CONTENT_ENCODING).filter(|coding| !is_identity(coding));
        let decoder = match coding.map(|coding| Decoder::new(coding.to_str().unwrap_or(""))) {
            Some(None) => return Err("the answer has a content coding nobody asked for".into()),
            Some(decoder) => decoder,
            None => None,
        };
        let offered = coding.is_some_and(|coding| ask.codings.contains(coding.to_str().unwrap_or("")));
        let keep_decoded = decoder.is_some() && (!offered || ask.whole || ask.batch);
        let (stream, chunks) = (rules.stream(), VecDeque::new());
        Ok(Holding {
            worker,
            rules,
            head,
            stream,
            decoder,
            coding,
            keep_decoded,
            certain: None,
            chunks,
            bytes: 0,
            rest,
        })
    }

    /// Reads until enough is held to judge it; true when the body is complete.
    pub(super) async fn fill(&mut self, ask: &Ask<'_>) -> Result<bool, String> {
        let settings = &self.worker.app.settings;
        let most = usize::try_from(settings.max_response_scan_bytes).unwrap_or(usize::MAX).max(ENOUGH);
        let mut budget = None;
        loop {
            if let Some(chunk) = self.rest.chunk().await {
                self.take(chunk.map_err(|error| format!("the answer broke off: {error}"))?)?;
            }
            if self.rest.is_over() {
                self.finish_decoding()?;
                return Ok(true);
            }
            let enough = self.certain.is_some() && !ask.whole && !ask.batch && self.bytes >= ENOUGH;
            if enough || self.bytes > most {
                return Ok(false);
            }
            if self.bytes > ENOUGH {
                // Past what any answer may hold, the process's budget decides whether it is held on.
                let budget = budget.get_or_insert_with(|| Purse::of(&self.worker.app.held).open());
                if !budget.try_grow(self.chunks.back().map_or(0, Bytes::len)) {
                    return Ok(false);
                }
                tokio::task::yield_now().await;
            }
        }
    }

    /// Everything held is judged, also past the point of certainty: a body that ends inside its JSON is a fault
    /// whatever its beginning said.
    fn take(&mut self, chunk: Bytes) -> Result<(), String> {
        let Some(decoder) = &mut self.decoder else {
            self.judge(&chunk);
            self.keep(chunk);
            return Ok(());
        };
        let mut plain = Vec::new();
        let mut decoded = Ok(());
        for slice in chunk.chunks(SLICE) {
            decoded = decoded.and_then(|()| decoder.push(slice, &mut plain));
        }
        decoded.map_err(|error| undecodable(&error))?;
        self.judge(&plain);
        self.keep(if self.keep_decoded { plain.into() } else { chunk });
        Ok(())
    }

    fn finish_decoding(&mut self) -> Result<(), String> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let mut plain = Vec::new();
        decoder.finish(&mut plain).map_err(|error| undecodable(&error))?;
        self.judge(&plain);
        if self.keep_decoded {
            self.keep(plain.into());
        }
        Ok(())
    }

    fn judge(&mut self, plain: &[u8]) {
        let judged = self.stream.push(self.rules, self.head, plain);
        self.certain = self.certain.or(judged);
    }

    fn keep(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.bytes += chunk.len();
            self.chunks.push_back(chunk);
        }
    }

    /// What was held, with the rest to follow it.
    pub(super) fn answer(mut self, ask: &Ask<'_>, status: StatusCode, complete: bool) -> Answer {
        let judgement = self.verdict(ask, status, complete);
        let headers = self.head.headers;
        let declared = || headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
        let coding = self.coding.filter(|_| !self.keep_decoded);
        let items = ask.batch || ask.whole || judgement.verdict != Verdict::Ok;
        let items = if items { self.stream.items().to_vec() } else { Vec::new() };
        let (rest, length) = if complete {
            self.rest.finish();
            (None, Some(self.bytes as u64))
        } else {
            let decoder = if self.keep_decoded { self.decoder } else { None };
            (Some(self.rest.streaming(decoder)), if self.keep_decoded { None } else { declared() })
        };
        Answer {
            status,
            content_type: headers.get(CONTENT_TYPE).cloned(),
            coding: coding.cloned(),
            held: self.chunks,
            held_bytes: self.bytes,
            rest,
            length,
            judgement,
            exhausted: None,
            batch: ask.batch,
            items,
        }
    }

    /// The judgement of what was read. Past the bounds a 2xx counts as a success that was not scanned.
    fn verdict(&mut self, ask: &Ask<'_>, status: StatusCode, complete: bool) -> Judgement {
        if ask.notification && status.is_success() {
            return Judgement { verdict: Verdict::Ok, ..self.stream.finish(self.rules, self.head) };
        }
        match (self.certain, complete) {
            (Some(judgement), false) => judgement,
            (_, true) => self.stream.finish(self.rules, self.head),
            (None, false) if status.is_success() => Judgement {
                verdict: Verdict::Ok,
                detail: Detail::Undecided,
                ..self.stream.finish(self.rules, self.head)
            },
            (None, false) => self.stream.finish(self.rules, self.head),
        }
    }
}
