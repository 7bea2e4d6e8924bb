//! Values that must not be seen: keys, passwords, and URLs that hold them. Decides what of them may be
//! printed; never what they are used for.

use std::fmt;

use url::Url;

/// Text whose `Debug` and `Display` show nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for use, never for print.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// A URL with a scheme and a host. `Debug` and `Display` show `scheme://host[:port]` and no more: paths,
/// queries and user information hold keys.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretUrl(Url);

impl SecretUrl {
    /// Parses `text` and insists on one of `schemes` and on a host. The error quotes nothing of the text.
    pub fn parse(text: &str, schemes: &[&str]) -> Result<Self, String> {
        let url = Url::parse(text.trim()).map_err(|error| format!("not a URL: {error}"))?;
        // `Url` forgives `http:host`; what the slashes are missing from may be no URL but a key.
        if !schemes.contains(&url.scheme()) || !text.contains("://") {
            return Err(format!("must start with {}", alternatives(schemes)));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err("the URL has no host".to_owned());
        }
        Ok(Self(url))
    }

    /// The whole URL, for use, never for print.
    pub fn expose(&self) -> &Url {
        &self.0
    }

    pub fn scheme(&self) -> &str {
        self.0.scheme()
    }

    /// The host as it stands in the URL (IPv6 in brackets).
    pub fn host(&self) -> &str {
        self.0.host_str().unwrap_or_default()
    }

    /// The port given, or the scheme's own; 0 for a scheme that has none.
    pub fn port(&self) -> u16 {
        self.0.port_or_known_default().unwrap_or(0)
    }

    /// Path and query, as a request line wants them; the fragment is left out.
    pub fn path_and_query(&self) -> Secret {
        let query = self.0.query().map(|query| format!("?{query}")).unwrap_or_default();
        Secret(format!("{}{query}", self.0.path()))
    }

    /// The `Authorization: Basic …` value for the URL's user information, if it has any.
    pub fn basic_auth(&self) -> Option<Secret> {
        let (user, password) = (self.0.username(), self.0.password());
        if user.is_empty() && password.is_none() {
            return None;
        }
        let mut pair = percent_decoded(user);
        pair.push(b':');
        pair.extend(percent_decoded(password.unwrap_or_default()));
        Some(Secret(format!("Basic {}", base64(&pair))))
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.host())?;
        match self.0.port() {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn alternatives(schemes: &[&str]) -> String {
    let all: Vec<String> = schemes.iter().map(|scheme| format!("{scheme}://")).collect();
    all.join(" or ")
}

/// RFC 3986 §2.1; a `%` without two hexadecimal digits stands for itself.
fn percent_decoded(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = (byte == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    out
}

/// RFC 4648 §4, padded.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            (0..3).fold(0u32, |group, at| group << 8 | u32::from(chunk.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let sextet = (group >> (18 - 6 * at) & 63) as usize;
            out.push(if at <= chunk.len() { char::from(ALPHABET[sextet]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTTP: &[&str] = &["http", "https"];

    #[test]
    fn urls_print_scheme_host_and_port_only() {
        let check = |text: &str, expected: &str| {
            let url = SecretUrl::parse(text, HTTP).expect(text);
            assert_eq!((url.to_string(), format!("{url:?}")), (expected.to_owned(), expected.to_owned()));
        };
        check("https://eth-mainnet.example/v2/KEY?dkey=KEY#KEY", "https://eth-mainnet.example");
        check("http://user:KEY@[::1]:8545/KEY", "http://[::1]:8545");
        check(" HTTPS://Example.COM:443 ", "https://example.com");
    }

    #[test]
    fn what_is_no_usable_url_is_refused_without_quoting_it() {
        let check = |text: &str, expected: &str| {
            assert_eq!(SecretUrl::parse(text, HTTP).unwrap_err(), expected, "{text}");
        };
        check("wss://KEY.example", "must start with http:// or https://");
        check("KEY:443", "must start with http:// or https://");
        check("http:KEY", "must start with http:// or https://");
        check("KEY", "not a URL: relative URL without a base");
        check("http://", "not a URL: empty host");
        check("https://host:99999/KEY", "not a URL: invalid port number");
    }

    #[test]
    fn parts_for_the_request_line() {
        let url = SecretUrl::parse("https://h.example/v2/a?b=c#d", HTTP).unwrap();
        assert_eq!((url.host(), url.port(), url.path_and_query().expose()), ("h.example", 443, "/v2/a?b=c"));
    }

    // The vectors of RFC 7617 §2 and RFC 4648 §10.
    #[test]
    fn user_information_becomes_basic_auth() {
        let auth = |text: &str| {
            SecretUrl::parse(text, HTTP).unwrap().basic_auth().map(|auth| auth.expose().to_owned())
        };
        assert_eq!(
            auth("http://Aladdin:open%20sesame@h/"),
            Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_owned())
        );
        assert_eq!(auth("http://h/"), None);
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(percent_decoded("a%2Fb%zz%+1%"), b"a/b%zz%+1%");
    }
}
