//! The reference traces: what a hit, a quiet hour and a provider with a hidden limit make of a ceiling.

use aimd::{Evidence, Params, Record, Source, Witness, decrease};

const MINUTE: u64 = 60_000;
const START: u64 = 1_700_000_040_000;

/// One window of a minute, as the predecessor had it.
fn minute() -> Params {
    Params { window_ms: Some(MINUTE), ..Params::default() }
}

/// A client's request sent and refused at `now`.
fn hit(record: &mut Record, params: &Params, observed: &[u64], now: u64) -> Option<u64> {
    let evidence =
        Evidence { sent_at: now, observed, used: observed, named_window_ms: None, witness: Witness::Client };
    let cut = decrease(record, params, &evidence, now)?;
    *record = cut.record;
    Some(cut.to)
}

#[test]
fn the_predecessors_trace() {
    let params = minute();
    let mut record = Record::new(&params);
    assert_eq!(record.spans[0].ceiling(&params, START), None);
    assert_eq!(hit(&mut record, &params, &[20], START), Some(10));
    assert_eq!(record.spans[0].ceiling(&params, START + 3 * MINUTE), Some(13));
    assert_eq!(hit(&mut record, &params, &[8], START + 3 * MINUTE + 1), Some(4));
    assert_eq!(record.spans[0].estimate.map(|e| e.step), Some(1));
}

/// Kills: a step of ⌈new / 10⌉, a base of observed alone, growth without its bound.
#[test]
fn a_hidden_limit_of_fifty_is_a_saw_tooth_from_25_to_51() {
    let params = minute();
    let mut record = Record::new(&params);
    let mut hits = Vec::new();
    for window in 0..80 {
        let now = START + window * MINUTE;
        let ceiling = record.spans[0].ceiling(&params, now).unwrap_or(u64::MAX);
        let sent = ceiling.min(100);
        record.served(&[sent.min(50)], now);
        if sent > 50 {
            let cut = hit(&mut record, &params, &[50], now).expect("one window has passed");
            hits.push((window, ceiling, cut));
        }
    }
    let settled = &hits[1..];
    assert!(settled.iter().all(|(_, before, after)| (*before, *after) == (51, 25)), "{hits:?}");
    assert!(settled.windows(2).all(|pair| pair[1].0 - pair[0].0 == 13), "{hits:?}");
}

#[test]
fn an_idle_week_does_not_open_the_gate() {
    let params = minute();
    let mut record = Record::new(&params);
    hit(&mut record, &params, &[500], START);
    let week = START + 7 * 24 * 60 * MINUTE;
    assert_eq!(record.spans[0].ceiling(&params, week), Some(500));
    record.served(&[300], START + MINUTE);
    assert_eq!(record.spans[0].ceiling(&params, week), Some(600));
    assert_eq!(record.spans[0].next_growth(&params, week), None);
    assert_eq!(record.spans[0].next_growth(&params, START), Some(START + MINUTE));
}

#[test]
fn a_lone_hit_after_busy_use_keeps_an_eighth_of_it() {
    let params = minute();
    let mut record = Record::new(&params);
    record.served(&[400], START);
    assert_eq!(hit(&mut record, &params, &[6], START + 10 * MINUTE), Some(50));
    let mut quiet = Record::new(&params);
    quiet.served(&[400], START);
    assert_eq!(hit(&mut quiet, &params, &[6], START + 61 * MINUTE), Some(3));
}

fn check_no_decrease(why: &str, mut record: Record, evidence: Evidence<'_>, now: u64) {
    let params = minute();
    assert_eq!(decrease(&record, &params, &evidence, now), None, "{why}");
    let proof = Evidence {
        sent_at: now,
        observed: &[20],
        used: &[21],
        named_window_ms: None,
        witness: Witness::Client,
    };
    record.spans[0].estimate = None;
    assert!(decrease(&record, &params, &proof, now).is_some(), "{why}: the record itself bars nothing");
}

#[test]
fn without_evidence_no_decrease() {
    let params = minute();
    let fresh = Record::new(&params);
    let mut cut = fresh.clone();
    hit(&mut cut, &params, &[20], START);
    let later = START + 2 * MINUTE;
    let of = |observed, sent_at, witness| Evidence {
        sent_at,
        observed,
        used: observed,
        named_window_ms: None,
        witness,
    };
    check_no_decrease("fewer than five seen", fresh.clone(), of(&[4], START, Witness::Client), START);
    check_no_decrease("a probe", fresh.clone(), of(&[20], START, Witness::Probe), START);
    check_no_decrease("a quota", fresh.clone(), of(&[20], START, Witness::Quota), START);
    check_no_decrease("an overflow", fresh.clone(), of(&[20], START, Witness::Overflow), START);
    check_no_decrease("no measure of use", fresh, of(&[], START, Witness::Client), START);
    check_no_decrease("idle account", cut.clone(), of(&[0], later, Witness::Client), later);
    check_no_decrease(
        "cooling",
        cut.clone(),
        of(&[9], later - MINUTE - 1, Witness::Client),
        later - MINUTE - 1,
    );
    // Sent before the cut and heard long after it. Kills `sent_at < last`, and cooldown alone.
    check_no_decrease("same episode", cut.clone(), of(&[9], START, Witness::Client), later);
    let proof = of(&[9], START + 1, Witness::Client);
    assert_eq!(decrease(&cut, &params, &proof, START + MINUTE).map(|d| d.to), Some(4));
}

#[test]
fn three_windows_are_cut_one_at_a_time() {
    let params = Params::default();
    let mut record = Record::new(&params);
    record.served(&[10, 60, 200], START);
    assert_eq!(hit(&mut record, &params, &[10, 50, 190], START + 100), Some(5));
    let ceilings = |record: &Record| -> Vec<Option<u64>> {
        record.spans.iter().map(|span| span.ceiling(&params, START + 100)).collect()
    };
    assert_eq!(ceilings(&record), [Some(5), None, None]);
    // The same episode must not lower the longer windows either.
    assert_eq!(hit(&mut record, &params, &[5, 60, 200], START + 100), None);
    assert_eq!(hit(&mut record, &params, &[5, 80, 200], START + 1200), Some(40));
    assert_eq!(ceilings(&record), [Some(5), Some(40), None]);
}

#[test]
fn windows_are_frozen_with_the_first_estimate() {
    let params = minute();
    let other = Params { window_ms: Some(5_000), ..params };
    let mut record = Record::new(&params).or_fresh(&other);
    assert_eq!(record.spans[0].window_ms, 5_000);
    hit(&mut record, &other, &[20], START);
    assert_eq!(record.or_fresh(&params).spans[0].window_ms, 5_000);
}

#[test]
fn a_record_survives_the_store() {
    let params = Params::default();
    let mut record = Record::new(&params);
    record.served(&[10, 60, 200], START);
    hit(&mut record, &params, &[10, 60, 200], START + 5);
    record.served(&[4, 60, 200], START + 900);
    let read = Record::decode(&record.encode()).expect("our own line");
    assert_eq!(read.spans[0].estimate.map(|e| e.source), Some(Source::Stored));
    record.spans[0].estimate.as_mut().expect("just hit").source = Source::Stored;
    assert_eq!(read, record);
    assert!(record.encode().len() < 300, "{}", record.encode());
}

#[test]
fn lines_of_others_are_refused() {
    let good = Record::new(&minute()).encode();
    assert!(Record::decode(&good).is_ok());
    for bad in [
        "".to_string(),
        "1".to_string(),
        good.replacen('1', "2", 1),
        good.replace("60000", "0"),
        good.replace("60000", "-5"),
        good.replace(".0", ""),
        format!("{good},1,2,3"),
        format!("{good},1,2,3,4,5,6,x"),
        format!("{good}|{}", &good[2..]),
    ] {
        assert!(Record::decode(&bad).is_err(), "{bad}");
    }
}

#[test]
fn replicas_learn_from_each_other() {
    let params = minute();
    let (mut mine, mut theirs) = (Record::new(&params), Record::new(&params));
    mine.served(&[30], START);
    hit(&mut mine, &params, &[20], START);
    theirs.served(&[45], START + MINUTE);
    hit(&mut theirs, &params, &[40], START + 2 * MINUTE);
    let (mut both, mut also) = (mine.clone(), theirs.clone());
    assert!(both.merge(&theirs) && also.merge(&mine));
    // The later cut wins, whoever merges; the larger use as well. Kills keeping one's own.
    assert_eq!(both, also);
    assert_eq!(both.spans[0].ceiling(&params, START + 2 * MINUTE), Some(20));
    assert_eq!(both.spans[0].clean.largest(START + 2 * MINUTE), 45);
    assert!(!both.merge(&Record::new(&Params::default())));
}
