//! What is known of an answer beside its body. Data only.

use http::HeaderMap;

/// How the answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// An HTTP response.
    Http,
    /// A WebSocket message, close frame or refused handshake.
    Ws,
}

/// What is known of an answer beside its body. Everything that is not known is `None`.
#[derive(Debug, Clone, Copy)]
pub struct Head<'a> {
    /// How the answer came.
    pub protocol: Protocol,
    /// The provider as configured; case does not matter.
    pub provider: Option<&'a str>,
    /// The host asked; names the provider when none is configured.
    pub host: Option<&'a str>,
    /// The method asked for.
    pub method: Option<&'a str>,
    /// The HTTP status; `None` on an open WebSocket.
    pub status: Option<u16>,
    /// The response's headers.
    pub headers: &'a HeaderMap,
    /// Milliseconds since 1970; dates are measured against the `Date` header where there is one.
    pub now_unix_ms: u64,
    /// A close frame's code and reason.
    pub ws_close: Option<(u16, &'a str)>,
    /// Whether we sent a batch.
    pub batch: bool,
}

impl<'a> Head<'a> {
    /// A head that knows only its headers and the time.
    pub const fn new(protocol: Protocol, headers: &'a HeaderMap, now_unix_ms: u64) -> Head<'a> {
        Head {
            protocol,
            provider: None,
            host: None,
            method: None,
            status: None,
            headers,
            now_unix_ms,
            ws_close: None,
            batch: false,
        }
    }

    /// Whether the body may be a success: 2xx, or no status at all and no close frame.
    pub(crate) fn may_succeed(&self) -> bool {
        self.ws_close.is_none() && self.status.is_none_or(|status| (200..300).contains(&status))
    }
}
