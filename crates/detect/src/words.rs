//! Brings provider prose into one form, so that a phrase matches however it is spelled: lower case,
//! single spaces, numbers as `#`, `_`, `-` and camel case as spaces, `/s` as `per s`, no quotes, no URLs.
//! `Rate-limit hit: 1,000 CUs/sec` becomes ` rate limit hit # cus per sec `.

/// How much of an answer's text is looked at, in bytes.
pub(crate) const TEXT: usize = 4096;

const UNITS: [&str; 15] = [
    "second", "seconds", "sec", "secs", "s", "minute", "minutes", "min", "m", "hour", "hr", "h", "day", "d",
    "month",
];

/// The text's words, with a space before the first and after the last.
pub(crate) fn normalise(text: &str) -> String {
    let mut words = Words { out: Vec::with_capacity(text.len().min(TEXT) + 16) };
    words.out.push(b' ');
    let bytes = &text.as_bytes()[..text.len().min(TEXT)];
    let mut at = 0;
    while at < bytes.len() {
        at = words.step(bytes, at);
    }
    words.space();
    String::from_utf8(words.out).unwrap_or_else(|cut| String::from_utf8_lossy(cut.as_bytes()).into_owned())
}

/// The text without its markup, scripts and styles.
pub(crate) fn strip_markup(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(open) = rest.find('<') {
        out.push_str(&rest[..open]);
        out.push(' ');
        rest = after_element(&rest[open..]);
    }
    out.push_str(rest);
    out
}

/// What follows the tag at the start of `rest`, and its contents if they are not prose.
fn after_element(rest: &str) -> &str {
    for name in ["script", "style"] {
        if rest.as_bytes().get(1..=name.len()).is_some_and(|tag| tag.eq_ignore_ascii_case(name.as_bytes())) {
            let close = format!("</{name}");
            let Some(end) = rest.find(&close) else { return "" };
            return rest[end..].find('>').map_or("", |gt| &rest[end + gt + 1..]);
        }
    }
    rest.find('>').map_or("", |gt| &rest[gt + 1..])
}

struct Words {
    out: Vec<u8>,
}

impl Words {
    /// Takes what starts at `at`; returns where the next thing starts.
    fn step(&mut self, bytes: &[u8], at: usize) -> usize {
        let byte = bytes[at];
        let rest = &bytes[at..];
        match byte {
            b'\'' | b'"' | b'`' => at + 1,
            b'/' if per_unit(&rest[1..]) => self.per(at),
            _ if self.at_word_start() && is_url(rest) => at + url_len(rest),
            b'0'..=b'9' if self.at_word_start() => at + self.number(rest),
            b'a'..=b'z' | b'0'..=b'9' => self.letter(byte, at),
            b'A'..=b'Z' => {
                if at > 0 && bytes[at - 1].is_ascii_lowercase() {
                    self.space();
                }
                self.letter(byte.to_ascii_lowercase(), at)
            }
            0xE2 if rest.starts_with(&[0xE2, 0x80]) => {
                // Typographic quotes go the way of the plain ones; dashes and dots separate.
                if !matches!(rest.get(2), Some(0x98..=0x9F)) {
                    self.space();
                }
                at + rest.len().min(3)
            }
            0x80.. => self.letter(byte, at),
            _ => {
                self.space();
                at + 1
            }
        }
    }

    fn letter(&mut self, byte: u8, at: usize) -> usize {
        self.out.push(byte);
        at + 1
    }

    fn per(&mut self, at: usize) -> usize {
        self.space();
        self.out.extend_from_slice(b"per ");
        at + 1
    }

    fn space(&mut self) {
        if !self.at_word_start() {
            self.out.push(b' ');
        }
    }

    fn at_word_start(&self) -> bool {
        self.out.last() == Some(&b' ')
    }

    /// Takes a number and its `k`; returns its length.
    fn number(&mut self, rest: &[u8]) -> usize {
        if rest.len() > 2 && rest[1] | 0x20 == b'x' && rest[2].is_ascii_hexdigit() {
            self.out.extend_from_slice(b"0x");
            return 2 + rest[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        }
        self.out.push(b'#');
        let mut len = number_len(rest);
        let follows = |at: usize| rest.get(at).is_some_and(u8::is_ascii_alphanumeric);
        if matches!(rest.get(len), Some(b'k' | b'K' | b'M')) && !follows(len + 1) {
            len += 1;
        }
        if follows(len) {
            self.out.push(b' ');
        }
        len
    }
}

/// The length of `10`, `10,000` or `12.5` at the start of `rest`.
pub(crate) fn number_len(rest: &[u8]) -> usize {
    let mut len = 0;
    while len < rest.len() {
        let inner =
            matches!(rest[len], b',' | b'.' | b'_') && rest.get(len + 1).is_some_and(u8::is_ascii_digit);
        if !(rest[len].is_ascii_digit() || inner && len > 0) {
            break;
        }
        len += 1;
    }
    len
}

fn is_url(rest: &[u8]) -> bool {
    let starts = |scheme: &str| {
        rest.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    matches!(rest[0] | 0x20, b'h' | b'w')
        && ["http://", "https://", "wss://", "www."].iter().any(|url| starts(url))
}

fn url_len(rest: &[u8]) -> usize {
    rest.iter()
        .position(|byte| {
            byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b')' | b'\\')
        })
        .unwrap_or(rest.len())
}

/// Whether what follows a slash is a unit of time: `/s`, `/ second`.
fn per_unit(rest: &[u8]) -> bool {
    let from = rest.iter().take_while(|byte| **byte == b' ').count();
    let len = rest[from..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let word = &rest[from..from + len];
    UNITS.iter().any(|unit| word.eq_ignore_ascii_case(unit.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(normalise(text), expected, "{text}");
    }

    #[test]
    fn one_spelling_for_many() {
        check("Rate-limit hit: 1,000 CUs/sec", " rate limit hit # cus per sec ");
        check("rate_limit_exceeded", " rate limit exceeded ");
        check("TooManyRequestsException", " too many requests exception ");
        check("You\u{2019}ve hit 'it'", " youve hit it ");
        check("20/second request limit", " # per second request limit ");
        check("10k blocks, 2K block, 5r/s, 3s", " # blocks # block # r per s # s ");
        check("eth_getLogs 0xCB3D..0x7B", " eth get logs 0x 0x ");
        check("see https://docs.example/rate-limits#429 now", " see now ");
        check("exist/is not", " exist is not ");
        check("12.5 and 1.", " # and # ");
        check("", " ");
        check("état…", " état ");
    }

    #[test]
    fn markup_goes_and_prose_stays() {
        let page = "<html><style>p{rate:limit}</style><h1><span>Error</span> 1015</h1>";
        assert_eq!(normalise(&strip_markup(page)), " error # ");
        assert_eq!(strip_markup("<script>limit"), " ");
    }
}
