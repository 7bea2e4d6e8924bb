//! What clients are told of logs across losses, a step at a time.

use bytes::Bytes;

use super::*;
use crate::block::tests::hash;
use crate::ids::SubscriptionId;
use crate::log::tests::json;

/// A block: its height and its branch.
type At = (u64, u64);

enum Step {
    /// The node's head on this parent.
    Head(At, At),
    Log(At),
    Removed(At),
    Lost,
    /// Another node serves, at this height.
    Resume(u64),
    /// The block that is wanted is this.
    Block(At),
    /// The range that is wanted has these logs.
    Read(u64, u64, Vec<At>),
}
use Step::{Block as Fetched, Head, Log as Told, Lost, Read, Removed, Resume};

fn hash_of((number, branch): At) -> Hash {
    hash(number * 10 + branch)
}

fn block(at: At, parent: At) -> Block {
    Block { number: at.0, hash: hash_of(at), parent: hash_of(parent) }
}

fn log(at: At, removed: bool) -> Log {
    let json = Bytes::from(json(at.0, at.0 * 10 + at.1, 0, removed));
    Log::told(&json, &Payload::of_result(&json)).expect("a log")
}

fn take(logs: &mut Logs, step: Step, out: &mut Vec<Payload>) -> Result<(), Reason> {
    match step {
        Head(at, parent) => logs.head(&block(at, parent), out),
        Told(at) => logs.tell(log(at, false), out),
        Removed(at) => logs.tell(log(at, true), out),
        Lost => {
            logs.lost();
            Ok(())
        }
        Resume(height) => logs.resume(Some(height), out),
        Fetched(at) => {
            assert_eq!(logs.wants(), Some(Want::Block(at.0)));
            logs.fetched(&block(at, (at.0 - 1, at.1)), out)
        }
        Read(from, to, read) => {
            assert_eq!(logs.wants(), Some(Want::Logs { from, to }));
            logs.read(read.into_iter().map(|at| log(at, false)).collect(), out)
        }
    }
}

fn written(payload: &Payload) -> String {
    let mut out = Vec::new();
    payload.write(SubscriptionId(1), &mut out);
    let told: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    let result = &told["params"]["result"];
    let sign = if result["removed"] == true { '-' } else { '+' };
    let hash = result["blockHash"].as_str().and_then(|text| text.get(2..)).expect("a hash");
    format!("{sign}{}", u64::from_str_radix(hash, 16).expect("a hash of ours"))
}

/// A group that begins at 100, and what becomes of it; blocks are written as their height and branch.
fn check(steps: Vec<Step>, expected: &[&str]) {
    let (mut logs, mut out) = (Logs::default(), Vec::new());
    logs.begin(Some(100));
    steps.into_iter().for_each(|step| take(&mut logs, step, &mut out).expect("within its bounds"));
    assert!(!logs.is_filling(), "{logs:?}");
    assert_eq!(out.iter().map(written).collect::<Vec<_>>(), expected);
}

/// Three blocks of branch 0, each with a log, of which this node tells all.
fn begun() -> Vec<Step> {
    let of = |number| [Head((number, 0), (number - 1, 0)), Told((number, 0))];
    (101..=103).flat_map(of).collect()
}

fn then(steps: Vec<Step>) -> Vec<Step> {
    begun().into_iter().chain(steps).collect()
}

// Kills: trusting a block that was read after a reorganisation whose telling was lost with the socket.
#[test]
fn a_reorganisation_that_only_the_answers_showed_is_told_by_the_next_node() {
    let reorganised = vec![
        Lost,
        Resume(104),
        Fetched((103, 0)),
        Read(103, 104, vec![(103, 0), (104, 0)]),
        Fetched((104, 1)),
        Lost,
        Resume(105),
        Fetched((103, 1)),
        Fetched((102, 0)),
        Read(102, 105, vec![(102, 0), (103, 1), (105, 1)]),
        Fetched((105, 1)),
    ];
    check(then(reorganised), &["+1010", "+1020", "+1030", "+1040", "-1040", "-1030", "+1031", "+1051"]);
}

// Kills: reading again what the node itself has confirmed.
#[test]
fn what_the_node_confirmed_is_not_read_again() {
    let confirmed = vec![
        Lost,
        Resume(104),
        Fetched((103, 0)),
        Read(103, 104, vec![(103, 0), (104, 0)]),
        Fetched((104, 0)),
        Head((105, 0), (104, 0)),
        Lost,
        Resume(105),
        Fetched((105, 0)),
        Read(105, 105, vec![]),
        Fetched((105, 0)),
    ];
    check(then(confirmed), &["+1010", "+1020", "+1030", "+1040"]);
}

// Kills: heads and logs that waited told apart from each other: a head of the old branch takes away a log of the new.
#[test]
fn what_waited_is_told_in_its_order() {
    let waited = vec![
        Lost,
        Resume(103),
        Head((104, 0), (103, 0)),
        Told((104, 0)),
        Removed((104, 0)),
        Head((104, 1), (103, 0)),
        Told((104, 1)),
        Fetched((103, 0)),
        Read(103, 103, vec![(103, 0)]),
        Fetched((103, 0)),
    ];
    check(then(waited), &["+1010", "+1020", "+1030", "+1040", "-1040", "+1041"]);
}

// Kills: a head of another branch that is ignored because the lost node had told of higher ones.
#[test]
fn a_node_that_is_behind_and_turns_elsewhere_takes_logs_away() {
    let behind =
        vec![Lost, Resume(101), Head((102, 1), (101, 0)), Head((103, 1), (102, 1)), Fetched((101, 0))];
    check(then(behind), &["+1010", "+1020", "+1030", "-1020", "-1030"]);
}

// Kills: half a reorganisation taken for none, because the blocks whose logs are gone still count as told.
#[test]
fn half_a_reorganisation_is_undone_by_a_node_that_had_none() {
    let half = vec![
        Removed((103, 0)),
        Removed((102, 0)),
        Lost,
        Resume(103),
        Fetched((101, 0)),
        Read(102, 103, vec![(102, 0), (103, 0)]),
        Fetched((103, 0)),
    ];
    check(then(half), &["+1010", "+1020", "+1030", "-1030", "-1020", "+1020", "+1030"]);
    let other = vec![
        Told((102, 1)),
        Lost,
        Resume(103),
        Fetched((102, 0)),
        Fetched((101, 0)),
        Read(101, 103, vec![(101, 0), (102, 0), (103, 0)]),
        Fetched((103, 0)),
    ];
    check(then(other), &["+1010", "+1020", "+1030", "-1020", "+1021", "-1021", "+1020"]);
}

// Kills: reading only what the group is owed when a reorganisation told logs of before that.
#[test]
fn what_a_reorganisation_told_of_before_the_start_is_checked_too() {
    let before = vec![
        Head((99, 0), (98, 0)),
        Head((100, 0), (99, 0)),
        Told((100, 0)),
        Removed((100, 0)),
        Head((100, 1), (99, 0)),
        Told((100, 1)),
        Lost,
        Resume(101),
        Fetched((100, 1)),
        Read(100, 101, vec![(100, 1), (101, 1)]),
        Fetched((101, 2)),
        Removed((101, 1)),
        Removed((100, 1)),
        Head((100, 2), (99, 0)),
        Told((100, 2)),
        Lost,
        Resume(102),
        Fetched((99, 0)),
        Read(100, 102, vec![(100, 3), (102, 3)]),
        Fetched((102, 3)),
    ];
    check(
        before,
        &["+1000", "-1000", "+1001", "+1011", "-1011", "-1001", "+1002", "-1002", "+1003", "+1023"],
    );
}

// Kills: a block that was read again and counts as told, although another stood there meanwhile.
#[test]
fn a_block_that_was_read_again_is_not_certain() {
    let again = vec![
        Lost,
        Resume(103),
        Fetched((103, 1)),
        Fetched((102, 0)),
        Read(102, 103, vec![(102, 2), (103, 2)]),
        Fetched((103, 2)),
        Lost,
        Resume(103),
        Fetched((102, 0)),
        Read(102, 103, vec![(102, 0), (103, 0)]),
        Fetched((103, 0)),
    ];
    let first = ["+1010", "+1020", "+1030", "-1030", "-1020", "+1022", "+1032"];
    check(then(again), &[first.as_slice(), &["-1032", "-1022", "+1020", "+1030"]].concat());
}

// Kills: a reorganisation that was seen before a second loss and is forgotten because the next node is behind.
#[test]
fn a_reorganisation_outlasts_a_second_loss() {
    let twice = vec![
        Lost,
        Resume(103),
        Fetched((103, 1)),
        Lost,
        Resume(101),
        Fetched((101, 0)),
        Read(101, 101, vec![(101, 0)]),
        Fetched((101, 0)),
    ];
    check(then(twice), &["+1010", "+1020", "+1030", "-1030", "-1020"]);
}

/// A group that is told so many blocks with so many logs each, and whose next node has another chain from the first on.
fn reorganised(blocks: u64, logs_each: u64) -> Result<(), Reason> {
    let (mut logs, mut out) = (Logs::default(), Vec::new());
    logs.begin(Some(100));
    for number in 101..=100 + blocks {
        logs.head(&block((number, 0), (number - 1, 0)), &mut out)?;
        for index in 0..logs_each {
            let json = Bytes::from(json(number, number * 10, index, false));
            logs.tell(Log::told(&json, &Payload::of_result(&json)).expect("a log"), &mut out)?;
        }
    }
    logs.lost();
    logs.resume(Some(100 + blocks), &mut out)?;
    while let Some(Want::Block(number)) = logs.wants() {
        logs.fetched(&block((number, 1), (number - 1, 1)), &mut out)?;
    }
    Ok(())
}

// Kills: logs that are forgotten, or blocks, and stay with clients although they have left the chain.
#[test]
fn a_reorganisation_deeper_than_memory_is_owned_up_to() {
    for (blocks, logs_each, outcome) in
        [(128, 1, Ok(())), (129, 1, Err(Reason::TooDeep)), (4, 256, Ok(())), (4, 257, Err(Reason::TooDeep))]
    {
        assert_eq!(reorganised(blocks, logs_each), outcome, "{blocks} {logs_each}");
    }
}
