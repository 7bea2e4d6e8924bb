//! The record as a line of text of at most 200 bytes. Decides the format and its version; a line it does not
//! understand is refused whole. Levels are kept to a thousandth of a request, times as distances from the newest.

use super::record::{Doubt, Mark, Rise};
use super::{Level, Trial};
use crate::Malformed;

const FIELDS: usize = 25;
/// What stands for an infinite level.
const NONE: &str = "-";

impl Level {
    /// The first field of a line of this law.
    pub const VERSION: &'static str = "2";

    /// The record as one line without blanks.
    #[must_use]
    pub fn encode(&self) -> String {
        let at = self.since.max(self.settled).max(self.hit).max(self.next).max(self.depth_next);
        let ago = |time: u64| if time == 0 { NONE.to_owned() } else { short(at.saturating_sub(time)) };
        let milli = |x: f64| if x.is_finite() { short((x * 1000.0).round() as u64) } else { NONE.to_owned() };
        let trial = match self.trial {
            Trial::None => String::new(),
            Trial::Level(more) => milli(more),
        };
        let doubt = self.doubt.map_or([String::new(), String::new(), String::new()], |doubt| {
            [milli(doubt.level), milli(doubt.refused), ago(doubt.sent_at)]
        });
        let [doubt_level, doubt_refused, doubt_sent] = doubt;
        let rise = &self.rise;
        let fields = [
            Self::VERSION.to_owned(),
            short(at),
            short(self.decisions),
            short(self.window_ms),
            milli(self.level),
            milli(self.refused),
            milli(self.margin * 1000.0),
            milli(self.depth * 1000.0),
            trial,
            short(u64::from(self.run)),
            ago(self.since),
            ago(self.settled),
            ago(self.next),
            milli(self.debt),
            ago(self.depth_next),
            short(self.depth_hold as u64),
            ago(self.hit),
            ago(self.confirmed),
            doubt_level,
            doubt_refused,
            doubt_sent,
            [milli(rise.base), milli(rise.top), milli(rise.good)].join("."),
            ago(rise.at),
            short(u64::from(rise.falses)),
            ago(rise.false_at),
            self.marks
                .map(|m| [short(m.used.round() as u64), short(u64::from(m.times)), ago(m.at)].join("."))
                .join("."),
        ];
        let stated = (self.stated > 0.0).then(|| short(self.stated.round() as u64));
        fields.into_iter().chain(stated).collect::<Vec<_>>().join("|")
    }

    /// Reads back what [`Level::encode`] wrote.
    ///
    /// # Errors
    /// [`Malformed`] for another version, a missing or superfluous field, a window of 0 or a level that is no number.
    pub fn decode(line: &str) -> Result<Self, Malformed> {
        let parts: Vec<&str> = line.split('|').collect();
        let [version, fields @ ..] = parts.as_slice() else { return Err(Malformed) };
        // What is stated stands behind the others, if anything is.
        let (fields, stated) = fields.split_at_checked(FIELDS).ok_or(Malformed)?;
        let at = long(fields[0])?;
        let time = |i: usize| if fields[i] == NONE { Ok(0) } else { Ok(at.saturating_sub(long(fields[i])?)) };
        let rise: Vec<&str> = fields[20].split('.').collect();
        let [base, top, good] = rise.as_slice() else { return Err(Malformed) };
        let level = Self {
            decisions: long(fields[1])?,
            window_ms: long(fields[2])?,
            level: milli(fields[3])?,
            refused: milli(fields[4])?,
            margin: milli(fields[5])? / 1000.0,
            depth: milli(fields[6])? / 1000.0,
            clipped: false,
            trial: trial(fields[7])?,
            run: narrow(fields[8])?,
            since: time(9)?,
            settled: time(10)?,
            next: time(11)?,
            debt: milli(fields[12])?,
            depth_next: time(13)?,
            depth_hold: long(fields[14])? as f64,
            hit: time(15)?,
            lasts: false,
            confirmed: time(16)?,
            doubt: doubt(&fields[17..20], at)?,
            rise: Rise {
                base: milli(base)?,
                top: milli(top)?,
                at: time(21)?,
                falses: narrow(fields[22])?,
                false_at: time(23)?,
                good: milli(good)?,
            },
            marks: marks(fields[24], at)?,
            stated: self::stated(stated)?,
        };
        let sound = *version == Self::VERSION && level.window_ms > 0 && level.level.is_finite();
        if sound { Ok(level) } else { Err(Malformed) }
    }
}

fn stated(fields: &[&str]) -> Result<f64, Malformed> {
    match fields {
        [] => Ok(0.0),
        [limit] => long(limit).map(|limit| limit as f64),
        _ => Err(Malformed),
    }
}

fn trial(field: &str) -> Result<Trial, Malformed> {
    match field {
        "" => Ok(Trial::None),
        more => milli(more).map(Trial::Level),
    }
}

fn doubt(fields: &[&str], at: u64) -> Result<Option<Doubt>, Malformed> {
    match fields {
        ["", "", ""] => Ok(None),
        [level, refused, sent] => {
            let (level, refused) = (milli(level)?, milli(refused)?);
            let margin = (1.0 - level / refused).clamp(0.0, 0.08);
            Ok(Some(Doubt { level, refused, margin, sent_at: at.saturating_sub(long(sent)?) }))
        }
        _ => Err(Malformed),
    }
}

/// A number to the base of 36: half as long.
fn short(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.iter().rev().collect();
        }
    }
}

fn long(field: &str) -> Result<u64, Malformed> {
    u64::from_str_radix(field, 36).map_err(|_| Malformed)
}

fn narrow(field: &str) -> Result<u32, Malformed> {
    u32::from_str_radix(field, 36).map_err(|_| Malformed)
}

fn milli(field: &str) -> Result<f64, Malformed> {
    if field == NONE { Ok(f64::INFINITY) } else { Ok(long(field)? as f64 / 1000.0) }
}

fn marks(field: &str, newest: u64) -> Result<[Mark; 3], Malformed> {
    let parts: Vec<&str> = field.split('.').collect();
    let mark = |part: &[&str]| match part {
        [used, times, ago] => {
            let at = if *ago == NONE { 0 } else { newest.saturating_sub(long(ago)?) };
            Ok(Mark { used: long(used)? as f64, times: narrow(times)?, at })
        }
        _ => Err(Malformed),
    };
    let marks = parts.chunks(3).map(mark).collect::<Result<Vec<_>, _>>()?;
    marks.try_into().map_err(|_| Malformed)
}
