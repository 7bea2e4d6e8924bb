//! The knobs of learning and their ranges. Decides what is valid; never repairs a bad value.

use std::fmt;

/// By which law an account learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Additive increase, multiplicative decrease: three quarters of a limit, and simple.
    #[default]
    Aimd,
    /// A known-good level, paced and probed: nearly all of a limit.
    Steady,
}

/// How an account learns. Build it, then ask [`Params::validate`]; every other function of this crate copes
/// with values out of range, but promises nothing sensible for them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// The law. [`Mode::Steady`] reads only `min_estimate` and `window_ms` of what follows.
    pub mode: Mode,
    /// What a hit leaves of the ceiling: 0 < factor < 1. Default 0.5.
    pub decrease_factor: f64,
    /// A step is added each time this passes without a decrease: at least 1000 ms. Default 60 000.
    pub increase_interval_ms: u64,
    /// No ceiling is ever below this: at least 1 request. Default 1.
    pub min_estimate: u64,
    /// The one window that counts: at least 1000 ms. `None` (the default) learns 1, 10 and 60 s at once.
    pub window_ms: Option<u64>,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            decrease_factor: 0.5,
            increase_interval_ms: 60_000,
            min_estimate: 1,
            window_ms: None,
        }
    }
}

/// A value that must not be used, by the name of its field in the endpoints file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invalid {
    /// `decrease_factor` is not between 0 and 1, both excluded.
    DecreaseFactor,
    /// `increase_interval` is under a second.
    IncreaseInterval,
    /// `min_estimate` is 0.
    MinEstimate,
    /// `window_seconds` is under a second.
    Window,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DecreaseFactor => "decrease_factor must lie between 0 and 1, both excluded",
            Self::IncreaseInterval => "increase_interval must be at least one second",
            Self::MinEstimate => "min_estimate must be at least 1",
            Self::Window => "window_seconds must be at least 1",
        })
    }
}

impl std::error::Error for Invalid {}

impl Params {
    /// Names the first field out of range.
    ///
    /// # Errors
    /// One [`Invalid`] per kind of fault, in the order of the fields.
    pub fn validate(&self) -> Result<(), Invalid> {
        // Written so that a factor that is not a number fails too.
        if !(self.decrease_factor > 0.0 && self.decrease_factor < 1.0) {
            return Err(Invalid::DecreaseFactor);
        }
        if self.increase_interval_ms < 1000 {
            return Err(Invalid::IncreaseInterval);
        }
        if self.min_estimate < 1 {
            return Err(Invalid::MinEstimate);
        }
        match self.window_ms {
            Some(window) if window < 1000 => Err(Invalid::Window),
            Some(_) | None => Ok(()),
        }
    }

    /// The windows an account without any estimate learns on, shortest first.
    #[must_use]
    pub fn windows(&self) -> Vec<u64> {
        match self.window_ms {
            Some(window) => vec![window.max(1)],
            None => vec![1_000, 10_000, 60_000],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl Fn(&mut Params), expected: Result<(), Invalid>) {
        let mut params = Params::default();
        change(&mut params);
        assert_eq!(params.validate(), expected, "{params:?}");
    }

    #[test]
    fn every_field_has_its_range() {
        check(|_| (), Ok(()));
        check(|p| p.decrease_factor = 0.0, Err(Invalid::DecreaseFactor));
        check(|p| p.decrease_factor = 1.0, Err(Invalid::DecreaseFactor));
        check(|p| p.decrease_factor = 2.0, Err(Invalid::DecreaseFactor));
        check(|p| p.decrease_factor = -1.0, Err(Invalid::DecreaseFactor));
        // Kills `factor <= 0.0 || factor >= 1.0`, which lets this one pass.
        check(|p| p.decrease_factor = f64::NAN, Err(Invalid::DecreaseFactor));
        check(|p| p.increase_interval_ms = 999, Err(Invalid::IncreaseInterval));
        check(|p| p.increase_interval_ms = 1000, Ok(()));
        check(|p| p.min_estimate = 0, Err(Invalid::MinEstimate));
        check(|p| p.window_ms = Some(0), Err(Invalid::Window));
        check(|p| p.window_ms = Some(999), Err(Invalid::Window));
        check(|p| p.window_ms = Some(1000), Ok(()));
    }

    #[test]
    fn faults_name_the_field_of_the_endpoints_file() {
        for (fault, field) in [
            (Invalid::DecreaseFactor, "decrease_factor"),
            (Invalid::IncreaseInterval, "increase_interval"),
            (Invalid::MinEstimate, "min_estimate"),
            (Invalid::Window, "window_seconds"),
        ] {
            assert!(fault.to_string().starts_with(field));
        }
    }
}
