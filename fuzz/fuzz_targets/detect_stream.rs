//! Any body, cut anywhere: no panic, and the same judgement and items as in one piece.
//! The first three bytes choose the status, the protocol and the size of the chunks.
#![no_main]

use std::sync::LazyLock;

use detect::{Head, Item, Judgement, Protocol, Rules};
use http::HeaderMap;
use libfuzzer_sys::fuzz_target;

static RULES: LazyLock<Rules> = LazyLock::new(Rules::builtin);

const STATUSES: [Option<u16>; 6] = [None, Some(200), Some(400), Some(403), Some(429), Some(503)];

fn judged<'a>(head: &Head<'_>, chunks: impl Iterator<Item = &'a [u8]>) -> (Judgement, Vec<Item>) {
    let mut stream = RULES.stream();
    let mut certain = None;
    for chunk in chunks {
        let now = stream.push(&RULES, head, chunk);
        assert!(certain.is_none() || certain == now, "what was certain does not change");
        certain = now;
    }
    let judgement = stream.finish(&RULES, head);
    (judgement, stream.items().to_vec())
}

fuzz_target!(|input: &[u8]| {
    let [status, protocol, size, body @ ..] = input else { return };
    let headers = HeaderMap::new();
    let protocol = if protocol % 2 == 0 { Protocol::Http } else { Protocol::Ws };
    let status = STATUSES[usize::from(*status) % STATUSES.len()];
    let head = Head { status, ..Head::new(protocol, &headers, 1_791_460_800_000) };
    let whole = judged(&head, std::iter::once(body));
    let pieces = judged(&head, body.chunks(usize::from(*size) + 1));
    assert_eq!(whole, pieces);
    for item in &whole.1 {
        assert!(body.get(item.span.clone()).is_some(), "a span lies in the body");
        assert!(item.id.as_ref().is_none_or(|id| item.span.start <= id.start && id.end <= item.span.end));
    }
});
