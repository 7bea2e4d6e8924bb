//! One connection: the request that is on its way, and those that wait for it.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::Instant;

use anyhow::{Context, bail};
use rustix::event::epoll;
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};

use crate::answer::Answer;
use crate::options::Options;
use crate::request::{check, request};

/// A request's number, and when its latency began.
#[derive(Clone, Copy)]
pub(crate) struct Due {
    pub(crate) number: u64,
    pub(crate) since: Instant,
}

pub(crate) struct Lane {
    key: u64,
    socket: Option<TcpStream>,
    current: Option<Due>,
    unsent: Vec<u8>,
    answer: Answer,
    waiting: VecDeque<Due>,
}

impl Lane {
    /// A connection that is not there yet; its events will carry this key.
    pub(crate) fn new(key: u64) -> Self {
        let (unsent, answer, waiting) = (Vec::new(), Answer::default(), VecDeque::new());
        Self { key, socket: None, current: None, unsent, answer, waiting }
    }

    /// Connects, without waiting for it: what is written before waits for the event that says that it is.
    pub(crate) fn connect(&mut self, address: SocketAddr, poll: &OwnedFd) -> anyhow::Result<()> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), None)?;
        socket.set_tcp_nodelay(true)?;
        let started = socket.connect(&address.into());
        if let Err(error) = started
            && error.raw_os_error() != Some(Errno::INPROGRESS.raw_os_error())
        {
            return Err(error).context("connecting");
        }
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        epoll::add(poll, &socket, epoll::EventData::new_u64(self.key), flags)?;
        self.socket = Some(socket.into());
        Ok(())
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    /// A request that has to wait for the one on its way.
    pub(crate) fn queue(&mut self, due: Due) {
        self.waiting.push_back(due);
    }

    pub(crate) fn start(&mut self, options: &Options, due: Due) {
        self.current = Some(due);
        self.unsent = request(options, due.number);
        self.answer.clear();
    }

    /// Starts the request that waited longest. False when none did.
    pub(crate) fn start_next(&mut self, options: &Options) -> bool {
        let next = self.waiting.pop_front();
        if let Some(due) = next {
            self.start(options, due);
        }
        next.is_some()
    }

    /// Connects, writes and reads what can be without waiting. True once the answer is whole.
    pub(crate) fn advance(
        &mut self,
        address: SocketAddr,
        poll: &OwnedFd,
        buffer: &mut [u8],
    ) -> anyhow::Result<bool> {
        if self.current.is_none() {
            return Ok(false);
        }
        if self.socket.is_none() {
            self.connect(address, poll)?;
        }
        self.write()?;
        if !self.unsent.is_empty() {
            return Ok(false);
        }
        self.read(buffer)
    }

    fn write(&mut self) -> anyhow::Result<()> {
        let socket = self.socket.as_mut().context("not connected")?;
        while !self.unsent.is_empty() {
            match socket.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if may_come_later(error.kind()) => break,
                Err(error) => return Err(error).context("sending"),
            }
        }
        Ok(())
    }

    fn read(&mut self, buffer: &mut [u8]) -> anyhow::Result<bool> {
        let socket = self.socket.as_mut().context("not connected")?;
        loop {
            match socket.read(buffer) {
                Ok(0) => bail!("closed before the answer was whole"),
                Ok(count) if self.answer.push(&buffer[..count])? => return Ok(true),
                Ok(_) => {}
                Err(error) if may_come_later(error.kind()) => return Ok(false),
                Err(error) => return Err(error).context("reading the answer"),
            }
        }
    }

    /// Ends the request on its way: what it was, and whether its answer is what was asked for.
    pub(crate) fn finish(
        &mut self,
        options: &Options,
        how: anyhow::Result<()>,
    ) -> Option<(Due, anyhow::Result<()>)> {
        let due = self.current.take()?;
        if options.close || how.is_err() || self.answer.closes() {
            self.socket = None;
        }
        let (status, body) = self.answer.parts();
        let result = how.and_then(|()| check(options, due.number, status, body));
        Some((due, result))
    }
}

/// Not connected yet, nothing there yet, or no room yet: an event will tell.
fn may_come_later(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
