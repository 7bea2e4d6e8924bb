//! How many compute units a method costs. Decides nothing about who pays; a table with a built-in
//! beginning, over which a file may put its own rows.

use rustc_hash::FxHashMap;

use crate::finding::Finding;
use crate::json::Node;

/// Compute units by method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodCosts {
    /// Hashed fast: who configures them attacks nobody by their names.
    exact: FxHashMap<String, u32>,
    /// By beginning (`debug_`), the longest first.
    prefixes: Vec<(String, u32)>,
    otherwise: u32,
}

const BUILTIN: &str = include_str!("../data/method-costs.json");

impl MethodCosts {
    /// The built-in table.
    pub fn builtin() -> Self {
        let mut costs = Self { exact: FxHashMap::default(), prefixes: Vec::new(), otherwise: 20 };
        let findings = costs.put(BUILTIN, "");
        debug_assert!(findings.is_empty(), "{findings:?}");
        costs
    }

    /// The built-in table with the rows of a file's `text` over it: method, `prefix_*` or `*` to whole
    /// units, 0 to 1000000. Rows that cannot be used are left out, each with a finding at `path`.
    pub fn parse(text: &str, path: &str) -> (Self, Vec<Finding>) {
        let mut costs = Self::builtin();
        let findings = costs.put(text, path);
        (costs, findings)
    }

    /// The units of one call of `method`.
    pub fn cost(&self, method: &str) -> u32 {
        if let Some(&cost) = self.exact.get(method) {
            return cost;
        }
        let prefix = self.prefixes.iter().find(|(prefix, _)| method.starts_with(prefix.as_str()));
        prefix.map_or(self.otherwise, |(_, cost)| *cost)
    }

    fn put(&mut self, text: &str, path: &str) -> Vec<Finding> {
        let rows = match Node::parse(text) {
            Ok(Node::Object(rows)) => rows,
            Ok(other) => {
                return vec![Finding::error(
                    path,
                    format!("must be an object of costs by method, not {}", other.kind()),
                )];
            }
            Err(error) => return vec![Finding::error(path, format!("not JSON: {error}"))],
        };
        let mut findings = Vec::new();
        for (method, node) in rows {
            let cost = node.whole().and_then(|cost| u32::try_from(cost).ok()).filter(|cost| *cost <= LARGEST);
            match cost {
                Some(cost) => self.set(method, cost),
                None => {
                    let message = format!("must be a whole number from 0 to {LARGEST}; the row is left out");
                    findings.push(Finding::warning(format!("{path}: {method}"), message));
                }
            }
        }
        findings
    }

    fn set(&mut self, method: String, cost: u32) {
        match method.strip_suffix('*') {
            Some("") => self.otherwise = cost,
            Some(prefix) => {
                self.prefixes.retain(|(other, _)| other != prefix);
                self.prefixes.push((prefix.to_owned(), cost));
                self.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
            }
            None => {
                self.exact.insert(method, cost);
            }
        }
    }
}

const LARGEST: u32 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_put_over_the_built_in_table() {
        let (costs, findings) =
            MethodCosts::parse(r#"{"eth_call": 30, "my_*": 5, "my_dear_*": 6.0, "*": 7}"#, "f");
        assert_eq!(findings, []);
        let check = |method: &str, expected: u32| assert_eq!(costs.cost(method), expected, "{method}");
        check("eth_call", 30);
        check("my_method", 5);
        check("my_dear_method", 6);
        check("nobody_knows", 7);
        check("", 7);
        check("eth_getLogs", MethodCosts::builtin().cost("eth_getLogs"));
    }

    #[test]
    fn bad_rows_are_named_and_left_out() {
        let (costs, findings) =
            MethodCosts::parse(r#"{"eth_call": -1, "a": "b", "c": 1.5, "d": 2}"#, "costs.json");
        let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["costs.json: eth_call", "costs.json: a", "costs.json: c"]);
        assert_eq!((costs.cost("eth_call"), costs.cost("d")), (MethodCosts::builtin().cost("eth_call"), 2));
    }

    #[test]
    fn a_broken_file_is_an_error() {
        for text in ["", "[]", "{"] {
            let (costs, findings) = MethodCosts::parse(text, "f");
            assert!(findings.iter().any(Finding::is_error), "{text}");
            assert_eq!(costs, MethodCosts::builtin());
        }
    }

    #[test]
    fn heavier_methods_cost_more() {
        let costs = MethodCosts::builtin();
        let order = [
            "eth_chainId",
            "eth_blockNumber",
            "eth_call",
            "eth_getLogs",
            "trace_block",
            "debug_traceBlockByNumber",
        ];
        assert!(order.is_sorted_by_key(|method| costs.cost(method)));
        assert_eq!(costs.cost("eth_call"), 26);
    }
}
