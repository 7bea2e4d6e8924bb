//! How long a refusal asks to wait: from headers, members and prose, in order of trust. Returns what was
//! asked for, unclamped; what is not understood is ignored.

use std::time::Duration;

use http::{HeaderMap, HeaderName, header};

use crate::head::Head;
use crate::said::Said;
use crate::words::number_len;

/// Headers that say when the limit resets, after `Retry-After`.
const RESETS: [&str; 5] = [
    "ratelimit-reset",
    "x-ratelimit-reset",
    "x-rate-limit-reset",
    "x-ratelimit-reset-after",
    "x-ratelimit-reset-requests",
];

/// What stands before a wait in prose. Order of trust.
const MARKERS: [&str; 17] = [
    "retry in",
    "retry after",
    "retry_after",
    "again in",
    "again after",
    "suspended for",
    "blocked for",
    "banned for",
    "wait for",
    "wait",
    "resets in",
    "reset in",
    "resets after",
    "available in",
    "backoff",
    "back off for",
    "expires in",
];

/// Headers that say how many requests are left.
const REMAINING: [&str; 3] = ["ratelimit-remaining", "x-ratelimit-remaining", "x-rate-limit-remaining"];

/// What may stand between a marker and its number.
const FILLERS: [&str; 8] = [" ", ":", "=", "about", "approximately", "another", "at least", "\""];

/// More seconds than this are not a time left but a date, or nonsense.
const LONGEST_LEFT: f64 = 366.0 * 86_400.0;
/// A date this far in the past comes from a clock or a unit we do not understand.
const STALE_MS: u64 = 3_600_000;

/// The wait that the refusal asks for.
pub(crate) fn asked(head: &Head<'_>, said: &Said) -> Option<Duration> {
    retry_after(head).or(said.wait).or_else(|| in_text(&said.text)).or_else(|| reset(head))
}

/// How long nothing is left, as the headers of any answer may say. Only what counts the account: what is left of a method
/// alone is told under other names.
pub fn exhausted(head: &Head<'_>) -> Option<Duration> {
    let told = REMAINING.iter().find_map(|name| head.headers.get(HeaderName::from_static(name)));
    let left = match told {
        Some(value) => value.to_str().ok()?.trim().parse::<u64>().ok()?,
        None => structured(head.headers, ["r", "remaining"])?,
    };
    if left == 0 { reset(head) } else { None }
}

fn retry_after(head: &Head<'_>) -> Option<Duration> {
    head.headers.get_all(header::RETRY_AFTER).iter().find_map(|value| {
        let text = value.to_str().ok()?.trim();
        let date = || httpdate::parse_http_date(text).ok();
        span(&text.to_ascii_lowercase()).or_else(|| Some(until(unix_ms(date()?), head)))
    })
}

fn reset(head: &Head<'_>) -> Option<Duration> {
    let names = RESETS.iter().map(|name| HeaderName::from_static(name));
    names
        .filter_map(|name| head.headers.get(name)?.to_str().ok())
        .find_map(|value| reset_value(value.trim(), head))
        .or_else(|| structured_reset(head.headers))
}

/// Seconds left, seconds since 1970 or milliseconds since 1970: told apart by size.
fn reset_value(value: &str, head: &Head<'_>) -> Option<Duration> {
    let Ok(number) = value.parse::<f64>() else { return span(&value.to_ascii_lowercase()) };
    if (0.0..LONGEST_LEFT).contains(&number) {
        return Duration::try_from_secs_f64(number).ok();
    }
    let at_ms = match number {
        1e9..1e11 => number * 1e3,
        1e12..1e14 => number,
        _ => return None,
    } as u64;
    (at_ms + STALE_MS > base_ms(head)).then(|| until(at_ms, head))
}

/// `RateLimit: "default";r=0;t=30`, as the IETF draft has it.
fn structured_reset(headers: &HeaderMap) -> Option<Duration> {
    structured(headers, ["t", "reset"]).map(Duration::from_secs)
}

/// The parameter of either name in `RateLimit`.
fn structured(headers: &HeaderMap, names: [&str; 2]) -> Option<u64> {
    let value = headers.get("ratelimit")?.to_str().ok()?;
    let parameter = value.split([';', ',']).find_map(|part| {
        let (name, value) = part.trim().split_once('=')?;
        names.contains(&name).then_some(value.trim())
    })?;
    parameter.parse().ok()
}

fn until(at_ms: u64, head: &Head<'_>) -> Duration {
    Duration::from_millis(at_ms.saturating_sub(base_ms(head)))
}

/// The moment that dates are measured against: the provider's own clock where it shows it.
fn base_ms(head: &Head<'_>) -> u64 {
    let date =
        head.headers.get(header::DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    date.map_or(head.now_unix_ms, unix_ms)
}

fn unix_ms(time: std::time::SystemTime) -> u64 {
    time.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// The wait that prose in lower case states: "retry in 10m0s", "will reset in 60 seconds".
pub(crate) fn in_text(text: &str) -> Option<Duration> {
    MARKERS.iter().find_map(|marker| {
        text.match_indices(marker).find_map(|(at, _)| leading_span(after_fillers(&text[at + marker.len()..])))
    })
}

fn after_fillers(mut rest: &str) -> &str {
    while let Some(shorter) = FILLERS.iter().find_map(|filler| rest.strip_prefix(filler)) {
        rest = shorter;
    }
    rest
}

/// A whole text that is a span: `30`, `1.5`, `27.2ms`, `10m0s`, `5 seconds`.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (span, rest) = take_span(text)?;
    rest.trim().is_empty().then_some(span)
}

fn leading_span(text: &str) -> Option<Duration> {
    take_span(text).map(|(span, _)| span)
}

/// The span at the start of `text`, and what follows it. A number without a unit is in seconds.
fn take_span(text: &str) -> Option<(Duration, &str)> {
    let (mut total, mut rest) = take_part(text)?;
    while let Some((part, after)) = take_part(rest) {
        (total, rest) = (total.checked_add(part)?, after);
    }
    Some((total, rest))
}

fn take_part(text: &str) -> Option<(Duration, &str)> {
    let len = number_len(text.as_bytes());
    if len == 0 {
        return None;
    }
    let number: f64 = text[..len].replace([',', '_'], "").parse().ok()?;
    let after = text[len..].trim_start_matches([' ', '-']);
    let word = after.len() - after.trim_start_matches(|c: char| c.is_alphabetic()).len();
    let (unit, rest) = match unit_seconds(&after[..word]) {
        Some(unit) => (unit, &after[word..]),
        None => (1.0, &text[len..]),
    };
    Some((Duration::try_from_secs_f64(number * unit).ok()?, rest))
}

/// Seconds in a unit of time, in lower case.
fn unit_seconds(word: &str) -> Option<f64> {
    Some(match word {
        "ns" | "nanoseconds" => 1e-9,
        "us" | "µs" | "μs" | "microseconds" => 1e-6,
        "ms" | "msec" | "msecs" | "millis" | "milliseconds" => 1e-3,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Protocol;

    const NOW_MS: u64 = 1_791_460_800_000; // 2026-10-08 12:00:00 UTC

    fn header_wait(name: &'static str, value: &str) -> Option<f64> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().expect("a header value"));
        let head = Head::new(Protocol::Http, &headers, NOW_MS);
        asked(&head, &Said::nothing()).map(|wait| wait.as_secs_f64())
    }

    fn nothing_left(headers: &[(&'static str, &str)]) -> Option<u64> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a header value"));
        }
        exhausted(&Head::new(Protocol::Http, &map, NOW_MS)).map(|wait| wait.as_secs())
    }

    /// Kills: closing while something is left, without a time, or for what counts one method.
    #[test]
    fn nothing_is_left_only_until_a_time_that_is_told() {
        let check = |headers: &[_], expected| assert_eq!(nothing_left(headers), expected, "{headers:?}");
        check(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "7")], Some(7));
        check(&[("ratelimit-remaining", " 0 "), ("ratelimit-reset", "7")], Some(7));
        check(&[("ratelimit", "\"burst\";r=0;t=30")], Some(30));
        check(&[("ratelimit", "\"burst\";r=1;t=30")], None);
        check(&[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "7")], None);
        check(&[("x-ratelimit-remaining", "0")], None);
        check(&[("x-ratelimit-method-remaining", "0"), ("x-ratelimit-reset", "7")], None);
        check(&[("x-ratelimit-remaining", "none"), ("x-ratelimit-reset", "7")], None);
        check(&[], None);
    }

    #[test]
    fn headers() {
        let check = |name, value, expected| assert_eq!(header_wait(name, value), expected, "{name}: {value}");
        check("retry-after", "120", Some(120.0));
        check("retry-after", " 1.5 ", Some(1.5));
        check("retry-after", "0", Some(0.0));
        check("retry-after", "86400", Some(86_400.0));
        check("retry-after", "Thu, 08 Oct 2026 12:01:00 GMT", Some(60.0));
        check("retry-after", "Thu, 08 Oct 2026 11:00:00 GMT", Some(0.0));
        check("retry-after", "30s", Some(30.0));
        check("retry-after", "soon", None);
        check("retry-after", "-1", None);
        check("retry-after", "1e400", None);
        check("retry-after", "", None);
        check("x-ratelimit-reset", "3598", Some(3598.0));
        check("x-ratelimit-reset", "1791460805", Some(5.0));
        check("x-ratelimit-reset", "1791460805000", Some(5.0));
        check("x-ratelimit-reset", "1628696400", None);
        check("x-ratelimit-reset", "nan", None);
        check("x-ratelimit-reset-requests", "1m30s", Some(90.0));
        check("ratelimit-reset", "37", Some(37.0));
        check("ratelimit", "\"default\";r=0;t=30", Some(30.0));
        check("ratelimit", "limit=10, remaining=0, reset=7", Some(7.0));
        check("ratelimit", "t=x", None);
    }

    #[test]
    fn dates_are_measured_against_the_provider_s_clock() {
        let mut headers = HeaderMap::new();
        headers.insert("date", "Thu, 08 Oct 2026 12:00:00 GMT".parse().expect("a date"));
        headers.insert("retry-after", "Thu, 08 Oct 2026 12:00:09 GMT".parse().expect("a date"));
        let head = Head::new(Protocol::Http, &headers, NOW_MS + 3_600_000);
        assert_eq!(asked(&head, &Said::nothing()), Some(Duration::from_secs(9)));
    }

    #[test]
    fn prose() {
        let check = |text: &str, expected: Option<f64>| {
            assert_eq!(in_text(text).map(|wait| wait.as_secs_f64()), expected, "{text}");
        };
        check("call rate limit exhausted, retry in 10m0s", Some(600.0));
        check("retry in 250ms", Some(0.25));
        check("limit will reset in 60 seconds", Some(60.0));
        check("the query server is suspended for 3s", Some(3.0));
        check("wait for 2290s", Some(2290.0));
        check("please try again in 1 minute.", Some(60.0));
        check("retry after: 5", Some(5.0));
        check("try again in about 2 hours", Some(7200.0));
        check("retry in a while. wait 4 seconds", Some(4.0));
        check("retry in 5 requests", Some(5.0));
        check("try again later", None);
        check("wait", None);
    }
}
