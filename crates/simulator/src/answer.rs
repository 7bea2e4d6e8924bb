//! An answer given verbatim, whatever was asked. Decides status, headers and bytes, never when they go out.

use bytes::Bytes;
use serde_json::Value;

/// Status, headers and body of one answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// Puts the id of a single call into a body that is one JSON object.
    pub echo_id: bool,
}

/// Why a line of the collection is no recording.
#[derive(Debug, PartialEq, Eq)]
pub struct BadRecording(pub String);

impl std::fmt::Display for BadRecording {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no recording: {}", self.0)
    }
}

impl std::error::Error for BadRecording {}

impl Answer {
    /// A JSON body under `status`.
    #[must_use]
    pub fn json(status: u16, body: impl Into<Bytes>) -> Self {
        Self::new(status, body).header("content-type", "application/json")
    }

    /// A body without any header of ours.
    #[must_use]
    pub fn new(status: u16, body: impl Into<Bytes>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), echo_id: false }
    }

    /// HTTP 429, with so many seconds of `Retry-After`.
    #[must_use]
    pub fn rate_limited(retry_after: Option<u64>) -> Self {
        let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":429,"message":"Too Many Requests"}}"#;
        let answer = Self::json(429, body);
        match retry_after {
            Some(seconds) => answer.header("retry-after", &seconds.to_string()),
            None => answer,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lets the body carry the id that was asked with.
    #[must_use]
    pub fn echoing(mut self) -> Self {
        self.echo_id = true;
        self
    }

    /// One line of the collection of real answers: `http_status` (null counts as 200), `headers`, `body`,
    /// `body_encoding`.
    ///
    /// # Errors
    /// When the line is not such an object.
    pub fn recorded(line: &str) -> Result<Self, BadRecording> {
        let row: Value = serde_json::from_str(line).map_err(|err| BadRecording(err.to_string()))?;
        let text = row["body"].as_str().ok_or_else(|| BadRecording("body is not a string".to_owned()))?;
        let body = match row["body_encoding"].as_str() {
            Some("base64") => {
                decode_base64(text).ok_or_else(|| BadRecording("body is not base64".to_owned()))?
            }
            Some(_) | None => text.as_bytes().to_vec(),
        };
        let status = row["http_status"].as_u64().and_then(|status| u16::try_from(status).ok());
        let mut answer = Self::new(status.unwrap_or(200), body);
        for (name, value) in row["headers"].as_object().into_iter().flatten() {
            answer = answer.header(name, value.as_str().unwrap_or_default());
        }
        Ok(answer)
    }

    /// The body for a call with this id (raw JSON).
    pub(crate) fn body_for(&self, id: Option<&str>) -> Bytes {
        let (true, Some(id)) = (self.echo_id, id) else { return self.body.clone() };
        let Ok(Value::Object(mut object)) = serde_json::from_slice(&self.body) else {
            return self.body.clone();
        };
        let Ok(id) = serde_json::from_str(id) else { return self.body.clone() };
        object.insert("id".to_owned(), id);
        Value::Object(object).to_string().into()
    }
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    let (mut held, mut bits) = (0u32, 0);
    for digit in text.bytes().filter(|digit| *digit != b'=') {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        (held, bits) = ((held << 6) | u32::from(value), bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes.push((held >> bits) as u8);
            held &= (1 << bits) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_are_served_as_they_were() {
        let line = r#"{"http_status":429,"headers":{"retry-after":"7"},"body":"{\"id\":9}","why":"x"}"#;
        let answer = Answer::recorded(line).expect("a recording");
        assert_eq!((answer.status, answer.body_for(Some("1"))), (429, Bytes::from(r#"{"id":9}"#)));
        assert_eq!(answer.headers, [("retry-after".to_owned(), "7".to_owned())]);
    }

    #[test]
    fn unknown_status_is_200_and_base64_is_decoded() {
        let line = r#"{"http_status":null,"headers":{},"body":"H4sI/w==","body_encoding":"base64"}"#;
        let answer = Answer::recorded(line).expect("a recording");
        assert_eq!((answer.status, &answer.body[..]), (200, &[0x1f, 0x8b, 0x08, 0xff][..]));
    }

    #[test]
    fn nonsense_is_no_recording() {
        for line in ["", "[]", r#"{"body":7}"#, r#"{"body":"!","body_encoding":"base64"}"#] {
            assert!(Answer::recorded(line).is_err(), "{line}");
        }
    }

    #[test]
    fn an_echoing_answer_carries_the_callers_id() {
        let answer = Answer::json(200, r#"{"id":null,"error":{"code":-32005}}"#).echoing();
        let body: Value = serde_json::from_slice(&answer.body_for(Some("\"x\""))).expect("JSON");
        assert_eq!(body["id"], "x");
    }
}
