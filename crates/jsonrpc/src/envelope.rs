//! Whether a request's body is a call, a batch, or neither, and why.

use crate::call::{Call, Span, Unreadable};
use crate::depth::{MAX_DEPTH, too_deep};
use serde_json::value::RawValue;

/// A readable request.
#[derive(Debug)]
pub enum Envelope {
    Single(Call),
    /// The items in the client's order; an item that is no call is answered alone.
    Batch(Vec<Result<Call, Malformed>>),
}

/// Why a request, or an item of a batch, is not a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the body is empty")]
    Empty,
    #[error("not valid JSON: {0}")]
    NotJson(String),
    #[error("a batch needs at least one call")]
    EmptyBatch,
    #[error("the batch has {calls} calls, at most {most} are taken")]
    BatchTooLarge { calls: usize, most: usize },
    #[error("arrays and objects nest deeper than {MAX_DEPTH}")]
    TooDeep,
    #[error("not a JSON-RPC call: {why}")]
    NotACall { id: Option<Span>, why: String },
}

impl Malformed {
    /// The JSON-RPC error code that fits.
    pub fn code(&self) -> i32 {
        match self {
            Malformed::Empty | Malformed::NotJson(_) => crate::PARSE,
            Malformed::EmptyBatch
            | Malformed::BatchTooLarge { .. }
            | Malformed::TooDeep
            | Malformed::NotACall { .. } => crate::INVALID_REQUEST,
        }
    }

    /// The id to echo, as the client wrote it.
    pub fn id<'a>(&self, body: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Malformed::NotACall { id, .. } => id.map(|span| span.of(body)),
            Malformed::Empty
            | Malformed::NotJson(_)
            | Malformed::EmptyBatch
            | Malformed::BatchTooLarge { .. }
            | Malformed::TooDeep => None,
        }
    }
}

impl From<Unreadable> for Malformed {
    fn from(unreadable: Unreadable) -> Malformed {
        match unreadable {
            Unreadable { syntax: true, why, .. } => Malformed::NotJson(why),
            Unreadable { id, why, .. } => Malformed::NotACall { id, why },
        }
    }
}

/// Reads a request. `most` is the largest batch that is taken.
///
/// Parameters are checked to be JSON and kept where they stand.
pub fn parse(body: &[u8], most: usize) -> Result<Envelope, Malformed> {
    let Some(first) = body.iter().find(|byte| !byte.is_ascii_whitespace()) else {
        return Err(Malformed::Empty);
    };
    if too_deep(body) {
        return Err(Malformed::TooDeep);
    }
    // RFC 8259, 8.1: JSON is UTF-8. Checked once, not member by member.
    let text = std::str::from_utf8(body).map_err(|error| Malformed::NotJson(error.to_string()))?;
    match first {
        b'[' => batch(text, most),
        _ => Ok(Envelope::Single(Call::read(text, text)?)),
    }
}

fn batch(body: &str, most: usize) -> Result<Envelope, Malformed> {
    let items: Vec<&RawValue> =
        serde_json::from_str(body).map_err(|error| Malformed::NotJson(error.to_string()))?;
    match items.len() {
        0 => Err(Malformed::EmptyBatch),
        calls if calls > most => Err(Malformed::BatchTooLarge { calls, most }),
        _ => Ok(Envelope::Batch(items.iter().map(|item| Ok(Call::read(body, item.get())?)).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn code(body: &str) -> i32 {
        match parse(body.as_bytes(), 3) {
            Ok(_) => 0,
            Err(malformed) => malformed.code(),
        }
    }

    #[test]
    fn what_is_no_request_is_told_apart() {
        let deep = format!(r#"{{"id":1,"method":"m","params":{}{}}}"#, "[".repeat(200), "]".repeat(200));
        for (body, expected) in [
            ("", -32700),
            ("  \n", -32700),
            ("{", -32700),
            ("nonsense", -32700),
            (r#"{"method":"m"} trailing"#, -32700),
            (r#"{"method":5,"params":[}"#, -32700),
            ("42", -32600),
            ("null", -32600),
            (r#""text""#, -32600),
            ("{}", -32600),
            (r#"{"method":5}"#, -32600),
            (r#"{"method":"m","id":{}}"#, -32600),
            (r#"{"method":"m","id":true}"#, -32600),
            (r#"{"method":"m","method":"n"}"#, -32600),
            ("[]", -32600),
            (r#"[1,2,3,4]"#, -32600),
            ("[1,", -32700),
            (deep.as_str(), -32600),
            (r#"{"method":"m"}"#, 0),
            (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[1],"extra":0}"#, 0),
            (r#"[1,{"method":"m"}]"#, 0),
        ] {
            assert_eq!(code(body), expected, "{body}");
        }
    }

    /// Kills: reading what is no UTF-8 where nobody looks at it, and passing it on.
    #[test]
    fn json_is_utf_8() {
        for body in [&b"{\"method\":\"m\",\"extra\":\"\xff\"}"[..], b"[{\"method\":\"\xff\"}]", b"\xff"] {
            assert!(matches!(parse(body, 3), Err(Malformed::NotJson(_))), "{body:?}");
        }
    }

    #[test]
    fn many_brackets_in_a_string_are_no_depth() {
        let body = format!(r#"{{"id":1,"method":"m","params":["{}"]}}"#, "[{\\\"".repeat(300));
        assert_eq!(code(&body), 0);
    }

    fn single(body: &str) -> Call {
        match parse(body.as_bytes(), 3) {
            Ok(Envelope::Single(call)) => call,
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn ids_are_kept_as_they_were_written() {
        for id in ["1", "-0", "1.50", "1e3", "123456789012345678901234567890", r#""a\"b""#, "null"] {
            let body = format!(r#"{{"method":"m", "id" : {id} }}"#);
            assert_eq!(single(&body).id(body.as_bytes()), Some(id.as_bytes()));
        }
        let body = r#"{"method":"m"}"#;
        assert!(single(body).is_notification(), "null is an id, absence is not");
    }

    #[test]
    fn an_unreadable_call_still_tells_its_id() {
        let body = br#"{"id":"x","method":7}"#;
        let malformed = parse(body, 3).expect_err("no call");
        assert_eq!(malformed.id(body), Some(&br#""x""#[..]));
    }

    #[test]
    fn a_call_is_written_anew_with_another_id() {
        for (body, expected) in [
            (
                r#"{"id":9,"params":[1, 2],"method":"m"}"#,
                r#"{"jsonrpc":"2.0","id":0,"method":"m","params":[1, 2]}"#,
            ),
            (r#"{"id":9,"method":"m\u0041"}"#, r#"{"jsonrpc":"2.0","id":0,"method":"mA"}"#),
        ] {
            let mut out = Vec::new();
            single(body).write(body.as_bytes(), Some("0"), &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
        let (body, mut out) = (r#"{"method":"m"}"#, Vec::new());
        single(body).write(body.as_bytes(), None, &mut out);
        assert_eq!(out, br#"{"jsonrpc":"2.0","method":"m"}"#);
    }

    proptest! {
        #[test]
        fn no_input_panics(body in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&body, 3);
        }

        #[test]
        fn what_was_read_is_what_was_written(id in any::<i64>(), method in "[a-z_]{1,12}", n in any::<u32>()) {
            let body = format!(r#" {{"id":{id},"method":"{method}","params":[{n}]}} "#);
            let call = single(&body);
            let (id, params) = (id.to_string(), format!("[{n}]"));
            prop_assert_eq!(call.id(body.as_bytes()), Some(id.as_bytes()));
            prop_assert_eq!(call.method(body.as_bytes()), method);
            prop_assert_eq!(call.params(body.as_bytes()), Some(params.as_bytes()));
        }
    }
}
