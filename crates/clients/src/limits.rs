//! The eight dimensions of a limit and what can be said of them without counting. Decides which limits hold for whom;
//! never whether they are reached.

use ledger::{Cost, Unit};

/// A dimension with a window: windows are aligned to Unix time, and each lies within one of any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub name: &'static str,
    pub unit: Unit,
    pub period_ms: u64,
}

const fn window(name: &'static str, unit: Unit, seconds: u64) -> Window {
    Window { name, unit, period_ms: seconds * 1000 }
}

/// All windows there are.
pub const WINDOWS: [Window; 7] = [
    window("rps", Unit::Requests, 1),
    window("rpm", Unit::Requests, 60),
    window("rph", Unit::Requests, 3_600),
    window("rpd", Unit::Requests, 86_400),
    window("cu_per_second", Unit::ComputeUnits, 1),
    window("cu_per_minute", Unit::ComputeUnits, 60),
    window("cu_per_day", Unit::ComputeUnits, 86_400),
];

/// The names of all dimensions, as they stand in a file.
pub const DIMENSIONS: [&str; 8] =
    ["rps", "rpm", "rph", "rpd", "cu_per_second", "cu_per_minute", "cu_per_day", "concurrency"];

/// A limit below this is counted request by request, not leased in blocks.
pub const EXACT_BELOW: u64 = 100;

impl Window {
    /// What a request of this cost takes of it.
    #[must_use]
    pub fn part(&self, cost: Cost) -> u64 {
        match self.unit {
            Unit::Requests => u64::from(cost.requests),
            Unit::ComputeUnits => u64::from(cost.units),
        }
    }

    /// The number of the window that runs at `now`.
    #[must_use]
    pub fn number(&self, now: u64) -> u64 {
        now / self.period_ms
    }

    /// How long the window that runs at `now` lasts.
    #[must_use]
    pub fn left_ms(&self, now: u64) -> u64 {
        self.period_ms - now % self.period_ms
    }
}

/// The limits of one subject; what is not there is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Limits {
    /// In the order of [`WINDOWS`].
    pub windows: [Option<u64>; WINDOWS.len()],
    pub concurrency: Option<u64>,
}

impl Limits {
    /// Sets the dimension of this name; false: there is none.
    pub fn set(&mut self, name: &str, limit: u64) -> bool {
        if name == "concurrency" {
            self.concurrency = Some(limit);
            return true;
        }
        let place = WINDOWS.iter().position(|window| window.name == name);
        place.inspect(|at| self.windows[*at] = Some(limit)).is_some()
    }

    /// These, and what they leave open from `plan`.
    #[must_use]
    pub fn over(&self, plan: &Limits) -> Limits {
        let mut merged = *plan;
        for (limit, own) in merged.windows.iter_mut().zip(self.windows) {
            *limit = own.or(*limit);
        }
        merged.concurrency = self.concurrency.or(plan.concurrency);
        merged
    }

    /// Windows that are limited, with their limits and their places in [`WINDOWS`].
    pub fn limited(&self) -> impl Iterator<Item = (usize, &'static Window, u64)> {
        let each = self.windows.iter().zip(&WINDOWS).enumerate();
        each.filter_map(|(at, (limit, window))| Some((at, window, (*limit)?)))
    }

    /// Whether nothing is limited.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self == Limits::default()
    }

    /// Whether amounts of `unit` are limited.
    #[must_use]
    pub fn limits(&self, unit: Unit) -> bool {
        self.limited().any(|(_, window, _)| window.unit == unit)
    }

    /// The dimension that a request of this cost can never pass.
    #[must_use]
    pub fn never(&self, cost: Cost) -> Option<(&'static str, u64)> {
        let mut limited = self.limited();
        limited
            .find(|(_, window, limit)| window.part(cost) > *limit)
            .map(|(_, window, limit)| (window.name, limit))
    }

    /// Whether each request is counted where all replicas count, one by one.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.concurrency.is_some() || self.limited().any(|(_, _, limit)| limit < EXACT_BELOW)
    }

    /// What one of `replicas` may admit alone: its part, but at least one, or nobody would be served.
    #[must_use]
    pub fn share(&self, replicas: u32) -> Limits {
        let part = |limit: Option<u64>| limit.map(|limit| (limit / u64::from(replicas.max(1))).max(1));
        Limits { windows: self.windows.map(part), concurrency: part(self.concurrency) }
    }

    /// The shortest window that is limited: what was leased ends with it.
    #[must_use]
    pub fn shortest(&self) -> Option<&'static Window> {
        self.limited().map(|(_, window, _)| window).min_by_key(|window| window.period_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(pairs: &[(&str, u64)]) -> Limits {
        let mut limits = Limits::default();
        pairs.iter().for_each(|(name, limit)| assert!(limits.set(name, *limit), "{name}"));
        limits
    }

    /// Kills: a dimension that cannot be set, one that stands in another's place.
    #[test]
    fn every_dimension_has_its_place() {
        for (at, name) in DIMENSIONS.into_iter().enumerate() {
            let set = limits(&[(name, 7)]);
            match set.windows.iter().position(Option::is_some) {
                Some(place) => assert_eq!((place, WINDOWS[place].name), (at, name)),
                None => assert_eq!((name, set.concurrency), ("concurrency", Some(7))),
            }
        }
        assert!(!Limits::default().set("rpw", 1));
    }

    /// Kills: a plan that rules over the client, a dimension of the plan that is lost.
    #[test]
    fn a_clients_own_rules_over_its_plans_name_by_name() {
        let plan = limits(&[("rpm", 600), ("concurrency", 20)]);
        let own = limits(&[("rps", 5), ("rpm", 6_000)]);
        assert_eq!(own.over(&plan), limits(&[("rps", 5), ("rpm", 6_000), ("concurrency", 20)]));
    }

    #[test]
    fn what_can_never_pass_is_named() {
        let cost = |requests, units| Cost { requests, units };
        let set = limits(&[("rps", 5), ("cu_per_day", 100)]);
        assert_eq!(set.never(cost(5, 100)), None);
        assert_eq!(set.never(cost(6, 0)), Some(("rps", 5)));
        assert_eq!(set.never(cost(1, 101)), Some(("cu_per_day", 100)));
    }

    #[test]
    fn small_limits_and_concurrency_are_exact() {
        for (pairs, exact) in [
            (&[("rps", 99)][..], true),
            (&[("rps", 100)], false),
            (&[("rps", 1_000), ("rpd", 50)], true),
            (&[("rps", 1_000), ("concurrency", 500)], true),
            (&[], false),
        ] {
            assert_eq!(limits(pairs).is_exact(), exact, "{pairs:?}");
        }
    }

    /// Kills: a share of nothing, and a share that is the whole.
    #[test]
    fn a_share_is_a_part_and_at_least_one() {
        let set = limits(&[("rps", 100), ("rpm", 3), ("concurrency", 9)]);
        assert_eq!(set.share(4), limits(&[("rps", 25), ("rpm", 1), ("concurrency", 2)]));
        assert_eq!(set.share(0), set);
    }

    #[test]
    fn windows_begin_with_unix_time() {
        let minute = WINDOWS[1];
        assert_eq!((minute.number(59_999), minute.left_ms(59_999)), (0, 1));
        assert_eq!((minute.number(60_000), minute.left_ms(60_000)), (1, 60_000));
        assert_eq!(
            limits(&[("rph", 1), ("cu_per_minute", 1)]).shortest().map(|w| w.name),
            Some("cu_per_minute")
        );
    }
}
