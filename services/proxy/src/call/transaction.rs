//! A signed transaction that was repeated after an attempt whose outcome nobody knows: "already known" means that
//! the first attempt succeeded, "nonce too low" means that only if the transaction is found.

use crate::exchange::{Answer, Ask};
use crate::hunt::{Hunt, Step};
use crate::request::Request;
use crate::route::need;
use crate::upstream::Codings;
use crate::why::What;
use detect::{Detail, Judgement, Verdict};
use jsonrpc::Call;
use ledger::Cost;
use tiny_keccak::{Hasher, Keccak};

/// The answer that the client gets instead of, or along with, `refused`.
pub(super) async fn resolve(
    request: &Request<'_>,
    call: &Call,
    body: &[u8],
    refused: Box<Answer>,
) -> Box<Answer> {
    let Some(hash) = call.params(body).and_then(hash_of) else { return refused };
    let known = refused.judgement.detail == Detail::AlreadyKnown;
    let happened = known || Box::pin(is_found(request, &hash)).await;
    if !happened {
        return refused;
    }
    request.tell(What::Resolved { how: "an earlier attempt had been carried out" });
    let id = String::from_utf8_lossy(call.id(body).unwrap_or(b"null")).into_owned();
    let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{hash}"}}"#);
    let judgement = Judgement { verdict: Verdict::Ok, ..refused.judgement };
    Box::new(Answer::complete(text.into(), judgement))
}

/// The hash of the transaction in `["0x…"]`.
fn hash_of(params: &[u8]) -> Option<String> {
    let params: Vec<String> = serde_json::from_slice(params).ok()?;
    let raw = decode_hex(params.first()?.strip_prefix("0x")?)?;
    let (mut keccak, mut hash) = (Keccak::v256(), [0u8; 32]);
    keccak.update(&raw);
    keccak.finalize(&mut hash);
    Some(hash.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")))
}

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let value = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks_exact(2).map(|pair| Some(value(&pair[0])? << 4 | value(&pair[1])?)).collect()
}

/// Whether any endpoint knows the transaction.
async fn is_found(request: &Request<'_>, hash: &str) -> bool {
    let method = "eth_getTransactionByHash";
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":["{hash}"]}}"#);
    let ask = Ask {
        body: text.into(),
        method: Some(method),
        batch: false,
        notification: false,
        codings: Codings::IDENTITY,
        whole: true,
    };
    let mut hunt = Hunt::new(request, need(method, false), method, None);
    while let Ok(picked) = hunt.next(Cost::requests(1)).await {
        match hunt.ask(picked, &ask).await {
            Ok(Step::Done(answer)) => {
                return super::result_of(&answer.whole()).is_some_and(|result| result != "null");
            }
            Ok(Step::Again | Step::Partly(_)) => {}
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_keccak_256_of_the_raw_transaction() {
        let empty = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
        assert_eq!(hash_of(br#"["0x"]"#).as_deref(), Some(empty));
        for wrong in ["[]", r#"["0xabc"]"#, r#"["0xzz"]"#, r#"[7]"#, r#"["ab"]"#] {
            assert_eq!(hash_of(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
