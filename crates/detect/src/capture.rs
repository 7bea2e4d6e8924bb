//! Keeps the members of an answer that say what went wrong, as one small JSON object: long strings are cut,
//! and beyond the bound nothing more is kept. Never used for a success.

use memchr::memchr2;

/// Bytes kept of one string.
const STRING: usize = 2048;
/// Bytes kept of one answer.
const TOTAL: usize = 8192;

/// What was kept of one answer.
#[derive(Debug)]
pub(crate) struct Capture {
    bytes: Vec<u8>,
    in_string: bool,
    escaped: bool,
    kept: usize,
}

impl Capture {
    pub(crate) const fn new() -> Capture {
        Capture { bytes: Vec::new(), in_string: false, escaped: false, kept: 0 }
    }

    /// Forgets everything, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Begins a member; its value is then [`Capture::feed`].
    pub(crate) fn member(&mut self, name: &str) {
        self.bytes.push(if self.bytes.is_empty() { b'{' } else { b',' });
        self.bytes.push(b'"');
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(b"\":");
        (self.in_string, self.escaped) = (false, false);
    }

    /// Takes the next piece of the current member's value.
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        let mut at = 0;
        while at < piece.len() && !self.full() {
            at = if self.in_string { self.feed_string(piece, at) } else { self.feed_plain(piece, at) };
        }
    }

    /// The object as far as it was kept.
    pub(crate) fn object(&self) -> Vec<u8> {
        let mut object = self.bytes.clone();
        object.push(b'}');
        object
    }

    fn full(&self) -> bool {
        self.bytes.len() >= TOTAL
    }

    fn feed_plain(&mut self, piece: &[u8], at: usize) -> usize {
        self.bytes.push(piece[at]);
        (self.in_string, self.kept) = (piece[at] == b'"', 0);
        at + 1
    }

    fn feed_string(&mut self, piece: &[u8], at: usize) -> usize {
        if self.escaped {
            self.escaped = false;
            self.keep(&piece[at..=at]);
            return at + 1;
        }
        let end = memchr2(b'"', b'\\', &piece[at..]).map_or(piece.len(), |len| at + len);
        self.keep(&piece[at..end]);
        match piece.get(end) {
            None => return end,
            Some(b'"') => self.close_string(),
            Some(_) => {
                self.keep(b"\\");
                self.escaped = true;
            }
        }
        end + 1
    }

    fn keep(&mut self, part: &[u8]) {
        let room = STRING.saturating_sub(self.kept);
        self.bytes.extend_from_slice(&part[..part.len().min(room)]);
        self.kept += part.len();
    }

    fn close_string(&mut self) {
        if self.kept > STRING {
            self.drop_cut_escape();
        }
        self.bytes.push(b'"');
        self.in_string = false;
    }

    /// A cut may have fallen into `\u00e9`: gives up the last few bytes rather than the whole object.
    fn drop_cut_escape(&mut self) {
        let tail = self.bytes.len() - 6;
        if let Some(at) = self.bytes[tail..].iter().rposition(|byte| *byte == b'\\') {
            self.bytes.truncate(tail + at);
        }
        while self.bytes.last() == Some(&b'\\') {
            self.bytes.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(value: &str, size: usize) -> Vec<u8> {
        let mut capture = Capture::new();
        capture.member("error");
        for piece in value.as_bytes().chunks(size) {
            capture.feed(piece);
        }
        capture.object()
    }

    #[test]
    fn long_strings_are_cut_and_the_rest_stays_readable() {
        for escape in ["\\u00e9", "\\\\", "\\\"", "é"] {
            for pad in 0..8 {
                let long = format!("{}{}", "x".repeat(STRING - pad), escape.repeat(20));
                let value = format!(r#"{{"data":"{long}","code":3}}"#);
                let object = captured(&value, value.len());
                let text = String::from_utf8_lossy(&object);
                let parsed: serde_json::Value = serde_json::from_str(&text).expect("still JSON");
                assert_eq!(parsed["error"]["code"], 3);
                for size in [1, 7, 100] {
                    assert_eq!(captured(&value, size), object, "chunks of {size}");
                }
            }
        }
    }

    #[test]
    fn the_total_is_bounded() {
        let value = format!("[{}1]", "1,".repeat(100_000));
        assert!(captured(&value, 4096).len() <= TOTAL + 2);
    }
}
