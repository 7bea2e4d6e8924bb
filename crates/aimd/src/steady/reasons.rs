//! The law's numbers, each with the reason it stands. No rule is here.

/// What one answer pays of a refusal. The debt is what keeps refusals at about this share of requests.
pub(crate) const PAY: f64 = 0.0015;
/// A trial may begin once so little is owed: most of the last refusal is paid.
pub(crate) const PAID: f64 = 0.4;
/// Above this, refusals come from something that trials do not cause; patience is longest then.
pub(crate) const DEEP_IN_DEBT: f64 = 4.0;
/// More is never owed: after a limit fell, its refusals are forgotten within the hour.
pub(crate) const MOST_OWED: f64 = 40.0;

/// The first step above a level: the least that is worth the risk of one request in five hundred.
pub(crate) const STEP: f64 = 0.002;
/// Use from this share of a level on is all of it: Poisson arrivals leave gaps.
pub(crate) const ALL: f64 = 0.97;
/// Under this level one request is three per cent: a trial must be seen whole, for two windows.
pub(crate) const SMALL: f64 = 32.0;

/// What is kept below a refused level at least, and at most: exact limits, and limits that waver by a twentieth.
pub(crate) const MARGIN: (f64, f64) = (0.005, 0.08);
/// A confirmed refusal near the level widens the margin, a trial narrows it.
pub(crate) const WIDEN: f64 = 1.5;
pub(crate) const NARROW: f64 = 0.9;

/// An unconfirmed refusal leaves this: providers refuse at random, too.
pub(crate) const DOUBT: f64 = 0.995;
/// A second refusal within so many requests of the first confirms it: one in two thousand refused at random is not followed
/// so soon by another, once in sixty times.
pub(crate) const SOON: f64 = 32.0;
/// No refusal lowers a level further at once.
pub(crate) const MOST_AT_ONCE: f64 = 0.5;
/// A refusal at this share of the level is about the level.
pub(crate) const NEAR: f64 = 0.85;

/// Windows between two trials while all is well, before chance moves it by a fifth.
pub(crate) const BETWEEN_TRIALS: f64 = 6.0;
/// One refusal in so many requests is the price of trials that fail: small levels are tried seldom.
pub(crate) const PRICE: f64 = 1700.0;

/// Requests come evenly, a little faster than the level, or what arrives late would be lost.
pub(crate) const HASTE: f64 = 1.02;
/// A level's first burst: an eighth of it.
pub(crate) const FIRST_DEPTH: f64 = 1.0 / 8.0;
/// No burst is known to be shallower than this share of a level.
pub(crate) const LEAST_DEPTH: f64 = 1.0 / 512.0;
/// A deeper burst is tried after so many windows, twice as many after each refusal, at most.
pub(crate) const DEPTH_HOLD: (f64, f64) = (8.0, 512.0);

/// Before the first level fewer requests in a window prove nothing.
pub(crate) const FEWEST: f64 = 5.0;
/// Use at two refusals is the same if it differs by no more; small counts are the same by chance.
pub(crate) const SAME: f64 = 0.03;
pub(crate) const MARKED: f64 = 10.0;
/// A longer window that the level's pace filled so far looks the same each time, whatever is refused. Replicas that hear of each
/// other late fill little more.
pub(crate) const FILLED: f64 = 0.75;
/// The same so often in a row is no chance.
pub(crate) const AGAIN: u32 = 2;
/// What is remembered of a rise, in windows, to tell a false one.
pub(crate) const RISE: f64 = 64.0;
/// A rise by so much that falls back was false. A limit that wavers by a twentieth to either side lets a level rise by less.
pub(crate) const HIGH: f64 = 1.2;
/// A false rise is forgotten after so many windows.
pub(crate) const FALSE_RISE: f64 = 512.0;
/// Trials that came so far show that a limit moved; it is followed in a shorter window's steps.
pub(crate) const RUNAWAY: f64 = 1.25;

/// So far ahead of an even pace a request belongs to a burst: a single one is at 1.
pub(crate) const BURST: f64 = 1.5;
/// Where no more requests than this may come at once, arrivals at random leave part of the level unused however many come:
/// who was turned away by the pace counts as use.
pub(crate) const SHALLOW: f64 = 8.0;
