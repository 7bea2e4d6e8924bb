//! Which request opens a WebSocket (RFC 6455, 4.2.1), what is wrong with it, and the answer to one that is right.
//! Pure. No subprotocol and no extension is ever agreed to: none is implemented.

use crate::net::Body;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, ORIGIN, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Version};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Why an upgrade is refused whoever may serve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadUpgrade {
    Http,
    Body,
    Key,
    Version,
    Origin,
}

impl BadUpgrade {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            BadUpgrade::Http | BadUpgrade::Body | BadUpgrade::Key => StatusCode::BAD_REQUEST,
            BadUpgrade::Version => StatusCode::UPGRADE_REQUIRED,
            BadUpgrade::Origin => StatusCode::FORBIDDEN,
        }
    }

    pub(crate) fn message(self) -> &'static str {
        match self {
            BadUpgrade::Http => "a WebSocket upgrade needs HTTP/1.1",
            BadUpgrade::Body => "a WebSocket upgrade has no body",
            BadUpgrade::Key => "Sec-WebSocket-Key must be one value of 16 bytes in base64",
            BadUpgrade::Version => "Sec-WebSocket-Version must be 13",
            BadUpgrade::Origin => "pages of this origin may not connect (CORS_ORIGIN)",
        }
    }
}

/// Whether a request wants to become a WebSocket.
pub(crate) fn is_upgrade(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::GET && lists(headers, &CONNECTION, "upgrade") && lists(headers, &UPGRADE, "websocket")
}

/// The value of `Sec-WebSocket-Accept` for a handshake that is right. `allowed` is `CORS_ORIGIN`.
pub(super) fn check(head: &Parts, allowed: &str) -> Result<HeaderValue, BadUpgrade> {
    if head.version != Version::HTTP_11 {
        return Err(BadUpgrade::Http);
    }
    let empty = head.headers.get(CONTENT_LENGTH).is_none_or(|length| length == "0");
    if !empty || head.headers.contains_key(TRANSFER_ENCODING) {
        return Err(BadUpgrade::Body);
    }
    if head.headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(BadUpgrade::Version);
    }
    let mut keys = head.headers.get_all(SEC_WEBSOCKET_KEY).iter();
    let key = keys.next().filter(|key| is_key(key.as_bytes())).ok_or(BadUpgrade::Key)?;
    if keys.next().is_some() {
        return Err(BadUpgrade::Key);
    }
    if !may_connect(&head.headers, allowed) {
        return Err(BadUpgrade::Origin);
    }
    HeaderValue::from_str(&derive_accept_key(key.as_bytes())).map_err(|_| BadUpgrade::Key)
}

/// The answer that makes the connection a WebSocket.
pub(super) fn accepted(accept: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    response
}

fn lists(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|item| item.trim().eq_ignore_ascii_case(token))
}

fn is_key(key: &[u8]) -> bool {
    let base64 = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'+' || *byte == b'/';
    key.len() == 24 && key.ends_with(b"==") && key[..22].iter().all(base64)
}

/// Browsers do not ask before a WebSocket as they do before a POST: what `CORS_ORIGIN` keeps from reading answers
/// must not get them this way. Who sends no `Origin` is no browser.
fn may_connect(headers: &HeaderMap, allowed: &str) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let Ok(origin) = origin.to_str() else { return false };
    let own = |host: &HeaderValue| {
        origin
            .split_once("://")
            .is_some_and(|(_, place)| host.as_bytes().eq_ignore_ascii_case(place.as_bytes()))
    };
    allowed == "*" || origin.eq_ignore_ascii_case(allowed) || headers.get(HOST).is_some_and(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    const GOOD: &[(&str, &str)] = &[
        ("host", "rpc.example"),
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "WebSocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];

    /// The good handshake with some headers in place of its own; an empty value takes one away.
    fn head(changes: &[(&str, &str)]) -> Parts {
        let mut parts = Request::get("/main").body(()).expect("a request").into_parts().0;
        for (name, value) in GOOD.iter().chain(changes) {
            let name: HeaderName = name.parse().expect("a name");
            if value.is_empty() {
                parts.headers.remove(name);
            } else {
                parts.headers.insert(name, value.parse().expect("a value"));
            }
        }
        parts
    }

    #[test]
    fn the_key_is_answered_as_the_standard_says() {
        let accept = check(&head(&[]), "*").expect("a good handshake");
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn both_headers_make_an_upgrade() {
        for (changes, expected) in [
            (&[][..], true),
            (&[("connection", "close")], false),
            (&[("connection", "")], false),
            (&[("upgrade", "h2c")], false),
            (&[("upgrade", "h2c, websocket")], true),
        ] {
            assert_eq!(is_upgrade(&Method::GET, &head(changes).headers), expected, "{changes:?}");
        }
        assert!(!is_upgrade(&Method::POST, &head(&[]).headers));
    }

    #[test]
    fn what_is_wrong_is_told_apart() {
        for (name, value, expected) in [
            ("sec-websocket-version", "8", BadUpgrade::Version),
            ("sec-websocket-version", "", BadUpgrade::Version),
            ("sec-websocket-key", "", BadUpgrade::Key),
            ("sec-websocket-key", "c2hvcnQ=", BadUpgrade::Key),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ!=", BadUpgrade::Key),
            ("content-length", "2", BadUpgrade::Body),
            ("transfer-encoding", "chunked", BadUpgrade::Body),
        ] {
            assert_eq!(check(&head(&[(name, value)]), "*"), Err(expected), "{name}: {value}");
        }
        let mut old = head(&[]);
        old.version = Version::HTTP_10;
        assert_eq!(check(&old, "*"), Err(BadUpgrade::Http));
    }

    #[test]
    fn pages_of_other_origins_are_kept_out() {
        for (allowed, origin, expected) in [
            ("*", "https://any.example", true),
            ("https://app.example", "https://app.example", true),
            ("https://app.example", "HTTPS://APP.example", true),
            ("https://app.example", "https://evil.example", false),
            ("https://app.example", "https://rpc.example", true),
            ("https://app.example", "null", false),
            ("", "https://app.example", false),
            ("https://app.example", "", true),
        ] {
            let outcome = check(&head(&[("origin", origin)]), allowed);
            assert_eq!(outcome.is_ok(), expected, "{allowed} {origin}");
        }
    }
}
