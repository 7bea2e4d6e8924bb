//! JSON as it was written: members in the file's order, duplicates kept. Decides what is no JSON and
//! where; never what a member means.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    /// As written where it is a whole number of 64 bits, else the nearest double.
    Integer(i128),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl Node {
    /// Parses `text`; the error names line and column.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// What kind of value it is, for a finding.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Object(_) => "an object",
        }
    }

    /// The members of the object it is; none for null. The error says what it is instead of `wanted`.
    pub(crate) fn members(&self, wanted: &str) -> Result<&[(String, Self)], String> {
        match self {
            Self::Object(members) => Ok(members),
            Self::Null => Ok(&[]),
            Self::Bool(_) | Self::Integer(_) | Self::Float(_) | Self::Text(_) | Self::List(_) => {
                Err(format!("must be {wanted}, not {}", self.kind()))
            }
        }
    }

    /// The whole number it is, also when it is written `5.0`.
    pub(crate) fn whole(&self) -> Option<i128> {
        match self {
            Self::Integer(number) => Some(*number),
            // Up to 2⁵³ a double is the number that was written.
            Self::Float(number) if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 => {
                Some(*number as i128)
            }
            Self::Null | Self::Bool(_) | Self::Float(_) | Self::Text(_) | Self::List(_) | Self::Object(_) => {
                None
            }
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Null | Self::Bool(_) | Self::Text(_) | Self::List(_) | Self::Object(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::Integer(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node, A::Error> {
        let mut object = Vec::new();
        while let Some(member) = members.next_entry()? {
            object.push(member);
        }
        Ok(Node::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_duplicates_are_kept() {
        let node = Node::parse("\u{feff}{\"b\":1,\"a\":[2.0,-3,null],\"b\":\"x\"}").unwrap();
        let expected = Node::Object(vec![
            ("b".into(), Node::Integer(1)),
            ("a".into(), Node::List(vec![Node::Float(2.0), Node::Integer(-3), Node::Null])),
            ("b".into(), Node::Text("x".into())),
        ]);
        assert_eq!(node, expected);
    }

    #[test]
    fn what_is_no_json_is_placed() {
        let check = |text: &str, expected: &str| {
            let error = Node::parse(text).unwrap_err();
            assert!(error.ends_with(expected), "{text:?}: {error}");
        };
        check("{\n  \"a\": 1,\n}", "line 3 column 1");
        check("", "line 1 column 0");
        check("{\"a\": 1 // no comments\n}", "line 1 column 9");
        check("{\"a\": 1e999}", "line 1 column 11");
        check(&"[".repeat(100_000), "line 1 column 128");
    }

    #[test]
    fn whole_numbers_may_be_written_as_floats() {
        let check = |text: &str, expected: Option<i128>| {
            assert_eq!(Node::parse(text).unwrap().whole(), expected, "{text}");
        };
        check("5", Some(5));
        check("5.0", Some(5));
        check("6e1", Some(60));
        check("-2", Some(-2));
        check("2.5", None);
        check("1e300", None);
        check("18446744073709551615", Some(u64::MAX.into()));
        check("\"5\"", None);
        check("true", None);
    }
}
