//! The runs of both laws that are made: every kind of limit, size, demand and nuisance, limits that step, and a drawn set
//! whose seeds no number was chosen by.

use aimd::Mode;

use super::contest::Contest;
use super::hidden::{Demand, Hidden, Kind};
use super::rng::Rng;

/// A run and the row of the table that it belongs to.
#[derive(Debug, Clone)]
pub struct Entry {
    /// For people.
    pub name: String,
    /// The row.
    pub row: &'static str,
    /// What is run.
    pub contest: Contest,
}

const KINDS: [Kind; 6] =
    [Kind::Fixed, Kind::Rolling, Kind::Counter, Kind::Bucket(0.1), Kind::Bucket(1.0), Kind::Bucket(10.0)];

/// The seed of the drawn set that is quoted. The law's numbers were chosen on others.
pub const HELD_OUT: u64 = 0x4845_4144;

fn named(kind: Kind) -> String {
    match kind {
        Kind::Fixed => "fixed".to_owned(),
        Kind::Rolling => "rolling".to_owned(),
        Kind::Counter => "counter".to_owned(),
        Kind::Bucket(seconds) => format!("bucket of {seconds} s"),
    }
}

fn contest(kind: Kind, limit: f64, window_s: f64, mode: Mode) -> Contest {
    let hidden =
        Hidden { kind, window_s, limit, step: None, wavers: 0.0, counts_refused: false, strays: 0.0 };
    Contest {
        hidden,
        demand: Demand::Times(2.0),
        idle: None,
        round_trip_s: 0.1,
        mode,
        window_known: false,
        replicas: 1,
        late_s: 0.0,
        seconds: length(limit, window_s, mode),
    }
}

/// Seconds to settle in and to measure. AIMD grows by the minute whatever the window, so it is given as many.
fn length(limit: f64, window_s: f64, mode: Mode) -> (f64, f64) {
    let windows = if limit <= 20.0 {
        1500.0
    } else if limit > 5000.0 {
        250.0
    } else {
        500.0
    };
    match mode {
        Mode::Aimd => ((200.0 * window_s).max(2400.0), (windows * window_s).max(6000.0)),
        Mode::Steady if window_s >= 60.0 && limit > 20.0 => (80.0 * window_s, 200.0 * window_s),
        Mode::Steady => {
            let settle = if limit <= 20.0 { 900.0 } else { 400.0 };
            ((150.0 * window_s).max(settle), (windows * window_s).max(1500.0))
        }
    }
}

struct List {
    mode: Mode,
    entries: Vec<Entry>,
}

impl List {
    fn add(
        &mut self,
        row: &'static str,
        kind: Kind,
        limit: f64,
        window_s: f64,
        change: impl Fn(&mut Contest),
    ) {
        let mut contest = contest(kind, limit, window_s, self.mode);
        change(&mut contest);
        let name = format!("{} {limit} per {window_s} s, {row}", named(kind));
        self.entries.push(Entry { name, row, contest });
    }

    /// Every kind of window at 1 and `long` seconds, buckets at 1.
    fn kinds(
        &mut self,
        row: &'static str,
        limit: f64,
        long: f64,
        with_counter: bool,
        change: impl Fn(&mut Contest),
    ) {
        for kind in [Kind::Fixed, Kind::Rolling, Kind::Counter] {
            if kind != Kind::Counter || with_counter {
                self.add(row, kind, limit, 1.0, &change);
                self.add(row, kind, limit, long, &change);
            }
        }
        self.add(row, Kind::Bucket(1.0), limit, 1.0, &change);
    }
}

/// The listed scenarios, whose limits do not step.
#[must_use]
pub fn listed(mode: Mode) -> Vec<Entry> {
    let mut list = List { mode, entries: Vec::new() };
    for window_s in [1.0, 10.0, 60.0] {
        list.add("200 per window, fixed", Kind::Fixed, 200.0, window_s, |_| ());
        list.add("200 per window, rolling", Kind::Rolling, 200.0, window_s, |_| ());
        list.add("200 per window, counter", Kind::Counter, 200.0, window_s, |_| ());
    }
    for seconds in [0.1, 1.0, 10.0] {
        list.add("200 a second, buckets", Kind::Bucket(seconds), 200.0, 1.0, |_| ());
    }
    sizes(&mut list);
    demands(&mut list);
    nuisances(&mut list);
    list.entries
}

fn sizes(list: &mut List) {
    for kind in [Kind::Fixed, Kind::Rolling, Kind::Bucket(1.0)] {
        for (limit, window_s) in [(1000.0, 1.0), (1000.0, 60.0), (10_000.0, 10.0)] {
            list.add("1000 to 10 000", kind, limit, window_s, |_| ());
        }
        for (limit, window_s) in [(50.0, 10.0), (50.0, 60.0)] {
            list.add("50 per 10 and 60 s", kind, limit, window_s, |_| ());
        }
        list.add("20 a second", kind, 20.0, 1.0, |_| ());
        for window_s in [1.0, 60.0] {
            list.add("5 per 1 and 60 s", kind, 5.0, window_s, |_| ());
        }
    }
}

fn demands(list: &mut List) {
    for (row, demand) in [
        ("demand 0.95", Demand::Times(0.95)),
        ("demand 1.05", Demand::Times(1.05)),
        ("demand 0.5", Demand::Times(0.5)),
        ("demand in bursts", Demand::Bursty),
        ("demand in waves", Demand::Diurnal),
    ] {
        list.kinds(row, 300.0, 60.0, true, |c| c.demand = demand);
    }
}

fn nuisances(list: &mut List) {
    list.kinds("limit wavers by 5 %", 200.0, 10.0, false, |c| c.hidden.wavers = 0.05);
    list.kinds("refusals count", 200.0, 10.0, false, |c| c.hidden.counts_refused = true);
    list.kinds("round trip 20 ms", 200.0, 10.0, false, |c| c.round_trip_s = 0.02);
    list.kinds("round trip 300 ms", 200.0, 10.0, false, |c| c.round_trip_s = 0.3);
    list.kinds("two replicas that hear of each other 2 s late", 200.0, 10.0, false, |c| {
        (c.replicas, c.late_s) = (2, 2.0);
    });
    for kind in [Kind::Fixed, Kind::Rolling] {
        for window_s in [1.0, 60.0] {
            list.add("window configured", kind, 200.0, window_s, |c| c.window_known = true);
        }
    }
    for kind in [Kind::Fixed, Kind::Bucket(1.0)] {
        list.add("0.05 % stray refusals", kind, 200.0, 1.0, |c| c.hidden.strays = 0.0005);
        list.add("250 windows of demand, 250 idle", kind, 200.0, 1.0, |c| c.idle = Some(250.0));
    }
}

/// Limits that fall to a third or treble.
#[must_use]
pub fn steps(mode: Mode) -> Vec<Entry> {
    let mut list = List { mode, entries: Vec::new() };
    for kind in [Kind::Fixed, Kind::Rolling, Kind::Counter, Kind::Bucket(1.0)] {
        for (limit, window_s) in [(50.0, 1.0), (1000.0, 1.0), (50.0, 10.0), (300.0, 60.0)] {
            if matches!(kind, Kind::Bucket(_)) && window_s != 1.0 {
                continue;
            }
            for (row, to, demand) in [("falls to a third", 1.0 / 3.0, 2.0), ("trebles", 3.0, 6.0)] {
                list.add(row, kind, limit, window_s, |c| step(c, to, demand));
            }
        }
    }
    list.entries
}

fn step(contest: &mut Contest, to: f64, demand: f64) {
    let window_s = contest.hidden.window_s;
    let at = contest.seconds.0 + 0.21 * window_s;
    contest.hidden.step = Some((at, to * contest.hidden.limit));
    contest.demand = Demand::Times(demand);
    let after = if contest.mode == Mode::Aimd { (200.0 * window_s).max(6000.0) } else { 120.0 * window_s };
    contest.seconds.1 = after;
}

/// `count` scenarios drawn with `seed`.
#[must_use]
pub fn drawn(count: usize, seed: u64, mode: Mode) -> Vec<Entry> {
    let mut rng = Rng::new(seed);
    (0..count).map(|number| draw(number, &mut rng, mode)).collect()
}

fn draw(number: usize, rng: &mut Rng, mode: Mode) -> Entry {
    let kind = KINDS[(rng.even() * 6.0) as usize];
    let window_s = [1.0, 10.0, 60.0][(rng.even() * 3.0) as usize];
    let limit = (40.0 * 100f64.powf(rng.even())).round();
    let mut contest = contest(kind, limit, window_s, mode);
    contest.round_trip_s = 0.02 * 15f64.powf(rng.even());
    contest.hidden.wavers = if rng.chance(0.25) { 0.05 } else { 0.0 };
    contest.hidden.counts_refused = rng.chance(0.3);
    if rng.chance(0.3) {
        (contest.replicas, contest.late_s) = (2, 2.0);
    }
    let times = 1.1 + 2.5 * rng.even();
    contest.demand = if rng.chance(0.2) { Demand::Diurnal } else { Demand::Times(times) };
    let name = format!(
        "{number}: {} {limit} per {window_s} s, {:.0} ms, wavers {}, counts refused {}, replicas {}, {:.2?}",
        named(kind),
        contest.round_trip_s * 1000.0,
        contest.hidden.wavers,
        contest.hidden.counts_refused,
        contest.replicas,
        contest.demand,
    );
    Entry { name, row: "drawn", contest }
}
