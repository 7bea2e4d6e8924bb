//! Which window a refusal names: "exceeded 25 requests per second", "1/min", "RPS limit", or headers that name a window
//! and what it takes. Reads, never guesses: without a unit of time there is no window.

use http::HeaderMap;

use crate::said::Said;
use crate::verdict::NamedWindow;
use crate::words::number_len;

/// Gateways that keep several limits count each under names of its own: the limit, what is left of it, its seconds.
const PER: [(&str, &str, u32); 2] = [
    ("x-ratelimit-limit-second", "x-ratelimit-remaining-second", 1),
    ("x-ratelimit-limit-minute", "x-ratelimit-remaining-minute", 60),
];

/// The window a refusal states, in a member, in its text or in headers.
pub(crate) fn stated(headers: &HeaderMap, said: &Said) -> Option<NamedWindow> {
    match said.allowed_rps {
        Some(limit) => Some(NamedWindow { seconds: 1, limit: Some(limit) }),
        None => named(&said.text).or_else(|| in_headers(headers)),
    }
}

/// `RateLimit-Policy: "burst";q=100;w=60`, `RateLimit-Limit: 100, 100;w=60`, `X-RateLimit-Limit-Minute: 100`. Of several
/// windows the one that is used up, if that is said.
fn in_headers(headers: &HeaderMap) -> Option<NamedWindow> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let used_up = PER.iter().find(|(_, left, _)| text(left).map(str::trim) == Some("0"));
    if let Some((limit, _, seconds)) = used_up {
        return Some(NamedWindow { seconds: *seconds, limit: parse(text(limit)?.trim()) });
    }
    let limit = text("ratelimit-limit").or_else(|| text("x-ratelimit-limit"));
    let policies = text("ratelimit-policy").or(limit)?;
    let mut policies = policies.split(',').filter_map(policy);
    let told = limit.and_then(|limit| parse(limit.split([',', ';']).next()?.trim()));
    match told {
        Some(limit) => policies.find(|window| window.limit == Some(limit)),
        // Which of several is exceeded is not said.
        None => policies.next().filter(|_| policies.next().is_none()),
    }
}

/// One policy: an amount, or a name and `q`, and a window `w` in seconds.
fn policy(text: &str) -> Option<NamedWindow> {
    let mut parts = text.split(';').map(str::trim);
    let first = parts.next()?;
    let (mut limit, mut seconds) = (parse(first), None);
    for part in parts {
        match part.split_once('=')? {
            ("q", number) => limit = parse(number),
            ("w", number) => seconds = number.parse().ok(),
            // Anything else but requests is counted by another policy.
            ("qu", unit) if unit.trim_matches('"') != "requests" => return None,
            _ => {}
        }
    }
    Some(NamedWindow { seconds: seconds.filter(|seconds| *seconds > 0)?, limit })
}

/// Words that count requests, so that the number before them is a limit in requests.
const REQUESTS: [&str; 9] = ["request", "requests", "req", "reqs", "call", "calls", "query", "queries", "r"];

/// The first window named in a text in lower case.
fn named(text: &str) -> Option<NamedWindow> {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || "()[]:;'\"".contains(c)).collect();
    (0..words.len()).find_map(|at| window_at(&words, at))
}

fn window_at(words: &[&str], at: usize) -> Option<NamedWindow> {
    let word = trim(words[at]);
    if let Some((count, unit)) = word.split_once('/') {
        return window(words.get(..at)?, count, seconds(unit)?);
    }
    if matches!(word, "per" | "/") {
        return window(words.get(..at)?, "", seconds_ahead(words.get(at + 1..)?)?);
    }
    let (number, name) = word.split_at(number_len(word.as_bytes()));
    matches!(name, "rps" | "qps" | "tps").then(|| NamedWindow {
        seconds: 1,
        limit: parse(number).or_else(|| parse(trim(words.get(at.checked_sub(1)?)?))),
    })
}

/// `second`, `10 seconds`, `5-minute`.
fn seconds_ahead(words: &[&str]) -> Option<u32> {
    let first = trim(words.first()?);
    if let Some(unit) = seconds(first) {
        return Some(unit);
    }
    let (number, rest) = first.split_at(number_len(first.as_bytes()));
    let unit = seconds(rest.trim_start_matches('-')).or_else(|| seconds(trim(words.get(1)?)))?;
    unit.checked_mul(u32::try_from(parse(number)?).ok()?).filter(|seconds| *seconds > 0)
}

/// A window of `seconds`; its limit from `count`, or else from the words before.
fn window(before: &[&str], count: &str, seconds: u32) -> Option<NamedWindow> {
    let limit = parse(count).or_else(|| match (count, before) {
        ("", [.., number, noun]) if REQUESTS.contains(&trim(noun)) => parse(trim(number)),
        ("", [.., number]) => parse(trim(number)),
        (noun, [.., number]) if REQUESTS.contains(&noun) => parse(trim(number)),
        _ => None,
    });
    Some(NamedWindow { seconds, limit: limit.filter(|_| !counts_credits(before, count)) })
}

/// Whether what is limited are credits or compute units, not requests.
fn counts_credits(before: &[&str], count: &str) -> bool {
    let credit = |word: &str| word.contains("credit") || word.contains("compute") || word.contains("byte");
    credit(count) || before.iter().rev().take(4).any(|word| credit(word))
}

fn parse(number: &str) -> Option<u64> {
    let len = number_len(number.as_bytes());
    (len == number.len()).then(|| number.replace([',', '_'], "").parse().ok())?
}

fn trim(word: &str) -> &str {
    word.trim_matches(|c: char| matches!(c, '.' | ',' | '!' | '?'))
}

fn seconds(unit: &str) -> Option<u32> {
    Some(match unit {
        "s" | "sec" | "second" => 1,
        "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hr" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<(u32, Option<u64>)>) {
        let found = named(text).map(|window| (window.seconds, window.limit));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn windows_in_prose() {
        check("exceeded 25 requests per second", Some((1, Some(25))));
        check("20/second request limit reached", Some((1, Some(20))));
        check("heavy method rate limit: 1/min for eth_getlogs", Some((60, Some(1))));
        check(
            "you have exceeded your limit of 5 requests per minute. upgrade for 200 requests per second",
            Some((60, Some(5))),
        );
        check("exceeded the rps limit", Some((1, None)));
        check("limit 15 rps", Some((1, Some(15))));
        check("max 50rps", Some((1, Some(50))));
        check("compute units per second capacity", Some((1, None)));
        check("credits limited to 6000/sec", Some((1, None)));
        check("throughput limit 1000 cus/sec...", Some((1, None)));
        check("100 requests per 10 seconds", Some((10, Some(100))));
        check("1,000 req/s", Some((1, Some(1000))));
        check("rate limit exceeded", None);
        check("exist/is not", None);
        check("per", None);
    }

    fn check_headers(headers: &[(&'static str, &str)], expected: Option<(u32, Option<u64>)>) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a header value"));
        }
        let found = in_headers(&map).map(|window| (window.seconds, window.limit));
        assert_eq!(found, expected, "{headers:?}");
    }

    /// Kills: a window without a unit of time, another policy's number, and one of several that is not told apart.
    #[test]
    fn windows_in_headers() {
        check_headers(&[], None);
        check_headers(&[("x-ratelimit-limit", "100")], None);
        check_headers(&[("ratelimit-limit", "100, 100;w=60")], Some((60, Some(100))));
        check_headers(&[("ratelimit-policy", "\"burst\";q=40;w=1")], Some((1, Some(40))));
        check_headers(&[("ratelimit-policy", "\"a\";q=40;w=1, \"b\";q=900;w=60")], None);
        let two = ("ratelimit-policy", "40;w=1, 900;w=60");
        check_headers(&[two, ("ratelimit-limit", "900")], Some((60, Some(900))));
        check_headers(&[two, ("ratelimit-limit", "7")], None);
        check_headers(&[("ratelimit-policy", "\"a\";q=40;w=1;qu=\"content-bytes\"")], None);
        check_headers(&[("ratelimit-policy", "\"a\";q=40;w=0")], None);
        let minute = ("x-ratelimit-limit-minute", "300");
        check_headers(&[minute, ("x-ratelimit-remaining-minute", "0")], Some((60, Some(300))));
        check_headers(&[minute, ("x-ratelimit-remaining-minute", "3")], None);
    }
}
