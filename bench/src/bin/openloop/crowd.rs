//! All connections, on one thread: hands each request to its connection when it is due, and sleeps until something happens.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::Outcome;
use crate::lane::{Due, Lane};
use crate::options::Options;

/// No program that is measured takes as long for an answer: then it is lost, and so is the run.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

pub(crate) struct Crowd<'a> {
    options: &'a Options,
    poll: OwnedFd,
    lanes: Vec<Lane>,
    start: Instant,
    handed_out: u64,
    outcome: Outcome,
    buffer: Vec<u8>,
}

impl<'a> Crowd<'a> {
    pub(crate) fn connected(options: &'a Options) -> anyhow::Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let lanes = (0..options.connections.get()).map(Lane::new).collect();
        let buffer = vec![0; 256 * 1024];
        let mut crowd = Self {
            options,
            poll,
            lanes,
            start: Instant::now(),
            handed_out: 0,
            outcome: Outcome::default(),
            buffer,
        };
        if !options.close {
            crowd.lanes.iter_mut().try_for_each(|lane| lane.connect(options.address, &crowd.poll))?;
        }
        Ok(crowd)
    }

    /// Sends everything and waits for every answer. How long it took goes with what was seen.
    pub(crate) fn run(mut self) -> anyhow::Result<(Outcome, Duration)> {
        self.start = Instant::now();
        let mut events = Vec::with_capacity(1024);
        loop {
            self.hand_out();
            if self.outcome.latencies.total() == self.options.requests {
                return Ok((self.outcome, self.start.elapsed()));
            }
            self.sleep(&mut events)?;
            for event in events.drain(..) {
                self.advance(usize::try_from(event.data.u64())?);
            }
        }
    }

    /// Gives out all requests that are due. Being late for one is this program's own delay, so that its latency begins now;
    /// one whose connection is busy waits for the proxy, and its latency began when it was due.
    fn hand_out(&mut self) {
        if self.options.rate == 0.0 {
            return self.hand_out_to_idle();
        }
        while self.handed_out < self.options.requests {
            let due = self.due(self.handed_out);
            let now = Instant::now();
            if due > now {
                return;
            }
            let lane = (self.handed_out % self.options.connections) as usize;
            let number = self.next_number();
            if self.lanes[lane].is_idle() {
                self.send(lane, Due { number, since: now });
            } else {
                self.lanes[lane].queue(Due { number, since: due });
            }
        }
    }

    fn hand_out_to_idle(&mut self) {
        for lane in 0..self.lanes.len() {
            while self.lanes[lane].is_idle() && self.handed_out < self.options.requests {
                let number = self.next_number();
                self.send(lane, Due { number, since: Instant::now() });
            }
        }
    }

    fn next_number(&mut self) -> u64 {
        let number = self.handed_out;
        self.handed_out += 1;
        number
    }

    fn due(&self, number: u64) -> Instant {
        self.start + Duration::from_secs_f64(number as f64 / self.options.rate)
    }

    fn send(&mut self, lane: usize, due: Due) {
        self.lanes[lane].start(self.options, due);
        self.advance(lane);
    }

    /// Moves a connection on, and through those of its requests that waited, as far as it goes without waiting.
    fn advance(&mut self, lane: usize) {
        let lane = &mut self.lanes[lane];
        loop {
            let how = match lane.advance(self.options.address, &self.poll, &mut self.buffer) {
                Ok(false) => return,
                Ok(true) => Ok(()),
                Err(error) => Err(error),
            };
            if let Some((due, result)) = lane.finish(self.options, how) {
                self.outcome.record(due.since.elapsed(), result);
            }
            if !lane.start_next(self.options) {
                return;
            }
        }
    }

    /// Until an answer comes, but not past the next request's time.
    fn sleep(&self, events: &mut Vec<epoll::Event>) -> anyhow::Result<()> {
        let all_out = self.handed_out == self.options.requests || self.options.rate == 0.0;
        let longest = if all_out { LONGEST_SILENCE } else { self.until_next() };
        let timeout = Timespec::try_from(longest).context("the next request is too far away")?;
        match epoll::wait(&self.poll, spare_capacity(events), Some(&timeout)) {
            Ok(0) if all_out => bail!("no answer for {} s", LONGEST_SILENCE.as_secs()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("waiting for answers"),
        }
    }

    fn until_next(&self) -> Duration {
        self.due(self.handed_out).saturating_duration_since(Instant::now())
    }
}
