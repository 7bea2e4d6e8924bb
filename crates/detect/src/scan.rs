//! Finds where a JSON value ends, in chunks cut anywhere. Knows strings and nesting, nothing else: payloads
//! are skipped, not read. Iterative, one counter for the depth, one pass.

use memchr::memchr2;

const PLAIN: u8 = 0;
const QUOTE: u8 = 1;
const OPEN: u8 = 2;
const CLOSE: u8 = 3;

/// What a byte outside strings does to the structure.
static CLASS: [u8; 256] = {
    let mut class = [PLAIN; 256];
    class[b'"' as usize] = QUOTE;
    class[b'{' as usize] = OPEN;
    class[b'[' as usize] = OPEN;
    class[b'}' as usize] = CLOSE;
    class[b']' as usize] = CLOSE;
    class
};

/// Strings shorter than this are not worth a call.
const SHORT: usize = 24;

/// A value whose end is being looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value {
    depth: usize,
    in_string: bool,
    escaped: bool,
    scalar: bool,
}

impl Value {
    /// For a value that starts with this byte; `None` if none does.
    pub(crate) fn starting_with(first: u8) -> Option<Value> {
        let scalar = match first {
            b'"' | b'{' | b'[' => false,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => true,
            _ => return None,
        };
        Some(Value { depth: 0, in_string: false, escaped: false, scalar })
    }

    /// Reads on from `from`: the index past the value's last byte, `None` if the chunk ends before.
    pub(crate) fn advance(&mut self, chunk: &[u8], from: usize) -> Option<usize> {
        if self.scalar { end_of_scalar(chunk, from) } else { self.advance_nested(chunk, from) }
    }

    fn advance_nested(&mut self, chunk: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while at < chunk.len() {
            if self.in_string {
                at = self.advance_string(chunk, at)?;
            } else {
                at = next_structural(chunk, at)?;
                match CLASS[chunk[at] as usize] {
                    QUOTE => self.in_string = true,
                    OPEN => self.depth += 1,
                    _ => self.depth = self.depth.saturating_sub(1),
                }
                at += 1;
            }
            if self.depth == 0 && !self.in_string {
                return Some(at);
            }
        }
        None
    }

    /// Inside a string from `at`: past its closing quote, or `None` if the chunk ends before.
    fn advance_string(&mut self, chunk: &[u8], mut at: usize) -> Option<usize> {
        loop {
            if self.escaped {
                chunk.get(at)?;
                self.escaped = false;
                at += 1;
            }
            at += quote_or_escape(&chunk[at..])? + 1;
            if chunk[at - 1] == b'"' {
                self.in_string = false;
                return Some(at);
            }
            self.escaped = true;
        }
    }
}

fn next_structural(chunk: &[u8], from: usize) -> Option<usize> {
    chunk[from..].iter().position(|byte| CLASS[*byte as usize] != PLAIN).map(|at| from + at)
}

fn quote_or_escape(bytes: &[u8]) -> Option<usize> {
    let near = bytes.len().min(SHORT);
    match bytes[..near].iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        Some(at) => Some(at),
        None => memchr2(b'"', b'\\', &bytes[near..]).map(|at| near + at),
    }
}

fn end_of_scalar(chunk: &[u8], from: usize) -> Option<usize> {
    chunk[from..]
        .iter()
        .position(|byte| matches!(byte, b',' | b'}' | b']') || is_space(*byte))
        .map(|at| from + at)
}

/// JSON's white space.
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the value at the start of `text` ends, fed in chunks of `size`.
    fn end(text: &str, size: usize) -> Option<usize> {
        let mut value = Value::starting_with(text.as_bytes()[0])?;
        let mut base = 0;
        for chunk in text.as_bytes().chunks(size) {
            if let Some(end) = value.advance(chunk, 0) {
                return Some(base + end);
            }
            base += chunk.len();
        }
        None
    }

    fn check(text: &str, expected: Option<usize>) {
        for size in 1..=text.len() {
            assert_eq!(end(text, size), expected, "{text} in chunks of {size}");
        }
    }

    #[test]
    fn values_end_where_they_end() {
        check(r#""a\"}b" ,"#, Some(7));
        check(r#""a\\","#, Some(5));
        check(r#"{"a":[1,{"b":"]}"}]}x"#, Some(20));
        check("[[],[[]]],", Some(9));
        check("null}", Some(4));
        check("-1.5e3 ", Some(6));
        check("12", None);
        check(r#"{"a":"b""#, None);
        check(&format!("\"{}\"", "x".repeat(60)), Some(62));
    }

    #[test]
    fn nothing_else_starts_a_value() {
        assert!(Value::starting_with(b'}').is_none());
        assert!(Value::starting_with(b'<').is_none());
    }
}
