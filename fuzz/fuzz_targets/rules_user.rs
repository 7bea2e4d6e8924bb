//! Any file of rules: it is refused with a line and a field, or it judges without a panic.
#![no_main]

use detect::{Head, Protocol, Rules};
use http::HeaderMap;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Rules::with_user(text, "fuzz.json") {
        Err(error) => assert!(error.line >= 1 && !error.field.is_empty() && !error.message.is_empty()),
        Ok(rules) => {
            let headers = HeaderMap::new();
            let head = Head { status: Some(429), ..Head::new(Protocol::Http, &headers, 0) };
            let judgement = rules.judge(&head, br#"{"error":{"code":-32005,"message":"rate limit exceeded"}}"#);
            assert!(judgement.rule.index() < rules.len());
        }
    }
});
