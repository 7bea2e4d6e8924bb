//! Whether a body nests deeper than anybody needs. Parsers of many nodes recurse, so depth is refused here.

/// The deepest nesting that is passed on.
pub(crate) const MAX_DEPTH: usize = 128;

/// True when arrays and objects nest deeper than [`MAX_DEPTH`].
pub(crate) fn too_deep(body: &[u8]) -> bool {
    let brackets = memchr::memchr2_iter(b'[', b'{', body).take(MAX_DEPTH + 1).count();
    brackets > MAX_DEPTH && deepest(body) > MAX_DEPTH
}

fn deepest(body: &[u8]) -> usize {
    let (mut depth, mut deepest, mut at) = (0usize, 0, 0);
    while let Some(&byte) = body.get(at) {
        match byte {
            b'"' => at = end_of_string(body, at + 1),
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
        at += 1;
    }
    deepest
}

fn end_of_string(body: &[u8], mut at: usize) -> usize {
    while let Some(offset) = body.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += offset;
        if body[at] == b'"' {
            return at;
        }
        at += 2;
    }
    body.len()
}
