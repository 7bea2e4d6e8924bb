//! `headgate-proxy classify`: recorded answers in, one a line, what each of them means out. Undoes the
//! recording's own encoding and the answer's content coding; decides nothing itself.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use detect::Rules;
use detect::line::Line;
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

use crate::decode::{Decoder, SLICE};

/// What an answer may become when it is decoded, as `MAX_RESPONSE_SCAN_BYTES` has it.
const DECODED: usize = 10 << 20;

/// Judges every line of `input`; a line that cannot be read gives `{"error": …}` in its place.
///
/// # Errors
/// Reading or writing failed.
pub(crate) fn run(rules: &Rules, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    for line in input.split(b'\n') {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match classify(rules, &line) {
            Ok(judged) => writeln!(output, "{judged}")?,
            Err(error) => writeln!(output, "{}", serde_json::json!({ "error": error }))?,
        }
        output.flush()?;
    }
    Ok(())
}

fn classify(rules: &Rules, text: &[u8]) -> Result<String, String> {
    let line: Line<'_> = serde_json::from_slice(text).map_err(|err| err.to_string())?;
    let headers = line.header_map();
    let bytes = line.bytes().ok_or("the body is no base64")?;
    let body = decoded(&headers, bytes)?;
    serde_json::to_string(&line.judge(rules, &headers, &body, now_unix_ms())).map_err(|err| err.to_string())
}

/// The body without its content coding. A recording may name a coding that its recorder has undone: a body
/// that is not in it is taken as it is.
fn decoded<'a>(headers: &HeaderMap, body: Cow<'a, [u8]>) -> Result<Cow<'a, [u8]>, String> {
    let Some(coding) = headers.get(CONTENT_ENCODING).and_then(|coding| coding.to_str().ok()) else {
        return Ok(body);
    };
    let mut decoder = Decoder::new(coding).ok_or_else(|| format!("unknown content coding {coding}"))?;
    let mut out = Vec::new();
    for slice in body.chunks(SLICE) {
        if decoder.push(slice, &mut out).is_err() {
            return Ok(body);
        }
        if out.len() > DECODED {
            return Err("the decoded body is too large".to_owned());
        }
    }
    match decoder.finish(&mut out) {
        Ok(()) => Ok(Cow::Owned(out)),
        Err(_) => Ok(body),
    }
}

fn now_unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(input: &str, expected: &str) {
        let mut output = Vec::new();
        run(&Rules::builtin(), input.as_bytes(), &mut output).expect("memory");
        assert_eq!(String::from_utf8(output).expect("UTF-8").trim_end(), expected, "{input}");
    }

    #[test]
    fn one_line_for_one_line() {
        check(
            r#"{"http_status":200,"body":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"0x1\"}","extra":1}"#,
            r#"{"verdict":"ok","scope":"request","retry_after_s":null,"rule":"success"}"#,
        );
        check(
            r#"{"provider":"x","http_status":429,"headers":{"Retry-After":"7"},"body":"","protocol":"http"}"#,
            r#"{"verdict":"rate_limited","scope":"account","retry_after_s":7.0,"rule":"status.limit"}"#,
        );
        check(
            "\n{\"http_status\":null,\"body\":null,\"ws_close_code\":4001,\"protocol\":\"ws\"}\n\n",
            r#"{"verdict":"auth","scope":"account","retry_after_s":null,"rule":"close.auth"}"#,
        );
    }

    #[test]
    fn batches_show_their_items_and_what_is_missing() {
        check(
            r#"{"http_status":200,"request_ids":[1,"a",3],"body":"[{\"id\":\"a\",\"error\":{\"code\":429,\"message\":\"Too many requests\"}},{\"id\":1,\"result\":\"0x1\"}]"}"#,
            concat!(
                r#"{"verdict":"rate_limited","scope":"account","retry_after_s":null,"rule":"burst.named","items":["#,
                r#"{"id":"a","verdict":"rate_limited","scope":"account","retry_after_s":null},"#,
                r#"{"id":1,"verdict":"ok","scope":"request","retry_after_s":null},"#,
                r#"{"id":3,"verdict":"upstream_fault","scope":"endpoint","retry_after_s":null}]}"#
            ),
        );
    }

    #[test]
    fn encoded_bodies_are_decoded() {
        // `{"jsonrpc":"2.0","id":1,"result":"0x1"}`, gzip.
        let gzip = "H4sIAAAAAAAC/6tWyirOzysqSFayUjLSM1DSUcpMUbIy1FEqSi0uzSkBihpUGCrVAgDAI8PtJwAAAA==";
        check(
            &format!(
                r#"{{"http_status":200,"headers":{{"content-encoding":"gzip"}},"body":"{gzip}","body_encoding":"base64"}}"#
            ),
            r#"{"verdict":"ok","scope":"request","retry_after_s":null,"rule":"success"}"#,
        );
        check(r#"{"body":"!","body_encoding":"base64"}"#, r#"{"error":"the body is no base64"}"#);
        check("{", r#"{"error":"EOF while parsing an object at line 1 column 1"}"#);
    }
}
