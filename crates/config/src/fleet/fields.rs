//! The members of one JSON object by field name: any case, the last of duplicates, unknown ones noted.
//! Decides what is known; never what a value means.

use std::collections::BTreeMap;

use crate::finding::{Finding, did_you_mean, quoted};
use crate::json::Node;
use crate::reference::field_names;

/// An object's fields. A `null` field is as good as absent.
pub(super) struct Fields<'n> {
    path: String,
    by_name: BTreeMap<String, &'n Node>,
}

impl<'n> Fields<'n> {
    /// Takes the members of the object at `path`; `block` is the block's name in the reference, blank for
    /// an endpoint itself.
    pub(super) fn read(
        path: &str,
        block: &str,
        members: &'n [(String, Node)],
        findings: &mut Vec<Finding>,
    ) -> Self {
        let known = field_names(block);
        let mut by_name = BTreeMap::new();
        for (key, node) in members {
            let name = key.to_ascii_lowercase();
            if !known.contains(&name.as_str()) {
                let hint = did_you_mean(&name, known.iter().copied());
                findings.push(Finding::warning(path, format!("unknown field {}{hint}", quoted(key))));
            } else if by_name.insert(name, node).is_some() {
                let message = format!("the field {} is there twice; the last one counts", quoted(key));
                findings.push(Finding::warning(path, message));
            }
        }
        Self { path: path.to_owned(), by_name }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'n Node> {
        self.by_name.get(name).copied().filter(|node| **node != Node::Null)
    }

    /// The path of a field, for a finding.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }
}
