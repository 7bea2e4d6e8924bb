//! What a probe asks, and what its answers mean for health. It sends nothing and judges no limits: the caller
//! sends, and says what the detection rules made of each answer.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use recovery::Kind;

/// The calls of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// The newest block the endpoint knows.
    BlockNumber,
    /// Whether it is still catching up.
    Syncing,
}

impl Call {
    /// The JSON-RPC method.
    #[must_use]
    pub fn method(self) -> &'static str {
        match self {
            Self::BlockNumber => "eth_blockNumber",
            Self::Syncing => "eth_syncing",
        }
    }

    /// The request, as sent over HTTP and WebSocket alike.
    #[must_use]
    pub fn body(self, id: u64) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":[]}}"#, self.method())
    }
}

/// What the detection rules made of an answer to a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// An answer: a result, or an error that is the call's own.
    Answered,
    /// A limit was reached.
    Limited(Limited),
    /// The endpoint does not offer this.
    Refused,
    /// The key is not accepted.
    Auth,
    /// The endpoint says that it is catching up.
    Syncing,
    /// A fault of the endpoint: a 5xx, garbage.
    Fault,
    /// Nothing came back: no connection, a timeout.
    Unreached,
}

/// A limit that a probe met; see [`recovery::Hit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limited {
    /// The limit.
    pub kind: Kind,
    /// The wait that the provider stated.
    pub hint: Option<Duration>,
}

/// One answer: the verdict and the body, decoded of any transfer coding.
#[derive(Debug, Clone, Copy)]
pub struct Answer<'a> {
    /// What the detection rules say.
    pub said: Said,
    /// The body, empty if there is none.
    pub body: &'a [u8],
}

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// The newest block, when it was told.
    pub block: Option<u64>,
    /// Whether the endpoint can serve: it told a block above 0 and is not catching up.
    pub ok: bool,
    /// Whether it is catching up.
    pub syncing: bool,
    /// The limit that the probe met; then `ok` says nothing, unless it is true.
    pub limited: Option<Limited>,
    /// Whether the key was refused: what confirms a refusal seen on a proxied call.
    pub auth: bool,
    /// Whether anything came back at all.
    pub reached: bool,
}

impl Measured {
    /// What the tracker should be told: `None` when only a limit was met, which is no matter of health.
    #[must_use]
    pub fn health(&self) -> Option<bool> {
        match self.limited {
            Some(_) if !self.ok && !self.syncing => None,
            Some(_) | None => Some(self.ok),
        }
    }
}

/// Puts the answers of a probe together; `syncing` is `None` when that was not asked.
#[must_use]
pub fn measure(block: Answer<'_>, syncing: Option<Answer<'_>>) -> Measured {
    let number = if block.said == Said::Answered { read_block(block.body) } else { None };
    let sync = syncing.map_or(Sync::Done, judge_sync);
    let is_syncing = sync == Sync::Running || block.said == Said::Syncing;
    let all = [Some(block.said), syncing.map(|answer| answer.said)];
    let said = || all.into_iter().flatten();
    Measured {
        block: number,
        ok: number.is_some() && sync == Sync::Done,
        syncing: is_syncing,
        limited: said().find_map(|said| if let Said::Limited(limited) = said { Some(limited) } else { None }),
        auth: block.said == Said::Auth,
        reached: said().any(|said| said != Said::Unreached),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    Done,
    Running,
    Unreadable,
}

/// A limit or a refusal of this call alone leaves the block number to speak.
fn judge_sync(answer: Answer<'_>) -> Sync {
    match answer.said {
        Said::Limited(_) | Said::Refused => Sync::Done,
        Said::Syncing => Sync::Running,
        Said::Auth | Said::Fault | Said::Unreached => Sync::Unreadable,
        Said::Answered => match read_syncing(answer.body) {
            Some(true) => Sync::Running,
            Some(false) => Sync::Done,
            None => Sync::Unreadable,
        },
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<RpcError<'a>>,
}

#[derive(Deserialize)]
struct RpcError<'a> {
    #[serde(default)]
    code: i64,
    #[serde(borrow, default)]
    message: std::borrow::Cow<'a, str>,
}

/// The block number in an answer to `eth_blockNumber`: a `0x` hexadecimal string above 0 that fits 64 bits.
#[must_use]
pub fn read_block(body: &[u8]) -> Option<u64> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).ok()?;
    if envelope.error.is_some() {
        return None;
    }
    let text: &str = serde_json::from_str(envelope.result?.get()).ok()?;
    let digits = text.strip_prefix("0x")?;
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, 16).ok().filter(|block| *block > 0)
}

/// Whether an answer to `eth_syncing` says that the node is catching up; `None` when it cannot be read. A node
/// that does not offer the method counts as done.
#[must_use]
pub fn read_syncing(body: &[u8]) -> Option<bool> {
    let envelope: Envelope<'_> = serde_json::from_slice(body).ok()?;
    if let Some(error) = envelope.error {
        return lacks_method(&error).then_some(false);
    }
    let result = envelope.result.map_or("null", |raw| raw.get().trim());
    Some(!matches!(result, "false" | "null"))
}

fn lacks_method(error: &RpcError<'_>) -> bool {
    const PHRASES: [&str; 5] =
        ["method not found", "method does not exist", "is not available", "not supported", "unknown method"];
    let message = error.message.to_ascii_lowercase();
    error.code == -32_601 || PHRASES.iter().any(|phrase| message.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITED: Said = Said::Limited(Limited { kind: Kind::Burst, hint: None });

    #[test]
    fn requests_are_plain_json_rpc() {
        let body = Call::BlockNumber.body(7);
        assert_eq!(body, r#"{"jsonrpc":"2.0","id":7,"method":"eth_blockNumber","params":[]}"#);
        assert_eq!(Call::Syncing.body(0), r#"{"jsonrpc":"2.0","id":0,"method":"eth_syncing","params":[]}"#);
    }

    #[test]
    fn block_numbers_are_hexadecimal_strings_above_zero() {
        let check = |result: &str, expected| {
            let body = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
            assert_eq!(read_block(body.as_bytes()), expected, "{result}");
        };
        check(r#""0x1""#, Some(1));
        check(r#""0x12aBcD""#, Some(0x0012_abcd));
        check(r#""0xffffffffffffffff""#, Some(u64::MAX));
        check(r#""0x10000000000000000""#, None);
        check(r#""0x0""#, None);
        check(r#""0x""#, None);
        check(r#""0x+5""#, None);
        check(r#""12""#, None);
        check("12", None);
        check("null", None);
        check("[]", None);
    }

    #[test]
    fn what_is_no_answer_tells_no_block() {
        for body in ["", "<html>", "[]", "{}", r#"{"result":"0x5","error":{"code":1,"message":"x"}}"#] {
            assert_eq!(read_block(body.as_bytes()), None, "{body}");
        }
        assert_eq!(read_block(br#"{"result":"0x5","error":null}"#), Some(5));
    }

    #[test]
    fn a_node_is_catching_up_unless_it_says_false_or_nothing() {
        let check = |body: &str, expected| assert_eq!(read_syncing(body.as_bytes()), expected, "{body}");
        check(r#"{"result":false}"#, Some(false));
        check(r#"{"result":null}"#, Some(false));
        check(r#"{"id":1}"#, Some(false));
        check(r#"{"result":true}"#, Some(true));
        check(r#"{"result":{"currentBlock":"0x1","highestBlock":"0x9"}}"#, Some(true));
        check(r#"{"result":"0x0"}"#, Some(true));
        check(r#"{"error":{"code":-32601,"message":"whatever"}}"#, Some(false));
        check(r#"{"error":{"code":-32000,"message":"eth_syncing Is Not Available here"}}"#, Some(false));
        check(r#"{"error":{"code":-32000,"message":"oh \"no\": unknown method"}}"#, Some(false));
        check(r#"{"error":{"code":-32000,"message":"boom"}}"#, None);
        check("nonsense", None);
    }

    const BLOCK: &[u8] = br#"{"result":"0x10"}"#;
    const FALSE: &[u8] = br#"{"result":false}"#;
    const TRUE: &[u8] = br#"{"result":true}"#;

    #[test]
    fn answers_add_up_to_health() {
        let check = |block: (Said, &[u8]), syncing: Option<(Said, &[u8])>, health| {
            let answer = |(said, body)| Answer { said, body };
            let measured = measure(answer(block), syncing.map(answer));
            assert_eq!(measured.health(), health, "{:?} then {:?}", block.0, syncing.map(|(said, _)| said));
        };
        let good = (Said::Answered, BLOCK);
        check(good, None, Some(true));
        check(good, Some((Said::Answered, FALSE)), Some(true));
        check(good, Some((Said::Answered, TRUE)), Some(false));
        check(good, Some((Said::Refused, b"")), Some(true));
        check(good, Some((LIMITED, b"")), Some(true));
        check(good, Some((Said::Unreached, b"")), Some(false));
        check(good, Some((Said::Fault, b"")), Some(false));
        check(good, Some((Said::Syncing, b"")), Some(false));
        check((Said::Answered, b"{}"), Some((Said::Answered, FALSE)), Some(false));
        check((LIMITED, b""), Some((Said::Answered, FALSE)), None);
        check((LIMITED, b""), Some((Said::Answered, TRUE)), Some(false));
        check((Said::Auth, b""), None, Some(false));
        check((Said::Refused, b""), None, Some(false));
        check((Said::Unreached, b""), None, Some(false));
    }

    #[test]
    fn a_measure_says_what_else_was_found() {
        let answer = |said, body| Answer { said, body };
        let limited = measure(answer(Said::Answered, BLOCK), Some(answer(LIMITED, b"")));
        assert_eq!((limited.block, limited.limited.map(|limit| limit.kind)), (Some(16), Some(Kind::Burst)));
        let silent = measure(answer(Said::Unreached, b""), Some(answer(Said::Unreached, b"")));
        assert!(!silent.reached && !silent.syncing && !silent.auth);
        assert!(measure(answer(Said::Auth, b""), None).auth);
        assert!(measure(answer(Said::Answered, BLOCK), Some(answer(Said::Answered, TRUE))).syncing);
    }
}
