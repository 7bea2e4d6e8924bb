//! The largest use served without a refusal within the last hour, kept in twelve slots of five minutes so
//! that it really ages. Decides nothing; the decrease and its blame read it.

const SLOT_MS: u64 = 300_000;
const SLOTS: usize = 12;

/// Peaks by five minutes. `slot` is the number of the newest one; slot `n` lives at index `n % 12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peaks {
    slot: u64,
    uses: [u64; SLOTS],
}

impl Peaks {
    /// Notes a use that was served at `at`; true if that changed anything.
    pub fn note(&mut self, used: u64, at: u64) -> bool {
        let slot = at / SLOT_MS;
        if slot.abs_diff(self.slot) >= SLOTS as u64 {
            // Either everything here is older than an hour, or the clock was set back by more than one.
            *self = Self { slot, uses: [0; SLOTS] };
        }
        while self.slot < slot {
            self.slot += 1;
            self.uses[index(self.slot)] = 0;
        }
        let held = &mut self.uses[index(slot)];
        let raised = used > *held;
        *held = used.max(*held);
        raised
    }

    /// The largest use of the hour before `now`; 0 if none was seen.
    #[must_use]
    pub fn largest(&self, now: u64) -> u64 {
        let aged = (now / SLOT_MS).saturating_sub(self.slot).min(SLOTS as u64) as usize;
        (0..SLOTS - aged).map(|back| self.uses[index(self.slot.wrapping_sub(back as u64))]).max().unwrap_or(0)
    }

    /// The largest use of the newest five minutes.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.uses[index(self.slot)]
    }

    /// Notes everything that `other` holds and that is not an hour older than what is held here.
    pub fn merge(&mut self, other: &Self) {
        for back in (0..SLOTS as u64).rev() {
            let Some(slot) = other.slot.checked_sub(back) else { continue };
            let used = other.uses[index(slot)];
            if used > 0 && slot.saturating_add(SLOTS as u64) > self.slot {
                self.note(used, slot.saturating_mul(SLOT_MS));
            }
        }
    }

    /// From when on [`Peaks::note`] opens a new slot, in milliseconds.
    #[must_use]
    pub fn slot_ends(&self) -> u64 {
        self.slot.saturating_add(1).saturating_mul(SLOT_MS)
    }

    pub(crate) fn parts(&self) -> (u64, [u64; SLOTS]) {
        (self.slot, self.uses)
    }

    pub(crate) fn from_parts(slot: u64, uses: [u64; SLOTS]) -> Self {
        Self { slot: slot.min(u64::MAX / SLOT_MS), uses }
    }
}

fn index(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;

    /// Notes each (use, minute), then asks at the given minute.
    fn check(notes: &[(u64, u64)], minute: u64, expected: u64) {
        let mut peaks = Peaks::default();
        for (used, at) in notes {
            peaks.note(*used, at * MINUTE);
        }
        assert_eq!(peaks.largest(minute * MINUTE), expected, "{notes:?} at {minute}");
    }

    #[test]
    fn a_peak_lasts_an_hour_and_no_longer() {
        check(&[], 5, 0);
        check(&[(7, 1000)], 1000, 7);
        check(&[(7, 1000)], 1059, 7);
        check(&[(7, 1000)], 1060, 0);
        // Kills forgetting to clear the slots that were skipped: 9 stood at the index of minute 1060.
        check(&[(9, 1000), (3, 1061)], 1061, 3);
        check(&[(9, 1000), (3, 1030)], 1059, 9);
        check(&[(9, 1000), (3, 1030)], 1065, 3);
        check(&[(9, 1000), (3, 1030)], 9_000, 0);
    }

    #[test]
    fn a_clock_that_went_back_is_harmless() {
        check(&[(9, 1000), (3, 990)], 1000, 9);
        check(&[(3, 1000), (9, 990)], 990, 9);
        // By more than an hour: what was seen then is no longer comparable.
        check(&[(9, 100_000), (3, 1000)], 1000, 3);
        check(&[(9, u64::MAX / MINUTE)], 0, 9);
    }
}
