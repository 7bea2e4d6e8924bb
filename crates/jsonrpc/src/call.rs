//! One call of a request: where its id, method and parameters stand in the body.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A range of bytes in the request's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: usize,
    end: usize,
}

impl Span {
    /// The bytes of this span in the body it was made from.
    pub fn of(self, body: &[u8]) -> &[u8] {
        body.get(self.start..self.end).unwrap_or_default()
    }

    pub fn len(self) -> usize {
        self.end - self.start
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Where `part`, a slice of `body`, stands in it.
    pub(crate) fn locate(body: &str, part: &str) -> Span {
        let start = part.as_ptr().addr() - body.as_ptr().addr();
        Span { start, end: start + part.len() }
    }
}

/// One JSON-RPC call. It keeps positions, not contents: every accessor takes the body it was parsed from.
#[derive(Clone, Debug)]
pub struct Call {
    id: Option<Span>,
    method: Method,
    params: Option<Span>,
}

/// A method name is read in place; only a name written with escapes needs a copy.
#[derive(Clone, Debug)]
enum Method {
    InPlace(Span),
    Unescaped(Box<str>),
}

impl Call {
    /// The id exactly as the client wrote it; `None` for a notification.
    pub fn id<'a>(&self, body: &'a [u8]) -> Option<&'a [u8]> {
        self.id.map(|span| span.of(body))
    }

    pub fn is_notification(&self) -> bool {
        self.id.is_none()
    }

    pub fn method<'a>(&'a self, body: &'a [u8]) -> &'a str {
        match &self.method {
            Method::InPlace(span) => std::str::from_utf8(span.of(body)).unwrap_or_default(),
            Method::Unescaped(name) => name,
        }
    }

    /// The parameters exactly as the client wrote them.
    pub fn params<'a>(&self, body: &'a [u8]) -> Option<&'a [u8]> {
        self.params.map(|span| span.of(body))
    }

    /// Writes this call anew with another id (any JSON text), or as a notification without one.
    pub fn write(&self, body: &[u8], id: Option<&str>, out: &mut Vec<u8>) {
        self.write_with(body, id, self.params(body), out);
    }

    /// As [`Call::write`], with other parameters (a JSON array or object).
    pub fn write_with(&self, body: &[u8], id: Option<&str>, params: Option<&[u8]>, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
        if let Some(id) = id {
            out.extend_from_slice(br#""id":"#);
            out.extend_from_slice(id.as_bytes());
            out.push(b',');
        }
        out.extend_from_slice(br#""method":"#);
        self.write_method(body, out);
        if let Some(params) = params {
            out.extend_from_slice(br#","params":"#);
            out.extend_from_slice(params);
        }
        out.push(b'}');
    }

    fn write_method(&self, body: &[u8], out: &mut Vec<u8>) {
        match &self.method {
            Method::InPlace(span) => {
                out.push(b'"');
                out.extend_from_slice(span.of(body));
                out.push(b'"');
            }
            Method::Unescaped(name) => {
                out.extend_from_slice(serde_json::Value::from(&**name).to_string().as_bytes());
            }
        }
    }

    /// Reads one call out of `item`, a slice of `body`.
    pub(crate) fn read(body: &str, item: &str) -> Result<Call, Unreadable> {
        let raw: RawCall<'_> = serde_json::from_str(item).map_err(|e| Unreadable::explain(body, item, &e))?;
        let id = match raw.id {
            Member::Absent => None,
            Member::Present(id) if is_id(id.get()) => Some(Span::locate(body, id.get())),
            Member::Present(_) => return Err(Unreadable::new(None, "id must be a string, a number or null")),
        };
        let Some(method) = raw.method else {
            return Err(Unreadable::new(id, "method is missing"));
        };
        let method = match method {
            Name(Cow::Borrowed(name)) => Method::InPlace(Span::locate(body, name)),
            Name(Cow::Owned(name)) => Method::Unescaped(name.into()),
        };
        let params = match raw.params {
            Member::Absent => None,
            Member::Present(params) => Some(Span::locate(body, params.get())),
        };
        Ok(Call { id, method, params })
    }
}

/// A JSON value that is not a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) id: Option<Span>,
    pub(crate) why: String,
    pub(crate) syntax: bool,
}

impl Unreadable {
    fn new(id: Option<Span>, why: &str) -> Unreadable {
        Unreadable { id, why: why.into(), syntax: false }
    }

    fn explain(body: &str, item: &str, error: &serde_json::Error) -> Unreadable {
        let whole = serde_json::from_str::<serde::de::IgnoredAny>(item);
        if let Err(syntax) = whole {
            return Unreadable { id: None, why: syntax.to_string(), syntax: true };
        }
        let id = match serde_json::from_str::<IdAlone<'_>>(item) {
            Ok(IdAlone { id: Member::Present(id) }) if is_id(id.get()) => Some(Span::locate(body, id.get())),
            _ => None,
        };
        Unreadable { id, why: error.to_string(), syntax: false }
    }
}

fn is_id(raw: &str) -> bool {
    !matches!(raw.as_bytes().first(), None | Some(b'{' | b'[' | b't' | b'f'))
}

#[derive(Deserialize)]
#[serde(expecting = "an object with a method")]
struct RawCall<'a> {
    #[serde(borrow, default)]
    id: Member<'a>,
    #[serde(borrow, default)]
    method: Option<Name<'a>>,
    #[serde(borrow, default)]
    params: Member<'a>,
}

/// Read in place where it can be: inside of an `Option`, serde would copy a `Cow` always.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct IdAlone<'a> {
    #[serde(borrow, default)]
    id: Member<'a>,
}

/// A member that may be there with the value null: `Option` would read that as absent.
#[derive(Default)]
enum Member<'a> {
    #[default]
    Absent,
    Present(&'a RawValue),
}

impl<'de: 'a, 'a> Deserialize<'de> for Member<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(input).map(Member::Present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: copying the method of every call.
    #[test]
    fn a_method_is_read_in_place() {
        let body = r#"{"method":"eth_call","id":1}"#;
        let call = Call::read(body, body).expect("a call");
        assert!(matches!(call.method, Method::InPlace(_)), "{call:?}");
    }
}
