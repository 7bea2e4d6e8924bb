//! Is it the providers, or is it us? Whoever fails to reach most providers at once has lost its own network, and
//! what it measured then says nothing about theirs. Pure.

use std::collections::HashMap;
use std::hash::Hash;

/// With fewer providers than this nobody can tell.
const FEWEST_PROVIDERS: usize = 3;

/// Whether our own network is the likely fault, given the latest attempt at each endpoint: its provider, and
/// whether anything came back (a refusal is an answer, too). A provider counts as unreached when none of its
/// endpoints answered; more than half unreached, of three or more, is our own fault.
pub fn own_network_is_down<P: Eq + Hash>(latest: impl IntoIterator<Item = (P, bool)>) -> bool {
    let mut reached: HashMap<P, bool> = HashMap::new();
    for (provider, answered) in latest {
        *reached.entry(provider).or_default() |= answered;
    }
    let unreached = reached.values().filter(|answered| !**answered).count();
    reached.len() >= FEWEST_PROVIDERS && unreached * 2 > reached.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each letter is an endpoint of the provider of that name, a capital one answered.
    fn check(latest: &str, expected: bool) {
        let latest_attempts = latest.chars().map(|c| (c.to_ascii_lowercase(), c.is_ascii_uppercase()));
        assert_eq!(own_network_is_down(latest_attempts), expected, "{latest}");
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
    fn a_provider_with_one_endpoint_that_answers_is_reached() {
        check("aaaaaABC", false);
        check("aAbBcC", false);
    }

    #[test]
    fn with_one_or_two_providers_nobody_can_tell() {
        check("", false);
        check("aaaa", false);
        check("ab", false);
    }
}
