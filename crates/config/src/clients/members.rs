//! Members of the objects of a clients file, by name, and values of the kinds that occur there. Decides what is known
//! and of which type; never what it means.

use super::Reader;
use crate::finding::{did_you_mean, quoted};
use crate::json::Node;

/// The known members of one object. One that is null is as good as absent.
pub(super) struct Members<'n> {
    path: String,
    known: Vec<(&'static str, &'n Node)>,
}

impl<'n> Members<'n> {
    pub(super) fn get(&self, name: &str) -> Option<&'n Node> {
        let found = self.known.iter().find(|(known, _)| *known == name);
        found.map(|(_, node)| *node).filter(|node| **node != Node::Null)
    }

    pub(super) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    /// The same members at another path.
    pub(super) fn called(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }
}

impl Reader {
    /// The members of the object at `path`; what is none of `names`, or is there twice, is an error.
    pub(super) fn members<'n>(&mut self, path: &str, node: &'n Node, names: &[&'static str]) -> Members<'n> {
        let mut members = Members { path: path.to_owned(), known: Vec::new() };
        for (key, node) in self.object(path, node).unwrap_or_default() {
            let Some(name) = names.iter().find(|name| name.eq_ignore_ascii_case(key)) else {
                let hint = did_you_mean(key, names.iter().copied());
                let known = names.join(", ");
                // Where a key was put in the place of a field, it must not be quoted.
                let key = if key.len() > 24 { "(long)".to_owned() } else { quoted(key) };
                self.error(path, format!("unknown field {key}{hint}; known are {known}"));
                continue;
            };
            if members.known.iter().any(|(known, _)| known == name) {
                self.error(path, format!("the field {} is there twice", quoted(key)));
            }
            members.known.push((name, node));
        }
        members
    }

    pub(super) fn object<'n>(&mut self, path: &str, node: &'n Node) -> Option<&'n [(String, Node)]> {
        match node.members("an object") {
            Ok(members) => Some(members),
            Err(why) => self.fail(path, &why),
        }
    }

    pub(super) fn flag(&mut self, fields: &Members<'_>, name: &str, otherwise: bool) -> bool {
        let Some(node) = fields.get(name) else { return otherwise };
        let Node::Bool(flag) = node else {
            self.error(&fields.path(name), format!("must be true or false, not {}", node.kind()));
            return otherwise;
        };
        *flag
    }

    pub(super) fn text<'n>(&mut self, fields: &Members<'n>, name: &str) -> Option<&'n str> {
        self.string(&fields.path(name), fields.get(name)?)
    }

    pub(super) fn texts<'n>(&mut self, fields: &Members<'n>, name: &str) -> Option<Vec<&'n str>> {
        let (node, path) = (fields.get(name)?, fields.path(name));
        let Node::List(items) = node else {
            return self.fail(&path, &format!("must be a list of strings, not {}", node.kind()));
        };
        let each = items.iter().enumerate();
        Some(each.filter_map(|(at, item)| self.string(&format!("{path}[{at}]"), item)).collect())
    }

    fn string<'n>(&mut self, path: &str, node: &'n Node) -> Option<&'n str> {
        let Node::Text(text) = node else {
            return self.fail(path, &format!("must be a string, not {}", node.kind()));
        };
        Some(text)
    }
}
