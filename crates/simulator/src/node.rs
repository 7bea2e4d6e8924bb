//! A small EVM-like node: what a healthy provider answers to each method.
//!
//! Decides results and JSON-RPC errors. It never decides how they are sent, and it has no clock.

pub(crate) mod blocks;
mod filters;
pub(crate) mod logs;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::chain::{Chain, View, keccak_hex};
use crate::provider::lock;
use filters::Filters;

/// An `eth_call` to this address reverts with a reason.
pub const REVERTING: &str = "0xfffffffffffffffffffffffffffffffffffdead0";

/// How far below its head a node that is no archive keeps states.
pub(crate) const STATES_KEPT: u64 = 128;

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl RpcError {
    /// An error without data.
    #[must_use]
    pub fn new(code: i64, message: &str) -> Self {
        Self { code, message: message.to_owned(), data: None }
    }

    /// The error object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            object["data"] = data.clone();
        }
        object
    }
}

/// What a method gives: a value, or so many bytes of one too long to hold.
#[derive(Debug, PartialEq)]
pub(crate) enum Given {
    Value(Value),
    Log { bytes: u64 },
}

/// One node of a chain.
#[derive(Debug)]
pub(crate) struct Node {
    chain: Arc<Chain>,
    lag: AtomicU64,
    /// What it has since it follows the chain no more.
    frozen: Mutex<Option<View>>,
    archive: bool,
    filters: Filters,
}

impl Node {
    pub(crate) fn new(chain: Arc<Chain>, lag: u64, archive: bool, seed: u64) -> Self {
        Self {
            chain,
            lag: AtomicU64::new(lag),
            frozen: Mutex::new(None),
            archive,
            filters: Filters::new(seed),
        }
    }

    pub(crate) fn set_lag(&self, blocks: u64) {
        self.lag.store(blocks, Ordering::SeqCst);
        self.chain.beat();
    }

    /// Follows the chain no more, or again.
    pub(crate) fn freeze(&self, frozen: bool) {
        let view = frozen.then(|| self.view());
        *lock(&self.frozen) = view;
        self.chain.beat();
    }

    pub(crate) fn chain(&self) -> &Chain {
        &self.chain
    }

    /// The chain as this node has it.
    pub(crate) fn view(&self) -> View {
        if let Some(frozen) = &*lock(&self.frozen) {
            return frozen.clone();
        }
        let mut view = self.chain.view();
        view.head = view.head.saturating_sub(self.lag.load(Ordering::SeqCst));
        view
    }

    pub(crate) fn head(&self) -> u64 {
        self.view().head
    }

    /// Answers one call.
    pub(crate) fn answer(&self, method: &str, params: &Value) -> Result<Given, RpcError> {
        let value = match method {
            "eth_chainId" => json!(hex(self.chain.id())),
            "net_version" => json!(self.chain.id().to_string()),
            "eth_blockNumber" => json!(hex(self.head())),
            "eth_syncing" => json!(false),
            "eth_getBlockByNumber" => self.block_by_number(params)?,
            "eth_getBlockByHash" => self.block_by_hash(params)?,
            "eth_call" => self.call(params)?,
            "eth_getBalance" | "eth_getCode" | "eth_getTransactionCount" => self.state(method, params, 1)?,
            "eth_getStorageAt" => self.state(method, params, 2)?,
            "eth_getLogs" => return self.logs(params),
            "eth_sendRawTransaction" => self.send(params)?,
            "eth_getTransactionByHash" => self.transaction(params)?,
            "eth_getTransactionReceipt" => self.receipt(params)?,
            "eth_newFilter" | "eth_newBlockFilter" => self.filters.create(self.head()),
            "eth_getFilterChanges" | "eth_getFilterLogs" => self.filters.changes(params, &self.view())?,
            "eth_uninstallFilter" => self.filters.remove(params),
            "web3_clientVersion" | "eth_gasPrice" | "eth_estimateGas" | "eth_sendTransaction" => {
                expected(method, params)
            }
            _ => return Err(unknown(method)),
        };
        Ok(Given::Value(value))
    }

    fn call(&self, params: &Value) -> Result<Value, RpcError> {
        self.has_state(&params[1])?;
        if params[0]["to"] == REVERTING { Err(revert()) } else { Ok(expected("eth_call", params)) }
    }

    fn state(&self, method: &str, params: &Value, block_at: usize) -> Result<Value, RpcError> {
        self.has_state(&params[block_at])?;
        Ok(expected(method, params))
    }

    fn has_state(&self, block: &Value) -> Result<(), RpcError> {
        let head = self.head();
        match blocks::number(block, head)? {
            asked if asked > head => Err(RpcError::new(-32000, "header not found")),
            asked if asked + STATES_KEPT < head && !self.archive => {
                let root = &self.view().hash(asked)[2..];
                Err(RpcError::new(
                    -32000,
                    &format!("missing trie node {root} (path ) state is not available"),
                ))
            }
            _ => Ok(()),
        }
    }

    fn block_by_number(&self, params: &Value) -> Result<Value, RpcError> {
        let view = self.view();
        let asked = blocks::number(&params[0], view.head)?;
        Ok(if asked > view.head { Value::Null } else { blocks::block(&view, asked) })
    }

    fn block_by_hash(&self, params: &Value) -> Result<Value, RpcError> {
        let asked = params[0].as_str().ok_or_else(|| bad_params("missing value for required argument 0"))?;
        let view = self.view();
        Ok(blocks::find(asked, &view).map_or(Value::Null, |number| blocks::block(&view, number)))
    }

    fn logs(&self, params: &Value) -> Result<Given, RpcError> {
        let filter = &params[0];
        let view = self.view();
        let mut bounds = [view.head; 2];
        for (bound, name) in bounds.iter_mut().zip(["fromBlock", "toBlock"]) {
            *bound = blocks::number(&filter[name], view.head)?;
            if *bound > view.head {
                return Err(RpcError::new(-32000, "header not found"));
            }
        }
        let [from, to] = bounds;
        let logs = || (from..=to).flat_map(|number| logs::of_block(&view, number, filter)).collect();
        Ok(filter["bytes"].as_u64().map_or_else(|| Given::Value(logs()), |bytes| Given::Log { bytes }))
    }

    fn send(&self, params: &Value) -> Result<Value, RpcError> {
        let raw = params[0].as_str().and_then(unhex).ok_or_else(|| bad_params("invalid raw transaction"))?;
        let (hash, known) = self.chain.submit(&raw);
        if known { Err(RpcError::new(-32000, "already known")) } else { Ok(json!(hash)) }
    }

    fn transaction(&self, params: &Value) -> Result<Value, RpcError> {
        let (hash, found) = self.lookup(params)?;
        Ok(found.map_or(Value::Null, |block| {
            let mined = (block <= self.head()).then(|| hex(block));
            json!({"hash": hash, "blockNumber": mined, "from": REVERTING, "nonce": "0x0"})
        }))
    }

    fn receipt(&self, params: &Value) -> Result<Value, RpcError> {
        let (hash, found) = self.lookup(params)?;
        Ok(found.filter(|block| *block <= self.head()).map_or(Value::Null, |block| {
            json!({"transactionHash": hash, "blockNumber": hex(block), "blockHash": self.view().hash(block), "status": "0x1", "logs": []})
        }))
    }

    fn lookup(&self, params: &Value) -> Result<(String, Option<u64>), RpcError> {
        let hash = params[0].as_str().ok_or_else(|| bad_params("missing value for required argument 0"))?;
        Ok((hash.to_owned(), self.chain.find(hash).map(|transaction| transaction.block)))
    }
}

/// The right result of a call that does not depend on the head: derived from method and parameters, so that
/// a test can tell that the right answer reached the right id.
#[must_use]
pub fn expected(method: &str, params: &Value) -> Value {
    match method {
        "eth_sendRawTransaction" => {
            json!(keccak_hex(&params[0].as_str().and_then(unhex).unwrap_or_default()))
        }
        "web3_clientVersion" => json!("simulator/v1"),
        "eth_getLogs" => json!([log(params[0]["bytes"].as_u64().unwrap_or(0))]),
        _ => json!(keccak_hex(format!("{method} {params}").as_bytes())),
    }
}

/// What a call to [`REVERTING`] gets: the reason "not today", ABI-encoded.
#[must_use]
pub fn revert() -> RpcError {
    let reason = "0x08c379a0\
        0000000000000000000000000000000000000000000000000000000000000020\
        0000000000000000000000000000000000000000000000000000000000000009\
        6e6f7420746f6461790000000000000000000000000000000000000000000000";
    RpcError { code: 3, message: "execution reverted: not today".to_owned(), data: Some(json!(reason)) }
}

/// A log whose data is `bytes` characters long.
pub(crate) fn log(bytes: u64) -> Value {
    json!({"data": format!("0x{}", "a".repeat(usize::try_from(bytes).unwrap_or(usize::MAX)))})
}

pub(crate) fn hex(number: u64) -> String {
    format!("{number:#x}")
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?;
    if digits.is_empty() || !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

fn bad_params(message: &str) -> RpcError {
    RpcError::new(-32602, message)
}

fn unknown(method: &str) -> RpcError {
    RpcError::new(-32601, &format!("the method {method} does not exist/is not available"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: u64 = Chain::GENESIS_HEAD;

    fn node(lag: u64, archive: bool) -> Node {
        Node::new(Chain::new(7), lag, archive, 0)
    }

    fn check(node: &Node, method: &str, params: &Value, expected: Result<Value, i64>) {
        let answer = node.answer(method, params).map_err(|err| err.code);
        assert_eq!(answer, expected.map(Given::Value), "{method} {params}");
    }

    #[test]
    fn methods_answer_like_a_node() {
        let node = node(0, false);
        check(&node, "eth_chainId", &json!([]), Ok(json!("0x7")));
        check(&node, "net_version", &Value::Null, Ok(json!("7")));
        check(&node, "eth_blockNumber", &json!([]), Ok(json!(hex(HEAD))));
        check(&node, "eth_syncing", &json!([]), Ok(json!(false)));
        let view = node.view();
        check(&node, "eth_getBlockByNumber", &json!(["latest", false]), Ok(blocks::block(&view, HEAD)));
        check(&node, "eth_getBlockByNumber", &json!([hex(HEAD + 1), false]), Ok(Value::Null));
        check(
            &node,
            "eth_getBlockByHash",
            &json!([view.hash(HEAD - 3), false]),
            Ok(blocks::block(&view, HEAD - 3)),
        );
        check(&node, "eth_getBlockByNumber", &json!(["soon", false]), Err(-32602));
        check(&node, "eth_getTransactionByHash", &json!(["0x1"]), Ok(Value::Null));
        check(&node, "eth_call", &json!([{"to": REVERTING}, "latest"]), Err(3));
        check(&node, "parity_pendingTransactions", &json!([]), Err(-32601));
    }

    #[test]
    fn states_are_kept_between_the_head_and_128_below_it() {
        let balance = |block: u64| json!(["0xabc", hex(block)]);
        let right = |block: u64| Ok(expected("eth_getBalance", &balance(block)));
        check(&node(0, false), "eth_getBalance", &balance(HEAD), right(HEAD));
        check(&node(1, false), "eth_getBalance", &balance(HEAD), Err(-32000));
        check(&node(0, false), "eth_getBalance", &balance(HEAD - 128), right(HEAD - 128));
        check(&node(0, false), "eth_getBalance", &balance(HEAD - 129), Err(-32000));
        check(&node(0, true), "eth_getBalance", &balance(HEAD - 129), right(HEAD - 129));
    }

    #[test]
    fn a_transaction_goes_from_unknown_to_mined() {
        let node = node(0, false);
        let raw = json!(["0x02f8"]);
        let hash = expected("eth_sendRawTransaction", &raw);
        check(&node, "eth_sendRawTransaction", &raw, Ok(hash.clone()));
        check(&node, "eth_sendRawTransaction", &raw, Err(-32000));
        check(&node, "eth_sendRawTransaction", &json!(["0x0"]), Err(-32602));
        check(&node, "eth_getTransactionReceipt", &json!([hash]), Ok(Value::Null));
        node.chain.advance();
        let receipt = node.answer("eth_getTransactionReceipt", &json!([hash])).expect("a receipt");
        assert!(matches!(receipt, Given::Value(Value::Object(_))), "{receipt:?}");
    }

    #[test]
    fn different_parameters_have_different_answers() {
        let call = |data: &str| expected("eth_call", &json!([{"data": data}, "latest"]));
        assert_ne!(call("0x01"), call("0x02"));
        assert_eq!(call("0x01"), call("0x01"));
    }

    #[test]
    fn logs_are_as_long_as_asked() {
        let node = node(0, false);
        assert_eq!(node.answer("eth_getLogs", &json!([{"bytes": 5}])), Ok(Given::Log { bytes: 5 }));
        check(&node, "eth_getLogs", &json!([{"fromBlock": hex(HEAD + 1)}]), Err(-32000));
        check(&node, "eth_getLogs", &json!([{}]), Ok(json!([])));
        node.chain.advance();
        node.chain.advance();
        let logs = |filter: Value| match node.answer("eth_getLogs", &json!([filter])) {
            Ok(Given::Value(Value::Array(logs))) => logs.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!((logs(json!({})), logs(json!({"fromBlock": hex(HEAD)}))), (2, 3));
    }
}
