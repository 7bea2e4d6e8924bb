//! A replica's use by the hour as one line, `<newest hour>:<count>,<count>,…`, newest first and without gaps. Each
//! replica writes its own line whole, so that telling it twice is telling it once.

use std::collections::BTreeMap;

/// More hours than a day has are not ours.
const MOST: usize = 25;

/// The line for these hours, newest first; empty if there are none.
pub(crate) fn line(own: &[(u64, u32)]) -> String {
    let Some((newest, _)) = own.first() else { return String::new() };
    let oldest = own.last().map_or(*newest, |(hour, _)| *hour);
    let count = |hour: u64| own.iter().find(|(own, _)| *own == hour).map_or(0, |(_, n)| *n);
    let counts: Vec<String> = (oldest..=*newest).rev().map(|hour| count(hour).to_string()).collect();
    format!("{newest}:{}", counts.join(","))
}

/// Adds a line to the sums by hour; `None`, and nothing is added, if it is no line of ours.
pub(crate) fn add(line: &str, sums: &mut BTreeMap<u64, u32>) -> Option<()> {
    let (newest, counts) = line.split_once(':')?;
    let newest: u64 = newest.parse().ok()?;
    let counts: Vec<u32> = counts.split(',').map(str::parse).collect::<Result<_, _>>().ok()?;
    if counts.len() > MOST || counts.len() as u64 > newest {
        return None;
    }
    for (back, n) in (0u64..).zip(counts) {
        let sum = sums.entry(newest - back).or_default();
        *sum = sum.saturating_add(n);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_add_up() {
        let mut sums = BTreeMap::new();
        assert_eq!(line(&[(100, 5), (98, 2)]), "100:5,0,2");
        add(&line(&[(100, 5), (98, 2)]), &mut sums).expect("a line");
        add("99:7", &mut sums).expect("a line");
        assert_eq!(sums, BTreeMap::from([(100, 5), (99, 7), (98, 2)]));
        assert_eq!(line(&[]), "");
    }

    #[test]
    fn what_is_no_line_adds_nothing() {
        let mut sums = BTreeMap::new();
        for text in ["", "100", "100:", "x:1", "100:1,-1", "1:1,1,1", "100:1,99999999999"] {
            assert_eq!(add(text, &mut sums), None, "{text:?}");
        }
        assert!(sums.is_empty());
    }
}
