//! Dates as RFC 3339 writes them. Decides what instant a text names; never whether it is over.

/// Unix milliseconds of `2027-01-31T00:00:00Z`, `2027-01-31T01:30:00.5+01:30`, or the beginning of the day
/// `2027-01-31` in UTC. Instants before 1970 are 0.
pub(super) fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    if !text.is_ascii() {
        return None;
    }
    let date = text.get(..10)?;
    let days = days(number(date, 0, 4)?, number(date, 5, 7)?, number(date, 8, 10)?)?;
    if date.as_bytes()[4] != b'-' || date.as_bytes()[7] != b'-' {
        return None;
    }
    let seconds = match text.get(10..)? {
        "" => 0,
        rest => time(rest)?,
    };
    Some(u64::try_from((days * 86_400_000).saturating_add(seconds)).unwrap_or(0))
}

/// Milliseconds of the day of `Thh:mm:ss[.fraction](Z|±hh:mm)`, in UTC.
fn time(text: &str) -> Option<i64> {
    let separators = text.get(..9)?.as_bytes();
    if !matches!(separators[0], b'T' | b't' | b' ') || separators[3] != b':' || separators[6] != b':' {
        return None;
    }
    let (hours, minutes, seconds) = (number(text, 1, 3)?, number(text, 4, 6)?, number(text, 7, 9)?);
    // 60 is a leap second.
    if hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let rest = text.get(9..)?;
    let digits = rest.strip_prefix('.').map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    if rest.starts_with('.') && digits == 0 {
        return None;
    }
    let millis = rest
        .get(1..1 + digits.min(3))
        .filter(|_| digits > 0)
        .map_or(Some(0), |fraction| format!("{fraction:0<3}").parse::<i64>().ok())?;
    let zone = rest.get(if digits > 0 { 1 + digits } else { 0 }..)?;
    Some(((hours * 60 + minutes - offset(zone)?) * 60 + seconds) * 1000 + millis)
}

/// Minutes east of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = (number(zone, 1, 3)?, number(zone, 4, 6)?);
    let fits = zone.len() == 6 && zone.as_bytes()[3] == b':' && hours < 24 && minutes < 60;
    fits.then_some(sign * (hours * 60 + minutes))
}

fn number(text: &str, from: usize, to: usize) -> Option<i64> {
    let digits = text.get(from..to)?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Days since 1970 of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let lengths = [31, if leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::try_from(month - 1).ok()?;
    if year < 1 || day < 1 || day > *lengths.get(before)? {
        return None;
    }
    let past = year - 1;
    let leaps = past / 4 - past / 100 + past / 400;
    // 719162 days lie between the first day of year 1 and that of 1970.
    Some(past * 365 + leaps - 719_162 + lengths[..before].iter().sum::<i64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kills: leap years, offsets of the wrong sign, days that do not exist.
    #[test]
    fn dates_are_instants() {
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1970-01-02", Some(86_400_000)),
            ("2000-02-29T00:00:00Z", Some(951_782_400_000)),
            ("2027-01-31T00:00:00Z", Some(1_801_353_600_000)),
            ("2027-01-31t01:30:00.5+01:30", Some(1_801_353_600_500)),
            ("2027-01-30 23:00:00-01:00", Some(1_801_353_600_000)),
            ("2026-11-30T07:36:14.123456Z", Some(1_796_024_174_123)),
            ("1969-12-31T00:00:00Z", Some(0)),
            ("2027-02-29T00:00:00Z", None),
            ("2100-02-29", None),
            ("2027-13-01", None),
            ("2027-00-01", None),
            ("2027-01-32", None),
            ("2027-01-31T24:00:00Z", None),
            ("2027-01-31T00:00:00", None),
            ("2027-01-31T00:00:00.Z", None),
            ("2027-01-31T00:00:00+0100", None),
            ("2027/01/31", None),
            ("27-01-31", None),
            ("tomorrow", None),
            ("", None),
            ("2027-01-31T00:00:0é", None),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
