//! The connections of a worker's clients: which of them wait for a request, and since when. Ends those that wait too long,
//! and has all of them finish when the process is about to go. Knows nothing about requests.
//!
//! All are looked at once a second: a timer for each would be set and taken back by every request.

use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};

/// How long a client may take for a request's head; a kept-alive connection may idle as long.
const PATIENCE: Duration = Duration::from_secs(75);
/// How far the last look may lie back: nobody is ended early for it.
const LOOK: Duration = Duration::from_secs(1);

/// All connections of one worker.
pub(crate) struct Peers {
    /// When they were last looked at.
    looked: Rc<Cell<Instant>>,
    leaving: Cell<bool>,
    /// Not held: a waker keeps the memory of a connection's task, and thousands may come and go between two looks.
    all: RefCell<Vec<Weak<Peer>>>,
}

/// One connection. It is known until its task lets go of it.
pub(crate) struct Peer {
    pub(crate) ip: IpAddr,
    looked: Rc<Cell<Instant>>,
    /// `None`: a request of its is served, or it has HTTP/2, where pings tell who is gone.
    waits_since: Cell<Option<Instant>>,
    told: Cell<Told>,
    task: RefCell<Option<Waker>>,
}

/// What a connection is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Told {
    Nothing,
    /// End when what is in flight is answered.
    Finish,
    /// End now.
    End,
}

impl Peers {
    pub(crate) fn new(now: Instant) -> Peers {
        Peers { looked: Rc::new(Cell::new(now)), leaving: Cell::new(false), all: RefCell::default() }
    }

    /// A connection begins; its first request is waited for.
    pub(crate) fn begin(&self, ip: IpAddr) -> Rc<Peer> {
        let told = if self.leaving.get() { Told::Finish } else { Told::Nothing };
        let peer = Rc::new(Peer {
            ip,
            looked: Rc::clone(&self.looked),
            waits_since: Cell::new(None),
            told: Cell::new(told),
            task: RefCell::default(),
        });
        peer.waits();
        self.all.borrow_mut().push(Rc::downgrade(&peer));
        peer
    }

    /// Ends those that wait too long.
    pub(crate) fn look(&self, now: Instant) {
        self.looked.set(now);
        let mut all = self.all.borrow_mut();
        all.retain(|peer| peer.strong_count() > 0);
        let there = all.iter().filter_map(Weak::upgrade);
        there.filter(|peer| peer.is_late(now)).for_each(|peer| peer.tell(Told::End));
    }

    /// No new requests: those there are, and those to come, finish.
    pub(crate) fn leave(&self) {
        self.leaving.set(true);
        self.all.borrow().iter().filter_map(Weak::upgrade).for_each(|peer| peer.tell(Told::Finish));
    }
}

impl Peer {
    /// What it was told to do. `task` is woken when it is told more.
    pub(crate) fn told(&self, task: &Waker) -> Told {
        let mut known = self.task.borrow_mut();
        if known.as_ref().is_none_or(|known| !known.will_wake(task)) {
            *known = Some(task.clone());
        }
        self.told.get()
    }

    /// A request of its is served.
    pub(crate) fn is_served(&self) {
        self.waits_since.set(None);
    }

    /// Its next request is waited for.
    pub(crate) fn waits(&self) {
        self.waits_since.set(Some(self.looked.get() + LOOK));
    }

    fn is_late(&self, now: Instant) -> bool {
        self.waits_since.get().is_some_and(|since| now.saturating_duration_since(since) >= PATIENCE)
    }

    fn tell(&self, told: Told) {
        self.told.set(self.told.get().max(told));
        if let Some(task) = &*self.task.borrow() {
            task.wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::Wake;

    const IP: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// Kills: ending one that is served, ending early, ending late, and telling nobody.
    #[test]
    fn who_waits_too_long_is_ended() {
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let (peers, count) = (Peers::new(begun), Arc::new(Count::default()));
        let task = Waker::from(Arc::clone(&count));
        let (idle, served, again) = (peers.begin(IP), peers.begin(IP), peers.begin(IP));
        let told = || [&idle, &served, &again].map(|peer| peer.told(&task));
        assert_eq!(told(), [Told::Nothing; 3]);
        served.is_served();
        again.is_served();
        peers.look(at(40));
        again.waits();
        peers.look(at(75));
        assert_eq!((told(), count.0.load(Relaxed)), ([Told::Nothing; 3], 0));
        peers.look(at(76));
        assert_eq!((told(), count.0.load(Relaxed)), ([Told::End, Told::Nothing, Told::Nothing], 1));
        peers.look(at(115));
        assert_eq!(told()[2], Told::Nothing);
        peers.look(at(116));
        assert_eq!(told(), [Told::End, Told::Nothing, Told::End]);
    }

    /// Kills: a connection that keeps a process from going, also one that began while it goes; the memory of those that are gone,
    /// their tasks' until the next look as well.
    #[test]
    fn all_finish_and_who_is_gone_is_forgotten() {
        let now = Instant::now();
        let (peers, count) = (Peers::new(now), Arc::new(Count::default()));
        let task = Waker::from(Arc::clone(&count));
        let peer = peers.begin(IP);
        assert_eq!(peer.told(&task), Told::Nothing);
        peers.leave();
        let late = peers.begin(IP);
        assert_eq!((peer.told(&task), late.told(&task)), (Told::Finish, Told::Finish));
        assert_eq!(count.0.load(Relaxed), 1);
        let wakers = Arc::strong_count(&count);
        drop(peer);
        assert_eq!(Arc::strong_count(&count), wakers - 1);
        peers.look(now);
        assert_eq!(peers.all.borrow().len(), 1);
    }
}
