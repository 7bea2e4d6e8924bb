//! What is measured of endpoints, told to all processes: gathered here, written and published in batches, heard at once,
//! and read as a whole now and then in case something was not heard.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fred::types::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

use super::counts::Op;
use super::link::Failure;
use super::subject::{Ground, LIMIT};
use crate::health::{Finding, News};

/// What is to be told waits this long for more.
const GATHER: Duration = Duration::from_millis(100);
/// Findings that nobody renews go away with the whole after this long.
const LIFE_MS: u64 = 24 * 3_600_000;
/// A single finding that nobody renews is taken away after this long.
const OLD_MS: u64 = 3_600_000;
/// A message with more findings than this is cut in parts.
const MOST: usize = 200;

/// What is to be told, and what was heard.
pub(crate) struct Reports {
    key: String,
    channel: String,
    poll: Duration,
    outbox: Mutex<Outbox>,
    waiting: Notify,
}

#[derive(Default)]
struct Outbox {
    findings: HashMap<String, Finding>,
    ejected: HashSet<String>,
}

/// When each subject's newest finding was written: what is read again is no news.
#[derive(Default)]
struct Known(HashMap<String, u64>);

impl Reports {
    /// Whole readings come at least this far apart: `poll`, but not below a second.
    pub(crate) fn new(key: String, channel: String, poll: Duration) -> Reports {
        let poll = poll.max(Duration::from_secs(1));
        Reports { key, channel, poll, outbox: Mutex::default(), waiting: Notify::new() }
    }

    /// A finding to tell; only the newest of a subject is told.
    pub(crate) fn found(&self, subject: String, finding: Finding) {
        self.outbox().findings.insert(subject, finding);
        self.waiting.notify_one();
    }

    pub(crate) fn ejected(&self, subject: String) {
        self.outbox().ejected.insert(subject);
        self.waiting.notify_one();
    }

    /// Tells and listens until dropped; `lost` messages are made up for by the next whole reading.
    pub(crate) async fn run(
        &self,
        ground: &Ground,
        mut heard: mpsc::Receiver<String>,
        news: impl Fn(Vec<News>),
    ) {
        let mut known = Known::default();
        let mut turns = ground.link.turns();
        let mut due = Instant::now();
        loop {
            tokio::select! {
                () = self.waiting.notified() => {
                    sleep(GATHER).await;
                    self.tell(ground).await;
                }
                Some(message) = heard.recv() => pass_on(known.take(&message), &news),
                Ok(()) = turns.changed() => due = Instant::now(),
                () = sleep_until(due), if ground.link.is_up() => {
                    due = Instant::now() + self.poll;
                    match self.read(ground, &mut known).await {
                        Ok(found) => pass_on(found, &news),
                        Err(failure) => tracing::debug!(%failure, "cannot read what checkers found"),
                    }
                }
            }
        }
    }

    async fn tell(&self, ground: &Ground) {
        let Outbox { findings, ejected } = std::mem::take(&mut *self.outbox());
        let mut ejected: Vec<String> = ejected.into_iter().collect();
        let findings: Vec<_> = findings.into_iter().collect();
        let mut parts: Vec<&[(String, Finding)]> = findings.chunks(MOST).collect();
        if parts.is_empty() && !ejected.is_empty() {
            parts.push(&[]);
        }
        for part in parts {
            let life = LIFE_MS.to_string();
            let hints = std::mem::take(&mut ejected).join("\n");
            let mut args = vec![self.channel.clone(), ground.holder.clone(), life, hints];
            for (subject, finding) in part {
                args.extend([subject.clone(), finding.encode()]);
            }
            ground.link.counts().tripped(Op::Health);
            let script = &ground.scripts.report;
            let told = ground.link.run(Op::Health, script, vec![self.key.clone()], args, LIMIT).await;
            if let Err(failure) = told {
                self.not_told(ground, part, &failure);
            }
        }
    }

    /// What could not be told waits for the next time, unless something newer is there.
    fn not_told(&self, ground: &Ground, part: &[(String, Finding)], failure: &Failure) {
        if let Failure::Refused(why) = failure {
            ground.trouble.of_key(&self.key, why);
        }
        let mut outbox = self.outbox();
        for (subject, finding) in part {
            outbox.findings.entry(subject.clone()).or_insert(*finding);
        }
    }

    async fn read(&self, ground: &Ground, known: &mut Known) -> Result<Vec<News>, Failure> {
        ground.link.counts().tripped(Op::Health);
        let keys = vec![self.key.clone()];
        let answer = ground.link.run(Op::Health, &ground.scripts.reports, keys, Vec::new(), LIMIT).await;
        let answer = answer.inspect_err(|failure| {
            if let Failure::Refused(why) = failure {
                ground.trouble.of_key(&self.key, why);
            }
        })?;
        let texts: Vec<String> = answer.into_array().iter().filter_map(Value::as_string).collect();
        let unreadable = || Failure::Refused("the reports script answered what we cannot read".to_owned());
        let (now, fields) = texts.split_first().ok_or_else(unreadable)?;
        let now: u64 = now.parse().map_err(|_| unreadable())?;
        let (mut found, mut old) = (Vec::new(), Vec::new());
        for pair in fields.chunks_exact(2) {
            let (subject, text) = (&pair[0], &pair[1]);
            let Some((at, finding)) = Finding::decode(text) else {
                ground
                    .trouble
                    .of_key(&format!("{} field {subject}", self.key), "not a finding of a known version");
                continue;
            };
            let age_ms = now.saturating_sub(at);
            if age_ms >= OLD_MS {
                old.push(subject.clone());
            }
            if known.is_news(subject, at) {
                found.push(News::Found { subject: subject.clone(), finding, age_ms });
            }
        }
        self.forget(ground, old).await;
        Ok(found)
    }

    async fn forget(&self, ground: &Ground, old: Vec<String>) {
        if old.is_empty() {
            return;
        }
        let args = std::iter::once(OLD_MS.to_string()).chain(old).collect();
        ground.link.counts().tripped(Op::Health);
        // Left there, it is found again the next time.
        let _ =
            ground.link.run(Op::Health, &ground.scripts.forget, vec![self.key.clone()], args, LIMIT).await;
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// A published message taken apart; its first line is who wrote it. It was written just now.
    fn take(&mut self, message: &str) -> Vec<News> {
        message.lines().skip(1).filter_map(|line| self.line(line)).collect()
    }

    fn line(&mut self, line: &str) -> Option<News> {
        if let Some(subject) = line.strip_prefix("e ") {
            return Some(News::Ejected { subject: subject.to_owned() });
        }
        let (subject, text) = line.strip_prefix("f ")?.split_once(' ')?;
        let (at, finding) = Finding::decode(text)?;
        let news = || News::Found { subject: subject.to_owned(), finding, age_ms: 0 };
        self.is_news(subject, at).then(news)
    }

    fn is_news(&mut self, subject: &str, at: u64) -> bool {
        match self.0.get_mut(subject) {
            Some(known) if *known >= at => false,
            Some(known) => {
                *known = at;
                true
            }
            None => {
                self.0.insert(subject.to_owned(), at);
                true
            }
        }
    }
}

fn pass_on(found: Vec<News>, news: &impl Fn(Vec<News>)) {
    if !found.is_empty() {
        news(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_taken_apart_and_what_is_known_is_no_news() {
        let mut known = Known::default();
        let found = known.take("me\ne main/a/http\nf main/b/http 50:1:1:7:99\nnonsense\nf x");
        let finding = Finding { healthy: true, ok: true, took_ms: 7, block: 99 };
        let expected = [
            News::Ejected { subject: "main/a/http".into() },
            News::Found { subject: "main/b/http".into(), finding, age_ms: 0 },
        ];
        assert_eq!(found, expected);
        // Kills: counting one probe twice because it was heard and then read.
        assert!(!known.is_news("main/b/http", 50) && known.is_news("main/b/http", 51));
    }
}
