//! The whole collection of recorded answers, each judged as its label says.
use std::collections::BTreeMap;

use detect::{Head, Protocol, Rules};
use http::HeaderMap;
use serde_json::Value;

#[test]
fn every_recorded_answer_means_what_it_says() {
    let rules = Rules::builtin();
    let mut wrong = 0;
    for line in include_str!("data/signals.jsonl").lines() {
        let case: Value = serde_json::from_str(line).expect("a line of JSON");
        if case["body_encoding"].is_string() {
            continue;
        }
        let mut headers = HeaderMap::new();
        if let Some(map) = case["headers"].as_object() {
            for (k, v) in map {
                headers.insert(k.parse::<http::HeaderName>().unwrap(), v.as_str().unwrap().parse().unwrap());
            }
        }
        let body = case["body"].as_str().unwrap_or("");
        let head = Head {
            provider: case["provider"].as_str(),
            method: case["method"].as_str(),
            status: case["http_status"].as_u64().map(|s| s as u16),
            ws_close: case["ws_close_code"].as_u64().map(|c| (c as u16, body)),
            ..Head::new(
                if case["protocol"] == "ws" { Protocol::Ws } else { Protocol::Http },
                &headers,
                1_791_460_800_000,
            )
        };
        let j = rules.judge(&head, body.as_bytes());
        let class = match j.verdict.as_str() {
            "ok" | "client_fault" => "pass_through",
            "upstream_fault" => "retry_elsewhere",
            v => v,
        };
        let mut good = vec![case["expect"].as_str().unwrap()];
        good.extend(case["also_ok"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()));
        if !good.contains(&class) {
            wrong += 1;
            println!("{} {:?} got {} by {} :: {}", case["id"], good, class, rules.name(j.rule), body);
        }
    }
    let _: BTreeMap<u8, u8> = BTreeMap::new();
    assert_eq!(wrong, 0);
}
