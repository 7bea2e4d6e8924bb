//! Is it the providers, or is it us? Whoever fails to reach most providers at once has lost its own network, and
//! what it measured then says nothing about theirs: a checker writes nothing, a proxy publishes no ejection. Pure.

use std::collections::HashMap;
use std::hash::Hash;

/// With fewer providers than this nobody can tell.
const FEWEST_PROVIDERS: usize = 3;

/// The latest attempt at each target, by provider. `K` names a target, `P` its provider (the company, or the host
/// where that is not known).
#[derive(Debug, Clone)]
pub struct OwnNetwork<K, P> {
    latest: HashMap<K, (P, bool)>,
    providers: HashMap<P, Tally>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    targets: usize,
    answered: usize,
}

impl<K: Eq + Hash, P: Eq + Hash + Clone> OwnNetwork<K, P> {
    /// Nothing tried.
    #[must_use]
    pub fn new() -> Self {
        Self { latest: HashMap::new(), providers: HashMap::new() }
    }

    /// A target was tried, and something came back or not (a refusal is an answer, too).
    pub fn tried(&mut self, target: K, provider: P, answered: bool) {
        self.forget(&target);
        let tally = self.providers.entry(provider.clone()).or_default();
        tally.targets += 1;
        tally.answered += usize::from(answered);
        self.latest.insert(target, (provider, answered));
    }

    /// The target is gone.
    pub fn forget(&mut self, target: &K) {
        let Some((provider, answered)) = self.latest.remove(target) else { return };
        if let Some(tally) = self.providers.get_mut(&provider) {
            tally.targets -= 1;
            tally.answered -= usize::from(answered);
            if tally.targets == 0 {
                self.providers.remove(&provider);
            }
        }
    }

    /// Whether our own network is the likely fault: of three providers or more, over half answer at no target.
    #[must_use]
    pub fn is_down(&self) -> bool {
        let unreached = self.providers.values().filter(|tally| tally.answered == 0).count();
        self.providers.len() >= FEWEST_PROVIDERS && unreached * 2 > self.providers.len()
    }
}

impl<K: Eq + Hash, P: Eq + Hash + Clone> Default for OwnNetwork<K, P> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each letter is a target of the provider of that name, a capital one answered.
    fn network(latest: &str) -> OwnNetwork<usize, char> {
        let mut network = OwnNetwork::new();
        for (target, letter) in latest.chars().enumerate() {
            network.tried(target, letter.to_ascii_lowercase(), letter.is_ascii_uppercase());
        }
        network
    }

    fn check(latest: &str, expected: bool) {
        assert_eq!(network(latest).is_down(), expected, "{latest}");
    }

    #[test]
    fn most_providers_failing_at_once_is_our_own_fault() {
        check("abc", true);
        check("abcD", true);
        check("abC", true);
        check("abCD", false);
        check("aBC", false);
    }

    #[test]
    fn a_provider_with_one_target_that_answers_is_reached() {
        check("aaaaaABC", false);
        check("aAbBcC", false);
    }

    #[test]
    fn with_one_or_two_providers_nobody_can_tell() {
        check("", false);
        check("aaaa", false);
        check("ab", false);
    }

    #[test]
    fn only_the_latest_attempt_at_a_target_counts() {
        let mut network = network("abc");
        for (target, provider) in [(0, 'a'), (1, 'b')] {
            network.tried(target, provider, true);
        }
        assert!(!network.is_down());
        network.tried(0, 'a', false);
        assert!(network.is_down());
        network.forget(&0);
        assert!(!network.is_down(), "two providers are left");
    }
}
