//! How answers of our own are written, and how answers of others get the client's ids back.

/// The body is not JSON.
pub const PARSE: i32 = -32700;
/// The body is JSON but no call.
pub const INVALID_REQUEST: i32 = -32600;
/// Nobody knows the method, or the chain.
pub const METHOD_NOT_FOUND: i32 = -32601;
/// We failed.
pub const INTERNAL: i32 = -32603;
/// Too much was asked for; come back later.
pub const LIMITED: i32 = -32005;
/// We do not know who is asking, or they may not.
pub const UNAUTHORIZED: i32 = -32001;

/// Appends an error answer. `id` is raw JSON (`None`: null), `data` a JSON object.
pub fn error(out: &mut Vec<u8>, id: Option<&[u8]>, code: i32, message: &str, data: &serde_json::Value) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.unwrap_or(b"null"));
    let error = serde_json::json!({ "code": code, "message": message, "data": data });
    out.extend_from_slice(br#","error":"#);
    out.extend_from_slice(error.to_string().as_bytes());
    out.push(b'}');
}

/// Appends `items`, each a JSON text, as an array.
pub fn array<'a>(out: &mut Vec<u8>, items: impl Iterator<Item = &'a [u8]>) {
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(item);
    }
    out.push(b']');
}

/// `answer` with the value of its id, which stands at `at`, replaced by `id`.
pub fn with_id(answer: &[u8], at: std::ops::Range<usize>, id: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(answer.len() + id.len());
    out.extend_from_slice(&answer[..at.start]);
    out.extend_from_slice(id);
    out.extend_from_slice(&answer[at.end..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_echoes_the_id_and_escapes_its_text() {
        let mut out = Vec::new();
        error(
            &mut out,
            Some(br#""a""#),
            LIMITED,
            "say \"when\"",
            &serde_json::json!({"reason": "saturated"}),
        );
        let read: serde_json::Value = serde_json::from_slice(&out).expect("valid JSON");
        assert_eq!(read["id"], "a");
        assert_eq!(read["error"]["message"], "say \"when\"");
        assert_eq!(read["error"]["data"]["reason"], "saturated");
    }

    #[test]
    fn items_become_one_array() {
        let mut out = Vec::new();
        array(&mut out, [&b"1"[..], b"2"].into_iter());
        assert_eq!(out, b"[1,2]");
    }

    #[test]
    fn the_id_of_an_answer_is_replaced_in_place() {
        assert_eq!(with_id(br#"{"id":0,"result":1}"#, 6..7, br#""x""#), br#"{"id":"x","result":1}"#);
    }
}
