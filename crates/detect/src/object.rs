//! Walks the members of one JSON object at its top level, in chunks cut anywhere: notes whether there is a
//! `result`, an `error`, an `id`, keeps what may explain a failure, skips everything else. Decides nothing.

use std::ops::Range;

use crate::capture::Capture;
use crate::scan::{Value, is_space};

/// Members outside JSON-RPC that explain a failure, as providers' gateways spell them.
const TELLING: [&str; 26] = [
    "message",
    "msg",
    "errors",
    "error_message",
    "errormessage",
    "error_description",
    "detail",
    "details",
    "reason",
    "title",
    "description",
    "code",
    "statuscode",
    "status_code",
    "status",
    "errorcode",
    "error_code",
    "ok",
    "success",
    "retry_after",
    "retryafter",
    "retryafterseconds",
    "retry_after_seconds",
    "data",
    "type",
    "exception",
];

const KEY: usize = 48;

/// Where in the object we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Open,
    Key,
    InKey,
    Colon,
    Value,
    Inside,
    After,
    Closed,
    /// Broken: no JSON object.
    Broken,
    /// Broken by another object that begins where this one should go on.
    Another,
}

/// Whether a member is there, and says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Seen {
    #[default]
    Absent,
    Null,
    Some,
}

/// Which of the two members that decide came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum First {
    Result,
    Error,
}

/// Members that mean something in JSON-RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Result,
    Error,
    Id,
    Method,
    Plain,
    Telling,
    Other,
}

/// One object, as far as it was read.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) place: Place,
    pub(crate) result: Seen,
    pub(crate) error: Seen,
    /// The first of `result` and `error` that is not null.
    pub(crate) first: Option<First>,
    /// Whether the value of `error` has been read to its end.
    pub(crate) error_complete: bool,
    pub(crate) method: bool,
    /// Whether there are members that JSON-RPC does not know.
    pub(crate) telling: bool,
    /// Where the raw `id` is.
    pub(crate) id: Option<Range<usize>>,
    pub(crate) capture: Capture,
    member: Member,
    value: Option<Value>,
    value_start: usize,
    capturing: bool,
    key: [u8; KEY],
    key_len: usize,
    key_escaped: bool,
    escape_open: bool,
}

impl Object {
    pub(crate) const fn new() -> Object {
        Object {
            place: Place::Open,
            result: Seen::Absent,
            error: Seen::Absent,
            first: None,
            error_complete: false,
            method: false,
            telling: false,
            id: None,
            capture: Capture::new(),
            member: Member::Other,
            value: None,
            value_start: 0,
            capturing: false,
            key: [0; KEY],
            key_len: 0,
            key_escaped: false,
            escape_open: false,
        }
    }

    /// Ready for the next object; the memory of the last one's capture is kept.
    pub(crate) fn reset(&mut self) {
        self.place = Place::Open;
        (self.result, self.error) = (Seen::Absent, Seen::Absent);
        self.first = None;
        (self.error_complete, self.method, self.telling) = (false, false, false);
        self.id = None;
        self.capture.clear();
    }

    /// Reads on from `from`. `base` is where the chunk starts in the body. Returns the index past the last
    /// byte taken: the chunk's end, the object's end, or the byte that breaks it (see [`Object::place`]).
    pub(crate) fn advance(&mut self, chunk: &[u8], from: usize, base: usize) -> usize {
        let mut at = from;
        while at < chunk.len() {
            at = match self.place {
                Place::InKey => self.in_key(chunk, at),
                Place::Inside => self.inside(chunk, at, base),
                Place::Closed | Place::Broken | Place::Another => return at,
                Place::Open | Place::Key | Place::Colon | Place::Value | Place::After => {
                    if is_space(chunk[at]) { at + 1 } else { self.between(chunk[at], at, base) }
                }
            };
        }
        at
    }

    /// The byte between two tokens; not taken if a value starts with it or if it breaks the object.
    fn between(&mut self, byte: u8, at: usize, base: usize) -> usize {
        self.place = match (self.place, byte) {
            (Place::Open, b'{') | (Place::After, b',') => Place::Key,
            (Place::Key, b'"') => {
                (self.key_len, self.key_escaped, self.escape_open) = (0, false, false);
                Place::InKey
            }
            (Place::Key | Place::After, b'}') => Place::Closed,
            (Place::Colon, b':') => Place::Value,
            (Place::Value, first) => return self.begin_value(first, at, base),
            (place, byte) => {
                let another = place == Place::After && byte == b'{';
                self.place = if another { Place::Another } else { Place::Broken };
                return at;
            }
        };
        at + 1
    }

    fn in_key(&mut self, chunk: &[u8], from: usize) -> usize {
        for (at, byte) in chunk.iter().copied().enumerate().skip(from) {
            if byte == b'"' && !self.escape_open {
                self.member = self.name_member();
                self.place = Place::Colon;
                return at + 1;
            }
            self.escape_open = byte == b'\\' && !self.escape_open;
            self.key_escaped |= byte == b'\\';
            if self.key_len < KEY {
                self.key[self.key_len] = byte;
            }
            self.key_len += 1;
        }
        chunk.len()
    }

    fn name_member(&self) -> Member {
        if self.key_len > KEY {
            return Member::Other;
        }
        let raw = &self.key[..self.key_len];
        if !self.key_escaped {
            return member_named(raw);
        }
        unescape(raw).map_or(Member::Other, |key| member_named(key.as_bytes()))
    }

    fn begin_value(&mut self, first: u8, at: usize, base: usize) -> usize {
        self.value = Value::starting_with(first);
        if self.value.is_none() {
            self.place = Place::Broken;
            return at;
        }
        self.place = Place::Inside;
        self.value_start = base + at;
        self.note_value(first);
        at
    }

    fn note_value(&mut self, first: u8) {
        let seen = if first == b'n' { Seen::Null } else { Seen::Some };
        self.capturing = false;
        match self.member {
            Member::Result => {
                self.result = seen;
                self.capture_result(first);
            }
            // `"error": false` says that there is none.
            Member::Error if first == b'f' => self.error = Seen::Null,
            Member::Error => {
                self.error = seen;
                if seen == Seen::Some {
                    self.begin_capture("error");
                }
            }
            Member::Method => self.method = true,
            Member::Telling => self.capture_telling(),
            Member::Id | Member::Plain | Member::Other => {}
        }
        if self.first.is_none() {
            if self.error == Seen::Some {
                self.first = Some(First::Error);
            } else if self.result == Seen::Some {
                self.first = Some(First::Result);
            }
        }
    }

    /// A text in `result` is kept only where the object has said that it is a failure in disguise.
    fn capture_result(&mut self, first: u8) {
        if self.telling && first == b'"' {
            self.begin_capture("result");
        }
    }

    fn capture_telling(&mut self) {
        self.telling = true;
        let raw = &self.key[..self.key_len];
        if let Some(name) = TELLING.iter().find(|name| raw.eq_ignore_ascii_case(name.as_bytes())) {
            self.begin_capture(name);
        }
    }

    fn begin_capture(&mut self, name: &str) {
        self.capture.member(name);
        self.capturing = true;
    }

    fn inside(&mut self, chunk: &[u8], from: usize, base: usize) -> usize {
        let Some(value) = &mut self.value else { return from };
        let end = value.advance(chunk, from);
        let to = end.unwrap_or(chunk.len());
        if self.capturing {
            self.capture.feed(&chunk[from..to]);
        }
        if end.is_some() {
            self.end_value(base + to);
        }
        to
    }

    fn end_value(&mut self, end: usize) {
        match self.member {
            Member::Id => self.id = Some(self.value_start..end),
            Member::Error => self.error_complete = true,
            Member::Result | Member::Method | Member::Plain | Member::Telling | Member::Other => {}
        }
        self.place = Place::After;
    }
}

fn member_named(key: &[u8]) -> Member {
    match key {
        b"result" => Member::Result,
        b"error" | b"Error" => Member::Error,
        b"id" => Member::Id,
        b"method" => Member::Method,
        b"jsonrpc" | b"params" => Member::Plain,
        _ if TELLING.iter().any(|name| key.eq_ignore_ascii_case(name.as_bytes())) => Member::Telling,
        _ => Member::Other,
    }
}

fn unescape(raw: &[u8]) -> Option<String> {
    let mut quoted = Vec::with_capacity(raw.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(raw);
    quoted.push(b'"');
    serde_json::from_slice(&quoted).ok()
}
