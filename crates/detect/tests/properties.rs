//! What holds for every answer: payloads never speak, chunks never matter, nothing panics.

use detect::line::Line;
use detect::{Head, Item, Judgement, Protocol, Rules, Stream, Verdict};
use http::HeaderMap;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Milliseconds since 1970: 2026-10-08 12:00:00 UTC.
const NOW_MS: u64 = 1_791_460_800_000;

/// The bodies of the collection, as they were received.
fn recorded() -> Vec<Vec<u8>> {
    let body = |line| {
        let line: Line<'_> = serde_json::from_str(line).expect("an answer");
        line.bytes().expect("base64 where it says so").into_owned()
    };
    include_str!("data/signals.jsonl").lines().map(body).collect()
}

/// A rule table is costly to compile: one for all cases of a test.
fn rules() -> &'static Rules {
    static RULES: std::sync::OnceLock<Rules> = std::sync::OnceLock::new();
    RULES.get_or_init(Rules::builtin)
}

fn judged(protocol: Protocol, status: Option<u16>, body: &[u8]) -> Judgement {
    let headers = HeaderMap::new();
    let head = Head { status, method: Some("eth_call"), ..Head::new(protocol, &headers, NOW_MS) };
    rules().judge(&head, body)
}

/// Every way in which text that others chose may be in an answer, without being what the provider says.
fn quoting(text: &str) -> Vec<(Protocol, Value, Verdict)> {
    let (http, ws) = (Protocol::Http, Protocol::Ws);
    let error = |code: i64, message: String, data: Value| json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message, "data": data}});
    let data = "0x08c379a0";
    vec![
        (http, error(3, format!("execution reverted: {text}"), json!(data)), Verdict::ClientFault),
        (http, error(-32000, format!("execution reverted: {text}"), json!(data)), Verdict::ClientFault),
        (http, error(-32005, format!("execution reverted: {text}"), json!(data)), Verdict::ClientFault),
        (http, error(3, text.to_owned(), json!(data)), Verdict::ClientFault),
        (http, error(-32000, text.to_owned(), json!(data)), Verdict::ClientFault),
        (
            http,
            error(-32015, "VM execution error.".into(), json!(format!("Reverted {text}"))),
            Verdict::ClientFault,
        ),
        (
            http,
            error(-32000, format!("VM Exception while processing transaction: revert {text}"), json!(null)),
            Verdict::ClientFault,
        ),
        (http, json!({"jsonrpc": "2.0", "id": 1, "result": text}), Verdict::Ok),
        (http, json!({"jsonrpc": "2.0", "id": text, "result": "0x1"}), Verdict::Ok),
        (
            http,
            json!({"jsonrpc": "2.0", "id": 1, "result": {"error": text, "message": text, "code": 429}}),
            Verdict::Ok,
        ),
        (
            http,
            json!({"jsonrpc": "2.0", "id": 1, "result": [{"error": {"code": 429, "message": text}}]}),
            Verdict::Ok,
        ),
        (http, json!({"jsonrpc": "2.0", "id": 1, "error": null, "result": text}), Verdict::Ok),
        (
            ws,
            json!({"jsonrpc": "2.0", "method": "eth_subscription", "params": {"subscription": "0x1", "result": text}}),
            Verdict::Ok,
        ),
        (ws, json!({"jsonrpc": "2.0", "method": text, "params": {"result": {"message": text}}}), Verdict::Ok),
        (
            http,
            json!({"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [{"data": text}]}),
            Verdict::UpstreamFault,
        ),
        (
            http,
            error(-32603, "Internal error".into(), json!({"request": {"params": [text]}, "message": text})),
            Verdict::UpstreamFault,
        ),
        (http, error(-32000, "nonce too low".into(), json!({"tx": text})), Verdict::ClientFault),
    ]
}

fn check_quotes(text: &str) {
    for (protocol, body, expected) in quoting(text) {
        // Texts that happen to name an unknown block are about a block.
        let found =
            judged(protocol, (protocol == Protocol::Http).then_some(200), body.to_string().as_bytes());
        let unknown_block =
            text.to_lowercase().contains("unknown block") && found.verdict == Verdict::Capability;
        assert!(
            found.verdict == expected || unknown_block,
            "{} by {} in {body}",
            found.verdict.as_str(),
            rules().name(found.rule)
        );
        assert!(!found.verdict.is_limit() && found.wait.is_none() && found.window.is_none());
    }
}

/// Kills: limits asked before reverts, a search in `result` or `data`, a default that is a limit.
#[test]
fn no_text_of_the_collection_is_a_hit_when_it_is_only_quoted() {
    for bytes in recorded() {
        let text = String::from_utf8_lossy(&bytes);
        check_quotes(&text);
        let message = serde_json::from_str::<Value>(&text)
            .ok()
            .and_then(|body| Some(body["error"]["message"].as_str()?.to_owned()));
        check_quotes(message.as_deref().unwrap_or("rate limit exceeded"));
    }
}

/// One answer of the collection, or something like it, cut and patched.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let one = prop::sample::select(recorded());
    let success = (0usize..6000).prop_map(|len| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{}"}}"#, "ab".repeat(len / 2)).into_bytes()
    });
    let both = (0usize..6000, "[a-z ]{0,20}").prop_map(|(len, text)| {
        format!(r#"{{"data":"{}","result":null,"error":{{"data":"{}","code":-32005,"message":"{text}"}},"id":"x"}}"#, "y".repeat(len), "z".repeat(len)).into_bytes()
    });
    let late = (3000usize..6000).prop_map(|len| {
        format!(r#"{{"result":"{}","error":{{"code":429,"message":"slow down"}}}}"#, "r".repeat(len))
            .into_bytes()
    });
    let arrays = prop::collection::vec(one.clone(), 1..5)
        .prop_map(|items| [b"[".to_vec(), items.join(&b","[..]), b"]".to_vec()].concat());
    let doubled = (one.clone(), one.clone()).prop_map(|(first, second)| [first, second].concat());
    let cut = (one.clone(), any::<prop::sample::Index>())
        .prop_map(|(body, at)| body[..at.index(body.len() + 1)].to_vec());
    let noise =
        prop::collection::vec(prop::sample::select(b"{}[]\",:\\ntrue0 resultidxyz\xff".to_vec()), 0..80);
    let spliced =
        (one.clone(), noise.clone(), any::<prop::sample::Index>()).prop_map(|(mut body, noise, at)| {
            let at = at.index(body.len() + 1);
            body.splice(at..at, noise);
            body
        });
    prop_oneof![one, success, both, late, arrays, doubled, cut, noise, spliced]
}

/// What a stream says in the end, and the items it found.
fn streamed(
    mut stream: Stream,
    head: &Head<'_>,
    chunks: &[&[u8]],
) -> (Option<Judgement>, Judgement, Vec<Item>) {
    let mut certain = None;
    for chunk in chunks {
        let now = stream.push(rules(), head, chunk);
        assert!(certain.is_none() || certain == now, "what was certain does not change");
        certain = now;
    }
    let last = stream.finish(rules(), head);
    (certain, last, stream.items().to_vec())
}

fn split<'a>(body: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(body.len() + 1)).collect();
    at.extend([0, body.len()]);
    at.sort_unstable();
    at.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect()
}

proptest! {
    /// Kills: any state lost or taken twice at the edge of a chunk.
    #[test]
    fn chunks_change_nothing(
        body in bodies(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        status in prop::sample::select(vec![None, Some(200), Some(400), Some(429), Some(500)]),
    ) {
        let headers = HeaderMap::new();
        let head = Head { status, ..Head::new(Protocol::Http, &headers, NOW_MS) };
        let whole = streamed(rules().stream(), &head, &[&body]);
        let pieces = streamed(rules().stream(), &head, &split(&body, &cuts));
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        prop_assert_eq!(&whole, &pieces);
        prop_assert_eq!(&whole, &streamed(rules().stream(), &head, &bytes));
        if body.len() <= detect::WHOLE {
            prop_assert_eq!(whole.1, rules().judge(&head, &body), "a short answer is judged whole");
            prop_assert_eq!(whole.0, None, "and not before its end");
        }
    }

    #[test]
    fn items_are_where_they_say(items in prop::collection::vec((any::<u32>(), ".{0,12}"), 0..20)) {
        let answers: Vec<Value> = items.iter().map(|(id, text)| json!({"jsonrpc": "2.0", "id": id, "result": text})).collect();
        let body = serde_json::to_vec(&answers).expect("JSON");
        let headers = HeaderMap::new();
        let head = Head { status: Some(200), batch: true, ..Head::new(Protocol::Http, &headers, NOW_MS) };
        let (_, _, found) = streamed(rules().stream(), &head, &[&body]);
        prop_assert_eq!(found.len(), answers.len());
        for (item, answer) in found.iter().zip(&answers) {
            let raw: Value = serde_json::from_slice(&body[item.span.clone()]).expect("one item");
            let id: Value = serde_json::from_slice(&body[item.id.clone().expect("an id")]).expect("its id");
            prop_assert_eq!((&raw, &id), (answer, &answer["id"]));
            prop_assert_eq!(item.judgement.verdict, Verdict::Ok);
        }
    }

    #[test]
    fn no_random_text_is_a_hit_when_it_is_only_quoted(text in "\\PC{0,200}") {
        check_quotes(&text);
    }

    #[test]
    fn no_body_panics(body in prop::collection::vec(any::<u8>(), 0..300), status in prop::option::of(100u16..600), close in prop::option::of(any::<u16>())) {
        let headers = HeaderMap::new();
        let reason = String::from_utf8_lossy(&body);
        let head = Head { status, ws_close: close.map(|code| (code, &*reason)), ..Head::new(Protocol::Ws, &headers, NOW_MS) };
        rules().judge(&head, &body);
        rules().judge(&head, b"");
    }
}
