//! Where an endpoint is and what every request to it carries, prepared once when the configuration is loaded.

use bytes::Bytes;
use config::{Secret, SecretUrl};
use http::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName,
    HeaderValue, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Method, Request, Uri};
use http_body_util::Full;
use std::sync::LazyLock;

/// An upstream URL taken apart. Its `Debug` shows no path: paths carry keys.
pub struct Target {
    pub tls: bool,
    pub host: Box<str>,
    pub port: u16,
    /// `/path?query`, as HTTP/1.1 sends it.
    origin_form: Uri,
    /// The whole URL, as HTTP/2 needs it.
    absolute: Uri,
    /// The whole URL with a WebSocket's scheme: the handshake is refused without it.
    socket: Uri,
    headers: Headers,
}

/// What every request to a target carries.
enum Headers {
    /// What those to others carry, to this host.
    Usual { host: HeaderValue },
    /// Some that were configured as well.
    Own(HeaderMap),
}

/// What every request carries. One for all targets: it stays in the cache, however many there are.
static USUAL: LazyLock<HeaderMap> = LazyLock::new(|| {
    let mut usual = HeaderMap::with_capacity(4);
    usual.insert(HOST, HeaderValue::from_static("localhost"));
    usual.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // What a request says instead has its place already: a copied map has no room for more.
    usual.insert(ACCEPT_ENCODING, Codings::IDENTITY.header());
    usual.insert(CONTENT_LENGTH, HeaderValue::from(0));
    usual
});

/// The URL or a header of an endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadTarget {
    #[error("the URL cannot be sent: {0}")]
    Url(#[from] http::Error),
    #[error("header {0} cannot be sent")]
    Header(String),
}

impl Target {
    /// `headers` are sent with every request and win over ours.
    pub fn new(url: &SecretUrl, headers: &[(HeaderName, Secret)]) -> Result<Target, BadTarget> {
        let tls = matches!(url.scheme(), "https" | "wss");
        let url_text = url.expose();
        let place = match url_text.port() {
            Some(port) => format!("{}:{port}", url.host()),
            None => url.host().to_owned(),
        };
        let path = url.path_and_query();
        let origin_form: Uri = path.expose().parse().map_err(http::Error::from)?;
        let whole = |scheme: &str| {
            Uri::builder().scheme(scheme).authority(&*place).path_and_query(path.expose()).build()
        };
        let absolute = whole(if tls { "https" } else { "http" })?;
        let socket = whole(if tls { "wss" } else { "ws" })?;
        let headers = headers_of(url, &place, headers)?;
        let host = url.host().trim_matches(['[', ']']).into();
        Ok(Target { tls, host, port: url.port(), origin_form, absolute, socket, headers })
    }

    fn headers(&self) -> HeaderMap {
        match &self.headers {
            Headers::Usual { host } => {
                let mut headers = USUAL.clone();
                put(&mut headers, &HOST, host.clone());
                headers
            }
            Headers::Own(headers) => headers.clone(),
        }
    }

    /// The URL to connect to.
    pub(crate) fn place(&self) -> Uri {
        self.absolute.clone()
    }

    /// The opening handshake of a WebSocket.
    pub fn handshake(&self, key: &str) -> Request<()> {
        let mut request = Request::new(());
        *request.uri_mut() = self.socket.clone();
        let headers = request.headers_mut();
        *headers = self.without_body();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        if let Ok(key) = HeaderValue::from_str(key) {
            headers.insert(SEC_WEBSOCKET_KEY, key);
        }
        request
    }

    /// A request for the page itself.
    pub(crate) fn get(&self) -> Request<http_body_util::Empty<Bytes>> {
        let mut request = Request::new(http_body_util::Empty::new());
        *request.uri_mut() = self.origin_form.clone();
        *request.headers_mut() = self.without_body();
        request
    }

    /// The headers of what has no body.
    fn without_body(&self) -> HeaderMap {
        let mut headers = self.headers();
        for of_a_body in [CONTENT_TYPE, ACCEPT_ENCODING, CONTENT_LENGTH] {
            headers.remove(of_a_body);
        }
        headers
    }

    /// A request with this body, offering `codings` for the answer.
    pub fn request(&self, body: Bytes, codings: Codings, http2: bool) -> Request<Full<Bytes>> {
        let length = decimal(body.len());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = if http2 { self.absolute.clone() } else { self.origin_form.clone() };
        let headers = request.headers_mut();
        *headers = self.headers();
        if http2 {
            headers.remove(HOST);
        }
        put(headers, &ACCEPT_ENCODING, codings.header());
        put(headers, &CONTENT_LENGTH, length);
        request
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

fn headers_of(url: &SecretUrl, place: &str, headers: &[(HeaderName, Secret)]) -> Result<Headers, BadTarget> {
    let host = HeaderValue::from_str(place).map_err(http::Error::from)?;
    let basic = url.basic_auth();
    if basic.is_none() && headers.is_empty() {
        return Ok(Headers::Usual { host });
    }
    let mut all = USUAL.clone();
    all.insert(HOST, host);
    if let Some(basic) = basic {
        all.insert(AUTHORIZATION, secret_value(&AUTHORIZATION, &basic)?);
    }
    for (name, value) in headers {
        all.insert(name.clone(), secret_value(name, value)?);
    }
    Ok(Headers::Own(all))
}

/// Puts a value into its place. Among these few, looking for the place is cheaper than hashing its name.
fn put(headers: &mut HeaderMap, name: &HeaderName, value: HeaderValue) {
    match headers.iter_mut().find(|(known, _)| *known == name) {
        Some((_, place)) => *place = value,
        None => drop(headers.insert(name, value)),
    }
}

/// As `HeaderValue::from` makes it, in one allocation instead of two.
fn decimal(number: usize) -> HeaderValue {
    HeaderValue::from_str(itoa::Buffer::new().format(number)).expect("digits")
}

fn secret_value(name: &HeaderName, value: &Secret) -> Result<HeaderValue, BadTarget> {
    let mut value = HeaderValue::from_str(value.expose()).map_err(|_| BadTarget::Header(name.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A set of content codings, as the client offers them and as we can read them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codings(u8);

impl Codings {
    pub const IDENTITY: Codings = Codings(0);
    const NAMES: [&'static str; 4] = ["gzip", "deflate", "br", "zstd"];

    /// What an `Accept-Encoding` header and we have in common.
    pub fn offered(headers: &HeaderMap) -> Codings {
        let mut set = 0;
        for value in headers.get_all(ACCEPT_ENCODING) {
            for item in value.to_str().unwrap_or("").split(',') {
                let (name, weight) = item.split_once(';').unwrap_or((item, ""));
                let refused =
                    matches!(weight.trim().trim_start_matches("q="), "0" | "0.0" | "0.00" | "0.000");
                let known = Self::NAMES.iter().position(|known| name.trim().eq_ignore_ascii_case(known));
                if let (Some(bit), false) = (known, refused) {
                    set |= 1 << bit;
                }
            }
        }
        Codings(set)
    }

    pub fn contains(self, coding: &str) -> bool {
        let bit = Self::NAMES.iter().position(|known| coding.trim().eq_ignore_ascii_case(known));
        bit.is_some_and(|bit| self.0 & (1 << bit) != 0)
    }

    fn header(self) -> HeaderValue {
        const SETS: [&str; 16] = [
            "identity",
            "gzip",
            "deflate",
            "gzip, deflate",
            "br",
            "gzip, br",
            "deflate, br",
            "gzip, deflate, br",
            "zstd",
            "gzip, zstd",
            "deflate, zstd",
            "gzip, deflate, zstd",
            "br, zstd",
            "gzip, br, zstd",
            "deflate, br, zstd",
            "gzip, deflate, br, zstd",
        ];
        HeaderValue::from_static(SETS[usize::from(self.0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url_of(text: &str) -> SecretUrl {
        SecretUrl::parse(text, &["http", "https"]).expect("a good URL")
    }

    fn sent(url: &str, headers: &[(&str, &str)], http2: bool) -> http::request::Parts {
        let named = |(name, value): &(&str, &str)| (name.parse().expect("a name"), Secret::new(*value));
        let headers: Vec<_> = headers.iter().map(named).collect();
        let target = Target::new(&url_of(url), &headers).expect("a good target");
        target.request(Bytes::new(), Codings::IDENTITY, http2).into_parts().0
    }

    #[test]
    fn a_url_is_sent_as_its_origin_expects() {
        for (url, host, path) in [
            ("http://a.example", "a.example", "/"),
            ("https://a.example:8443/v3/key?x=1", "a.example:8443", "/v3/key?x=1"),
            ("http://user:p%40ss@a.example/x", "a.example", "/x"),
            ("http://[::1]:8545/", "[::1]:8545", "/"),
        ] {
            let parts = sent(url, &[], false);
            assert_eq!(parts.headers[HOST], host, "{url}");
            assert_eq!(parts.uri.to_string(), path, "{url}");
        }
        let parts = sent("https://a.example/x", &[], true);
        assert_eq!(parts.uri.to_string(), "https://a.example/x");
        assert!(!parts.headers.contains_key(HOST), "HTTP/2 has :authority");
    }

    #[test]
    fn credentials_of_the_url_become_a_header_and_configured_headers_win() {
        assert_eq!(sent("http://user:p%40ss@h/", &[], false).headers[AUTHORIZATION], "Basic dXNlcjpwQHNz");
        let parts = sent("http://user:x@h/", &[("Authorization", "Bearer k")], false);
        assert_eq!(parts.headers[AUTHORIZATION], "Bearer k");
    }

    #[test]
    fn debug_shows_neither_path_nor_user() {
        let target = Target::new(&url_of("https://user:pw@a.example/secret"), &[]).expect("a good target");
        assert_eq!(format!("{target:?}"), "https://a.example:443");
    }

    /// Kills: a length with digits that are lost, too many or in another order.
    #[test]
    fn a_length_is_written_in_digits() {
        for number in [0, 7, 10, 109, 65_536, usize::MAX] {
            assert_eq!(decimal(number), number.to_string());
        }
    }

    #[test]
    fn codings_are_what_both_sides_know() {
        for (header, expected) in [
            ("", "identity"),
            ("gzip", "gzip"),
            ("GZIP, deflate, br;q=0.5, zstd", "gzip, deflate, br, zstd"),
            ("gzip;q=0, br", "br"),
            ("compress, *", "identity"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(header));
            assert_eq!(Codings::offered(&headers).header(), expected, "{header}");
        }
    }
}
