//! What `$NAME`, `${NAME}`, `${NAME:-default}` and `${file:path}` in a value become, by the rules of Go's
//! `os.Expand`. Decides what is missing; never what a missing variable means for the endpoint.

use std::io;
use std::path::Path;

use crate::env::Env;

/// Where variables and files come from.
#[derive(Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) env: &'a Env,
    pub(crate) files: &'a dyn Fn(&Path) -> io::Result<String>,
}

/// A value with everything put in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Expanded {
    pub(crate) text: String,
    /// What could not be put in: the value must not be used.
    pub(crate) missing: Vec<String>,
    /// Parts that vanish: `$$`, `$5`, `${}`.
    pub(crate) vanished: Vec<String>,
}

/// Expands `value`. What was put in is not expanded again.
pub(crate) fn expand(value: &str, sources: Sources<'_>) -> Expanded {
    let mut out = Expanded { text: String::new(), missing: Vec::new(), vanished: Vec::new() };
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        out.text.push_str(&rest[..at]);
        let (reference, length) = reference(&rest[at..]);
        let whole = &rest[at..at + length];
        match reference {
            Reference::Literal => out.text.push_str(whole),
            Reference::Vanishes => out.vanished.push(whole.to_owned()),
            Reference::Variable(name, default) => out.put_variable(name, default, whole == value, sources),
            Reference::File(path) => out.put_file(path, sources),
        }
        rest = &rest[at + length..];
    }
    out.text.push_str(rest);
    out
}

impl Expanded {
    /// A variable that is blank counts as unset, except where it is all of the value: then the value is
    /// blank, which is how an optional URL is left out.
    fn put_variable(&mut self, name: &str, default: Option<&str>, whole: bool, sources: Sources<'_>) {
        match (sources.env.get(name), default) {
            (Some(value), _) if !value.trim().is_empty() => self.text.push_str(value.trim()),
            (_, Some(default)) => self.text.push_str(default),
            (Some(_), None) if whole => {}
            (Some(_), None) => self.missing.push(format!("the variable {name} is blank")),
            (None, None) => self.missing.push(format!("the variable {name} is not set")),
        }
    }

    fn put_file(&mut self, path: &str, sources: Sources<'_>) {
        match (sources.files)(Path::new(path)) {
            Ok(text) if text.trim().is_empty() => self.missing.push(format!("the file {path} is blank")),
            Ok(text) => self.text.push_str(text.trim()),
            Err(error) => self.missing.push(format!("the file {path} cannot be read: {}", error.kind())),
        }
    }
}

enum Reference<'v> {
    /// A `$` that stands for itself.
    Literal,
    /// What Go's expansion drops without a trace.
    Vanishes,
    Variable(&'v str, Option<&'v str>),
    File(&'v str),
}

/// What the `$` at the start of `text` refers to, and how many bytes of `text` that is.
fn reference(text: &str) -> (Reference<'_>, usize) {
    let body = &text[1..];
    if let Some(braced) = body.strip_prefix('{') {
        return match braced.find('}') {
            None => (Reference::Vanishes, 2),
            Some(0) => (Reference::Vanishes, 3),
            Some(end) => (in_braces(&braced[..end]), end + 3),
        };
    }
    match body.bytes().next() {
        Some(b'*' | b'#' | b'$' | b'@' | b'!' | b'?' | b'-' | b'0'..=b'9') => (Reference::Vanishes, 2),
        Some(byte) if is_name_byte(byte) => {
            let length = body.bytes().take_while(|byte| is_name_byte(*byte)).count();
            (Reference::Variable(&body[..length], None), length + 1)
        }
        _ => (Reference::Literal, 1),
    }
}

fn in_braces(inner: &str) -> Reference<'_> {
    if let Some(path) = inner.strip_prefix("file:") {
        return Reference::File(path.trim());
    }
    match inner.split_once(":-") {
        Some((name, default)) => Reference::Variable(name, Some(default)),
        None => Reference::Variable(inner, None),
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(value: &str) -> Expanded {
        let env = Env::new([("A", "a"), ("AB", "ab"), ("BLANK", " "), ("DOLLAR", "$A"), ("L", "line\n")], "");
        let files = |path: &Path| match path.to_str() {
            Some("/run/key") => Ok("key\n".to_owned()),
            Some("/run/blank") => Ok("\n".to_owned()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        expand(value, Sources { env: &env, files: &files })
    }

    #[test]
    fn what_is_put_in() {
        let check = |value: &str, expected: &str| {
            let got = expanded(value);
            assert_eq!((got.text.as_str(), got.missing.len()), (expected, 0), "{value:?}");
        };
        check("plain", "plain");
        check("x/${A}/$A/y", "x/a/a/y");
        check("$AB-$A.b", "ab-a.b");
        check("${A}B", "aB");
        check("${NONE:-d}", "d");
        check("${NONE:-}", "");
        check("${A:-d}", "a");
        check("${BLANK:-d}", "d");
        check("${BLANK}", "");
        check("$BLANK", "");
        check("${DOLLAR}", "$A");
        check("x${file:/run/key}y", "xkeyy");
        check("${L}", "line");
        check("$é $", "$é $");
    }

    // The predecessor's, to the letter: the rest of each value stands.
    #[test]
    fn what_vanishes() {
        let check = |value: &str, expected: &str, vanished: &[&str]| {
            let got = expanded(value);
            assert_eq!(
                (got.text.as_str(), got.vanished.as_slice()),
                (expected, &vanished.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>()[..]),
                "{value:?}"
            );
        };
        check("a$$b", "ab", &["$$"]);
        check("$5x", "x", &["$5"]);
        check("${", "", &["${"]);
        check("${}", "", &["${}"]);
        check("${A", "A", &["${"]);
        check("a$/b$", "a$/b$", &[]);
        check("$", "$", &[]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let check = |value: &str, expected: &[&str]| {
            assert_eq!(expanded(value).missing, expected, "{value:?}");
        };
        check("x/$NONE", &["the variable NONE is not set"]);
        check("${NONE}${ALSO}", &["the variable NONE is not set", "the variable ALSO is not set"]);
        check("x/${BLANK}", &["the variable BLANK is blank"]);
        check("${file:/none}", &["the file /none cannot be read: entity not found"]);
        check("${file:/run/blank}", &["the file /run/blank is blank"]);
        check("${a b}", &["the variable a b is not set"]);
    }
}
