//! Which window a hit is about: the configured one, the one the refusal names, or of the three the one whose
//! use stands highest against what it is known to bear. Decides only that.

use crate::{Evidence, Record, Span};

/// Before the first estimate of a window, fewer requests than this prove nothing.
const FEWEST: u64 = 5;

/// The span that the evidence speaks against, or `None` if it proves nothing about any.
pub(crate) fn blamed(record: &Record, evidence: &Evidence<'_>, now: u64) -> Option<usize> {
    let proves = |i: usize| {
        let observed = evidence.observed.get(i).copied().unwrap_or(0);
        observed >= if record.spans[i].estimate.is_none() { FEWEST } else { 1 }
    };
    if record.spans.len() == 1 {
        return Some(0).filter(|i| proves(*i));
    }
    if let Some(named) = evidence.named_window_ms {
        return named_span(record, named).filter(|i| proves(*i));
    }
    let mut highest: Option<(usize, Height)> = None;
    for i in (0..record.spans.len()).filter(|i| proves(*i)) {
        let height = Height::of(&record.spans[i], evidence.used.get(i).copied().unwrap_or(0), now);
        // Clearly above: of equals the shortest window stays.
        if highest.as_ref().is_none_or(|(_, best)| height.is_above(best)) {
            highest = Some((i, height));
        }
    }
    highest.map(|(i, _)| i)
}

/// The window as named, else the next longer one, else the longest.
fn named_span(record: &Record, named: u64) -> Option<usize> {
    record.spans.iter().position(|span| span.window_ms >= named).or(record.spans.len().checked_sub(1))
}

/// A use against the largest one that was served cleanly.
struct Height {
    used: u64,
    clean: u64,
}

impl Height {
    fn of(span: &Span, used: u64, now: u64) -> Self {
        Self { used, clean: span.clean.largest(now) }
    }

    /// Compares used ÷ clean without dividing; never seen (0 clean) stands above everything seen. Small counts differ
    /// by chance, by about their square root: what is not above by more than that is a tie.
    fn is_above(&self, other: &Self) -> bool {
        match (self.clean, other.clean) {
            (_, 0) => false,
            (0, _) => true,
            (mine, theirs) => {
                let by_chance = u128::from(other.used) + u128::from(theirs.isqrt());
                u128::from(self.used) * u128::from(theirs) > by_chance.saturating_mul(u128::from(mine))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Params, Witness};

    const NOW: u64 = 10_000_000;

    /// `clean` and `observed` by span (1, 10, 60 s).
    fn check(clean: [u64; 3], observed: [u64; 3], named: Option<u64>, expected: Option<usize>) {
        let mut record = Record::new(&Params::default());
        for (span, clean) in record.spans.iter_mut().zip(clean) {
            span.clean.note(clean, NOW);
        }
        let evidence = Evidence {
            sent_at: NOW,
            observed: &observed,
            used: &observed.map(|n| n.saturating_add(1)),
            named_window_ms: named,
            witness: Witness::Client,
        };
        assert_eq!(blamed(&record, &evidence, NOW), expected, "{clean:?} {observed:?} {named:?}");
    }

    #[test]
    fn of_three_windows_the_one_highest_above_its_own_is_blamed() {
        check([10, 100, 600], [10, 90, 300], None, Some(0));
        check([20, 100, 600], [15, 100, 300], None, Some(1));
        check([20, 100, 100], [15, 60, 100], None, Some(2));
        // At what each is known to bear, one more weighs most in the shortest.
        check([10, 100, 600], [10, 100, 600], None, Some(0));
        check([11, 100, 600], [10, 99, 599], None, Some(0));
        // Ties go to the shortest. Kills `>=` in `is_above`.
        check([11, 101, 601], [10, 100, 600], None, Some(0));
        // So do differences that chance makes: 11 of 14 with √14 on top is as high as 600 of 600.
        check([14, 100, 600], [10, 80, 599], None, Some(0));
        check([14, 100, 600], [9, 80, 620], None, Some(2));
        // Never seen stands highest, and of those the shortest.
        check([10, 0, 0], [30, 30, 30], None, Some(1));
        check([0, 0, 0], [30, 30, 30], None, Some(0));
        check([u64::MAX, u64::MAX, 1], [u64::MAX, u64::MAX, u64::MAX], None, Some(2));
    }

    #[test]
    fn a_window_with_too_little_use_is_not_blamed() {
        check([0, 0, 0], [2, 17, 50], None, Some(1));
        check([0, 0, 0], [4, 4, 4], None, None);
        check([0, 0, 0], [0, 0, 0], None, None);
    }

    #[test]
    fn a_named_window_is_the_one() {
        check([10, 100, 600], [10, 90, 300], Some(60_000), Some(2));
        check([10, 100, 600], [10, 90, 300], Some(1_000), Some(0));
        // Not one of ours: the next longer, or the longest.
        check([10, 100, 600], [10, 90, 300], Some(5_000), Some(1));
        check([10, 100, 600], [10, 90, 300], Some(3_600_000), Some(2));
        check([10, 100, 600], [3, 90, 300], Some(1_000), None);
    }
}
