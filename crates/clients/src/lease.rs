//! One subject's block: tokens of all its dimensions at once, charged where all replicas count and spent here without
//! asking, until the shortest window ends. Decides what may be spent, when to ask for more, and what was left over; sends
//! nothing itself.
//!
//! A block ends at the instant its ask was sent plus what then remained of the window, so no clock need agree with
//! another: an answer that is late makes it shorter, never longer.

use crate::standing::{Used, standing};
use crate::{Dry, Limits, Refusal, Standing, WINDOWS, Window};
use ledger::{Cost, Unit};

/// A block is meant to last this long at the pace at which tokens are spent.
const LASTS_MS: u64 = 25;
/// A first block is a hundredth of the smallest limit, but within these.
const FIRST: (u64, u64) = (4, 16);
/// A block is no larger than this part of the smallest limit.
const MOST_PART: u64 = 50;
/// More is asked for when less than this part of the last grant is left.
const LOW_PART: u32 = 4;

/// The answer to [`Lease::take`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Spent, of the block granted at this instant of the store's clock. `low`: more should be asked for.
    Yes {
        standing: Option<Standing>,
        granted: u64,
        low: bool,
    },
    Dry(Refusal),
    /// There may be tokens, but not here: ask, or wait for the answer to who asked.
    Wanting,
}

/// What is asked for: enough for the largest request that waits, or nothing; then for all that wait; then some to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub need: Cost,
    pub waiting: Cost,
    pub more: Cost,
}

/// What was granted, and the use of every window after it.
#[derive(Clone, Copy, Debug)]
pub struct Grant {
    pub tokens: Cost,
    pub used: Used,
    /// The store's clock, Unix milliseconds.
    pub at: u64,
}

/// Tokens that will not be spent, to be given back to the windows that still run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credit {
    /// When they were charged, by the store's clock.
    pub granted: u64,
    pub tokens: Cost,
}

/// Times are of the process's own clock, in milliseconds, unless said otherwise.
#[derive(Debug)]
pub struct Lease {
    limits: Limits,
    shortest: &'static Window,
    block: Option<Block>,
    dry: Option<Dry>,
    asking: bool,
    need: Cost,
    waiting: Cost,
    left_over: Vec<Credit>,
    /// Spent since the last ask, and when that was.
    spent: Cost,
    paced: u64,
    last_take: u64,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    tokens: Cost,
    low: Cost,
    granted: u64,
    used: Used,
    /// When the ask was sent, and when the shortest window ends at the earliest.
    sent: u64,
    ends: u64,
}

impl Lease {
    /// A lease that holds nothing; `None` where no window is limited.
    #[must_use]
    pub fn new(limits: Limits) -> Option<Lease> {
        let none = Cost::requests(0);
        Some(Lease {
            shortest: limits.shortest()?,
            limits,
            block: None,
            dry: None,
            asking: false,
            need: none,
            waiting: none,
            left_over: Vec::new(),
            spent: none,
            paced: 0,
            last_take: 0,
        })
    }

    /// Takes what a request costs, or nothing.
    pub fn take(&mut self, cost: Cost, now: u64) -> Taken {
        self.end_block(now);
        self.last_take = now;
        let (by_requests, by_units) =
            (self.limits.limits(Unit::Requests), self.limits.limits(Unit::ComputeUnits));
        let enough = |tokens: Cost, cost: Cost| {
            (!by_requests || tokens.requests >= cost.requests) && (!by_units || tokens.units >= cost.units)
        };
        let dry = self.dry.and_then(|dry| dry.refuses(cost, false, now));
        if let Some(block) = self.block.as_mut().filter(|block| enough(block.tokens, cost)) {
            block.tokens = less(block.tokens, cost);
            self.spent = more(self.spent, cost);
            let low = dry.is_none() && !self.asking && !enough(block.tokens, block.low);
            return Taken::Yes { standing: block.standing(&self.limits, now), granted: block.granted, low };
        }
        if let Some(refusal) = dry {
            return Taken::Dry(refusal);
        }
        self.need =
            Cost { requests: self.need.requests.max(cost.requests), units: self.need.units.max(cost.units) };
        self.waiting = more(self.waiting, cost);
        Taken::Wanting
    }

    /// What to ask for; `None` while somebody asks already. To be answered by one of the next three.
    pub fn ask(&mut self, now: u64) -> Option<Wish> {
        if std::mem::replace(&mut self.asking, true) {
            return None;
        }
        let none = Cost::requests(0);
        let held = self.block.map_or(none, |block| block.tokens);
        let more = self.pace(now);
        let wish = Wish {
            need: less(std::mem::replace(&mut self.need, none), held),
            waiting: std::mem::replace(&mut self.waiting, none),
            more,
        };
        (self.spent, self.paced) = (none, now);
        Some(wish)
    }

    /// Takes in a grant whose ask was sent at `sent`.
    pub fn granted(&mut self, grant: &Grant, sent: u64) {
        self.asking = false;
        self.dry = None;
        // A millisecond less: the store's clock was rounded down.
        let ends = sent + self.shortest.left_ms(grant.at).saturating_sub(1);
        let before = self.block.take();
        let same = |block: &Block| self.shortest.number(block.granted) == self.shortest.number(grant.at);
        let kept = match before {
            Some(block) if same(&block) => block,
            Some(block) => {
                self.left_over.extend(block.credit());
                Block::EMPTY
            }
            None => Block::EMPTY,
        };
        let part = |n: u32| n / LOW_PART;
        self.block = Some(Block {
            tokens: more(kept.tokens, grant.tokens),
            low: Cost { requests: part(grant.tokens.requests), units: part(grant.tokens.units) },
            granted: grant.at,
            used: grant.used,
            sent,
            // Both are bounds, and the window is the same.
            ends: ends.max(kept.ends),
        });
    }

    /// The store refused what the ask needed; its answer arrived at `received`.
    pub fn refused(&mut self, refusal: Refusal, wish: &Wish, received: u64) {
        self.asking = false;
        self.dry = Some(Dry::new(refusal, wish.need, received));
    }

    /// The ask got no answer in time: what it may have been granted stays unused.
    pub fn unanswered(&mut self) {
        self.asking = false;
    }

    /// A request that took `cost` of the block granted at `granted` was never dispatched.
    pub fn put_back(&mut self, cost: Cost, granted: u64) {
        match &mut self.block {
            Some(block) if self.shortest.number(block.granted) == self.shortest.number(granted) => {
                block.tokens = more(block.tokens, cost);
            }
            _ => self.left_over.push(Credit { granted, tokens: cost }),
        }
    }

    /// What will not be spent at `now`: left over from windows that have ended, and held while nobody asked for `idle_ms`.
    pub fn credits(&mut self, idle_ms: u64, now: u64) -> Vec<Credit> {
        self.end_block(now);
        if now.saturating_sub(self.last_take) >= idle_ms && !self.asking {
            self.left_over.extend(self.block.take().and_then(|block| block.credit()));
        }
        std::mem::take(&mut self.left_over)
    }

    /// Whether there is anything that [`Lease::credits`] might return, now or later.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.block.is_some() || self.asking || !self.left_over.is_empty()
    }

    fn end_block(&mut self, now: u64) {
        if let Some(block) = self.block.take_if(|block| now >= block.ends) {
            self.left_over.extend(block.credit());
        }
    }

    /// What lasts for a while at the pace of late.
    fn pace(&self, now: u64) -> Cost {
        let smallest = self.limits.limited().filter(|(_, window, _)| window.unit == Unit::Requests);
        let smallest = smallest.map(|(_, _, limit)| limit).min().unwrap_or(FIRST.1 * 100);
        let first = (smallest / 100).clamp(FIRST.0, FIRST.1);
        let passed = now.saturating_sub(self.paced).max(1);
        let requests = u64::from(self.spent.requests) * LASTS_MS / passed;
        // A replica that dies takes no more than this with it.
        let requests = requests.min(smallest / MOST_PART).max(first);
        // A request's units, on average; the first that asks is as good a guess as any.
        let known = if self.spent.requests > 0 { self.spent } else { self.need };
        let each = u64::from(known.units).div_ceil(u64::from(known.requests.max(1)));
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        Cost { requests: narrow(requests), units: narrow(requests.saturating_mul(each)) }
    }
}

impl Block {
    const EMPTY: Block = Block {
        tokens: Cost { requests: 0, units: 0 },
        low: Cost { requests: 0, units: 0 },
        granted: 0,
        used: [0; WINDOWS.len()],
        sent: 0,
        ends: 0,
    };

    fn credit(&self) -> Option<Credit> {
        let some = self.tokens.requests > 0 || self.tokens.units > 0;
        some.then_some(Credit { granted: self.granted, tokens: self.tokens })
    }

    /// As the store last told it, less what is still held here.
    fn standing(&self, limits: &Limits, now: u64) -> Option<Standing> {
        let mut used = self.used;
        for (used, window) in used.iter_mut().zip(&WINDOWS) {
            *used = used.saturating_sub(window.part(self.tokens));
        }
        standing(limits, &used, 0, self.granted + now.saturating_sub(self.sent))
    }
}

fn more(a: Cost, b: Cost) -> Cost {
    Cost { requests: a.requests.saturating_add(b.requests), units: a.units.saturating_add(b.units) }
}

fn less(a: Cost, b: Cost) -> Cost {
    Cost { requests: a.requests.saturating_sub(b.requests), units: a.units.saturating_sub(b.units) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The store's clock at the beginning of a second, a minute, and so on.
    const STORE: u64 = 86_400_000 * 20_000;
    const ONE: Cost = Cost { requests: 1, units: 0 };

    fn lease(pairs: &[(&str, u64)]) -> Lease {
        let mut limits = Limits::default();
        pairs.iter().for_each(|(name, limit)| assert!(limits.set(name, *limit)));
        Lease::new(limits).expect("limited")
    }

    fn grant(requests: u32, at: u64) -> Grant {
        Grant { tokens: Cost::requests(requests), used: [u64::from(requests); 7], at }
    }

    fn is_yes(taken: Taken) -> bool {
        matches!(taken, Taken::Yes { .. })
    }

    /// Kills: two asks for one want, tokens that are spent twice, a refill that comes too late.
    #[test]
    fn a_block_is_asked_for_once_and_spent_once() {
        let mut lease = lease(&[("rps", 1_000)]);
        assert_eq!(lease.take(ONE, 0), Taken::Wanting);
        assert_eq!(lease.take(ONE, 0), Taken::Wanting);
        let wish = lease.ask(0).expect("due");
        assert_eq!((wish.need, wish.waiting, wish.more.requests), (ONE, Cost::requests(2), 10));
        assert_eq!(lease.ask(0), None);
        lease.granted(&grant(12, STORE), 0);
        let lows: Vec<bool> = (0..12)
            .map(|_| {
                let Taken::Yes { low, .. } = lease.take(ONE, 1) else { panic!("held") };
                low
            })
            .collect();
        assert_eq!(lows.iter().position(|low| *low), Some(9), "fewer than three are left");
        assert_eq!(lease.take(ONE, 1), Taken::Wanting);
    }

    /// Replies delayed by 300 ms. Kills: a block that ends at its receipt plus what remained, which overshoots the window.
    #[test]
    fn a_late_answer_makes_a_block_shorter_never_longer() {
        let mut lease = lease(&[("rps", 1_000)]);
        lease.take(ONE, 100);
        lease.ask(100).expect("due");
        let (sent, received) = (100, 400);
        // At 100 of our clock the store's second had 500 ms left: it ends at 600.
        let told = grant(50, STORE + 500);
        lease.granted(&told, sent);
        assert!(is_yes(lease.take(ONE, received)) && is_yes(lease.take(ONE, 598)));
        assert_eq!(lease.take(ONE, 600), Taken::Wanting);
        let anchored_by_receipt = received + WINDOWS[0].left_ms(told.at);
        assert!(anchored_by_receipt > 600, "the other variant would spend until {anchored_by_receipt}");
    }

    /// Kills: unspent tokens that are lost for the longer windows, or given back twice.
    #[test]
    fn what_is_left_over_is_credited_once() {
        let mut lease = lease(&[("rps", 1_000), ("rpd", 100_000)]);
        lease.take(ONE, 0);
        lease.ask(0);
        lease.granted(&grant(10, STORE), 0);
        assert!(is_yes(lease.take(ONE, 1)));
        assert_eq!(lease.credits(250, 200), [], "in use");
        assert_eq!(lease.credits(250, 1_000), [Credit { granted: STORE, tokens: Cost::requests(9) }]);
        assert_eq!((lease.credits(250, 5_000), lease.holds()), (Vec::new(), false));
    }

    /// Kills: a replica that keeps tokens it has no use for while another is dry.
    #[test]
    fn an_idle_block_is_given_back_within_its_window() {
        let mut lease = lease(&[("rpm", 1_000)]);
        lease.take(ONE, 0);
        lease.ask(0);
        lease.granted(&grant(10, STORE), 0);
        assert!(is_yes(lease.take(ONE, 1)));
        assert_eq!(lease.credits(250, 251), [Credit { granted: STORE, tokens: Cost::requests(9) }]);
        assert_eq!(lease.take(ONE, 252), Taken::Wanting, "what was given back is gone");
    }

    #[test]
    fn what_was_not_dispatched_is_put_back() {
        let mut lease = lease(&[("rpm", 1_000)]);
        lease.take(ONE, 0);
        lease.ask(0);
        lease.granted(&grant(1, STORE), 0);
        let Taken::Yes { granted, .. } = lease.take(ONE, 1) else { panic!("granted") };
        lease.put_back(ONE, granted);
        assert!(is_yes(lease.take(ONE, 2)));
        assert_eq!(lease.credits(250, 300), []);
        lease.put_back(ONE, granted);
        assert_eq!(lease.credits(250, 300), [Credit { granted, tokens: ONE }], "the block is gone");
    }

    /// Kills: asking again and again when the store has said that there is nothing.
    #[test]
    fn a_refusal_ends_the_asking() {
        let mut lease = lease(&[("rps", 1_000)]);
        lease.take(ONE, 0);
        let wish = lease.ask(0).expect("due");
        let standing = Standing { limit: 1_000, remaining: 0, reset_ms: 400 };
        let refusal =
            Refusal { retry_in_ms: 400, standing, requests: true, units: false, concurrency: false };
        lease.refused(refusal, &wish, 5);
        assert!(matches!(lease.take(ONE, 6), Taken::Dry(refusal) if refusal.retry_in_ms == 399));
        assert_eq!(lease.take(ONE, 405), Taken::Wanting);
    }

    /// Kills: blocks of one size at every pace, which cost a round trip for every few requests.
    #[test]
    fn blocks_grow_with_the_pace() {
        let mut lease = lease(&[("rps", 100_000), ("cu_per_second", 10_000_000)]);
        let cost = Cost { requests: 1, units: 26 };
        lease.take(cost, 0);
        let first = lease.ask(0).expect("due").more;
        assert_eq!(first, Cost { requests: 16, units: 16 * 26 });
        let tokens = Cost { requests: 1_000, units: 26_000 };
        lease.granted(&Grant { tokens, used: [0; 7], at: STORE }, 0);
        (0..1_000).for_each(|_| assert!(is_yes(lease.take(cost, 50))));
        assert_eq!(lease.ask(100).expect("due").more, Cost { requests: 250, units: 250 * 26 });
    }

    #[test]
    fn the_standing_counts_what_is_held_here_as_left() {
        let mut lease = lease(&[("rps", 1_000)]);
        lease.take(ONE, 0);
        lease.ask(0);
        lease.granted(&Grant { tokens: Cost::requests(10), used: [500; 7], at: STORE + 100 }, 0);
        let Taken::Yes { standing: Some(standing), .. } = lease.take(ONE, 50) else { panic!("granted") };
        assert_eq!((standing.limit, standing.remaining, standing.reset_ms), (1_000, 509, 850));
    }
}
