//! What is remembered of an account between decisions, and what can be read off it: its ceiling, its pace, when the
//! next probe is due. Never changes by itself; no growth is computed when read.

use super::Pace;
use super::reasons::{BETWEEN_TRIALS, DEPTH_HOLD, FIRST_DEPTH, HASTE, MARGIN, SHALLOW, STEP};

/// All that the law knows of one account. Written whole, by compare-and-set, when something was decided.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// Decisions so far: of two records the one with more is newer.
    pub decisions: u64,
    /// The window, in milliseconds.
    pub window_ms: u64,
    /// Requests per window that were served without a refusal.
    pub level: f64,
    /// The lowest refused level; infinite if none is remembered.
    pub refused: f64,
    /// What is kept below a refused level, as a share.
    pub margin: f64,
    /// Requests at once, as a share of the level.
    pub depth: f64,
    /// The pace held requests back although little of the level was in use.
    pub clipped: bool,
    /// What is being tried on top.
    pub trial: Trial,
    /// Trials served in a row.
    pub run: u32,
    /// When the trial, or what came before it, began; milliseconds.
    pub since: u64,
    /// When the level was last found.
    pub settled: u64,
    /// No trial before.
    pub next: u64,
    /// Refusals not yet paid for.
    pub debt: f64,
    /// No deeper burst is tried before.
    pub depth_next: u64,
    /// Windows until one is.
    pub depth_hold: f64,
    /// When the last refusal was heard.
    pub hit: u64,
    /// The probe of its park was refused, too, after a good part of the window.
    pub lasts: bool,
    /// When one was last confirmed.
    pub confirmed: u64,
    /// The episode's refusal, until a second one confirms it.
    pub doubt: Option<Doubt>,
    /// How the level rose of late, to tell a false rise.
    pub rise: Rise,
    /// At what use of each window it was refused, shortest window first.
    pub marks: [Mark; 3],
    /// The limit that the provider states, as it was last believed; 0 if it states none. Then the window is the stated one.
    pub stated: f64,
}

/// Something above the level, until a window has served it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trial {
    /// Nothing is tried.
    None,
    /// So many requests per window more.
    Level(f64),
}

/// What a second refusal makes of the level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Doubt {
    /// Then the level is at most this,
    pub level: f64,
    /// refused at that,
    pub refused: f64,
    /// and this much is kept below.
    pub margin: f64,
    /// When the first refused request was sent.
    pub sent_at: u64,
}

/// A refusal as one window saw it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Mark {
    /// What was in use.
    pub used: f64,
    /// How often it had been the same, with half a window between.
    pub times: u32,
    /// When, in milliseconds.
    pub at: u64,
}

/// A rise: from where, to where, until when, and how many before it were false.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rise {
    /// The level before it.
    pub base: f64,
    /// The highest level it came to.
    pub top: f64,
    /// When it was last fed.
    pub at: u64,
    /// False rises of late.
    pub falses: u32,
    /// When the last one was.
    pub false_at: u64,
    /// The level before the last run of trials.
    pub good: f64,
}

impl Level {
    /// A level of `used` requests per window, just refused.
    pub(crate) fn found(window_ms: u64, used: f64, now: u64) -> Self {
        let level = (used * (1.0 - MARGIN.0)).max(1.0);
        Self {
            decisions: 1,
            window_ms,
            level,
            refused: used,
            margin: MARGIN.0,
            depth: FIRST_DEPTH,
            clipped: false,
            trial: Trial::None,
            run: 0,
            since: now,
            settled: now,
            next: now,
            debt: 0.0,
            depth_next: now.saturating_add((DEPTH_HOLD.0 * window_ms as f64) as u64),
            depth_hold: DEPTH_HOLD.0,
            hit: now,
            lasts: false,
            confirmed: 0,
            doubt: None,
            rise: Rise::default(),
            marks: [Mark::default(); 3],
            stated: 0.0,
        }
    }

    /// A level that another law left behind: nothing is known of what lies above it.
    pub(crate) fn stored(window_ms: u64, level: f64, at: u64) -> Self {
        Self { level, refused: f64::INFINITY, debt: 0.0, ..Self::found(window_ms, level, at) }
    }

    /// What may be in use within the window, with what is being tried.
    #[must_use]
    pub fn ceiling(&self) -> f64 {
        match self.trial {
            Trial::Level(more) => self.level + more,
            Trial::None => self.level,
        }
    }

    /// When the next trial may begin, if all of the level is used and nothing refused: earlier if what is owed is paid before.
    #[must_use]
    pub fn trial_due(&self) -> u64 {
        super::grow::due(self)
    }

    /// The first level: nothing above it was tried yet, and no second refusal bore it out. What finding it costs is no
    /// trial's fault. Decisions do not tell, for records of several processes are merged by one.
    pub(crate) fn is_being_found(&self) -> bool {
        self.confirmed == 0 && self.rise.good == 0.0
    }

    /// Whether a stated limit was believed already, or one that differs by no more than a fiftieth.
    #[must_use]
    pub fn believed(&self, window_ms: u64, limit: f64) -> bool {
        self.window_ms == window_ms && (self.stated - limit).abs() * 50.0 <= self.stated
    }

    /// How it is spread over the window.
    #[must_use]
    pub fn pace(&self) -> Pace {
        let ceiling = self.ceiling().max(f64::MIN_POSITIVE);
        Pace {
            gap_us: self.window_ms as f64 * 1000.0 / (HASTE * ceiling),
            depth: (self.depth * ceiling).max(1.0),
        }
    }

    /// Between two requests at its pace, in milliseconds.
    #[must_use]
    pub fn gap_ms(&self) -> u64 {
        (self.pace().gap_us / 1000.0) as u64
    }

    /// This record, when the store has `theirs`. Of two decisions the store's holds, it was there first; but a refusal that
    /// it does not know of is not forgotten.
    #[must_use]
    pub fn beside(&self, theirs: &Self) -> Self {
        let same = self.decisions == theirs.decisions
            && self.hit == theirs.hit
            && (self.level - theirs.level).abs() < 0.01
            && (self.ceiling() - theirs.ceiling()).abs() < 0.01;
        if self.decisions > theirs.decisions || same {
            return *self;
        }
        if self.hit <= theirs.hit || self.window_ms != theirs.window_ms {
            return *theirs;
        }
        Self {
            decisions: theirs.decisions + 1,
            level: self.level.min(theirs.level),
            refused: self.refused.min(theirs.refused),
            trial: Trial::None,
            run: 0,
            debt: self.debt.max(theirs.debt),
            hit: self.hit,
            doubt: self.doubt,
            ..*theirs
        }
    }

    /// So few may come at once that arrivals at random leave part of the level unused.
    #[must_use]
    pub fn is_shallow(&self) -> bool {
        self.depth * self.ceiling() <= SHALLOW
    }

    /// Use of the level, given what was sent and what the pace turned away. Arrivals at random leave part of a shallow pace
    /// unused however many come, so who was turned away counts, once half of the level is really in use.
    pub(crate) fn pressed(&self, used: f64, held: f64) -> f64 {
        let ceiling = self.ceiling();
        let shallow = self.is_shallow() && used >= ceiling / 2.0;
        if shallow { (used + held).min(ceiling).max(used) } else { used }
    }

    /// The first step above the level.
    pub(crate) fn step(&self) -> f64 {
        (STEP * self.level).round().max(1.0)
    }

    /// Where the margin below the refused level ends.
    pub(crate) fn top(&self) -> f64 {
        self.refused * (1.0 - self.margin)
    }

    pub(crate) fn windows(&self, n: f64) -> u64 {
        (n * self.window_ms as f64) as u64
    }

    /// The level stands: nothing is tried for some windows, moved by `chance` in 0..=1.
    pub(crate) fn settle(&mut self, now: u64, chance: f64) {
        self.trial = Trial::None;
        self.run = 0;
        (self.since, self.settled) = (now, now);
        self.next = now.saturating_add(self.windows(BETWEEN_TRIALS * (0.8 + 0.4 * chance)));
    }
}
