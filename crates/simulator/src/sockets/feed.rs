//! What the subscriptions of one socket tell when the chain has moved on. Decides content and order; never sends.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::Sockets;
use crate::chain::View;
use crate::node::{Node, RpcError, blocks, logs};

/// The subscriptions of one socket.
#[derive(Debug)]
pub(crate) struct Feeds {
    node: Arc<Node>,
    sockets: Arc<Sockets>,
    made: u64,
    subscriptions: Vec<Subscription>,
}

#[derive(Debug)]
struct Subscription {
    id: String,
    topic: Topic,
    /// The answer that names it has gone out.
    live: bool,
    told: View,
    heard: usize,
}

#[derive(Debug)]
enum Topic {
    Heads,
    Logs(Value),
    Pending,
    /// Accepted, and never tells anything.
    Syncing,
}

impl Feeds {
    pub(crate) fn new(node: Arc<Node>, sockets: Arc<Sockets>) -> Self {
        Self { node, sockets, made: 0, subscriptions: Vec::new() }
    }

    /// Answers `eth_subscribe` and `eth_unsubscribe`; `None` for any other method.
    pub(crate) fn answer(&mut self, method: &str, params: &Value) -> Option<Result<Value, RpcError>> {
        match method {
            "eth_subscribe" => Some(self.subscribe(params)),
            "eth_unsubscribe" => Some(self.unsubscribe(params)),
            _ => None,
        }
    }

    fn subscribe(&mut self, params: &Value) -> Result<Value, RpcError> {
        let topic = match params[0].as_str() {
            Some("newHeads") => Topic::Heads,
            Some("logs") => Topic::Logs(params[1].clone()),
            Some("newPendingTransactions") => Topic::Pending,
            Some("syncing") => Topic::Syncing,
            _ => return Err(RpcError::new(-32602, "no such subscription")),
        };
        if let Some((most, error)) = &self.sockets.state.borrow().most
            && self.subscriptions.len() >= *most
        {
            return Err(error.clone());
        }
        self.made += 1;
        let id = format!("{:#x}", (u64::from(std::process::id()) << 32) + self.made);
        let (told, heard) = (self.node.view(), self.node.chain().heard());
        self.subscriptions.push(Subscription { id: id.clone(), topic, live: false, told, heard });
        self.sockets.subscriptions.fetch_add(1, Ordering::SeqCst);
        Ok(json!(id))
    }

    fn unsubscribe(&mut self, params: &Value) -> Result<Value, RpcError> {
        let before = self.subscriptions.len();
        self.subscriptions.retain(|subscription| params[0] != subscription.id);
        let gone = before - self.subscriptions.len();
        self.sockets.subscriptions.fetch_sub(gone, Ordering::SeqCst);
        if gone == 0 { Err(RpcError::new(-32000, "subscription not found")) } else { Ok(json!(true)) }
    }

    /// The answers to the subscriptions made so far have gone out.
    pub(crate) fn go_live(&mut self) {
        self.subscriptions.iter_mut().for_each(|subscription| subscription.live = true);
    }

    /// What there is to tell since the last time, in order.
    pub(crate) fn news(&mut self) -> Vec<String> {
        let view = self.node.view();
        let pending = |known| self.node.chain().pending_since(known);
        let live = self.subscriptions.iter_mut().filter(|subscription| subscription.live);
        live.flat_map(|subscription| subscription.news(&view, pending)).collect()
    }
}

impl Drop for Feeds {
    fn drop(&mut self) {
        self.sockets.subscriptions.fetch_sub(self.subscriptions.len(), Ordering::SeqCst);
    }
}

impl Subscription {
    fn news(&mut self, view: &View, pending: impl Fn(usize) -> Vec<String>) -> Vec<String> {
        let results: Vec<Value> = match &self.topic {
            Topic::Pending => {
                let new = pending(self.heard);
                self.heard += new.len();
                new.into_iter().map(Value::from).collect()
            }
            Topic::Syncing => Vec::new(),
            Topic::Heads => self.blocks(view).1.map(|number| blocks::head(view, number)).collect(),
            Topic::Logs(filter) => {
                let (gone, new) = self.blocks(view);
                let removed = gone
                    .rev()
                    .flat_map(|number| logs::of_block(&self.told, number, filter).into_iter().rev());
                let removed = removed.map(|mut log| {
                    log["removed"] = json!(true);
                    log
                });
                removed.chain(new.flat_map(|number| logs::of_block(view, number, filter))).collect()
            }
        };
        // A node does not go back on a chain that is only shorter.
        if view.head > self.told.head || self.told.common(view) < view.head {
            self.told = view.clone();
        }
        results.into_iter().map(|result| notification(&self.id, &result)).collect()
    }

    /// The blocks that left the chain, and those that came.
    fn blocks(&self, view: &View) -> (Range<u64>, Range<u64>) {
        let common = self.told.common(view);
        // A view that is only shorter lets no block go.
        let gone = if common < view.head { self.told.head } else { common };
        (common + 1..gone + 1, common + 1..view.head + 1)
    }
}

fn notification(id: &str, result: &Value) -> String {
    let params = json!({"subscription": id, "result": result});
    json!({"jsonrpc": "2.0", "method": "eth_subscription", "params": params}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chain;

    fn told(feeds: &mut Feeds) -> Vec<(String, bool)> {
        let news = feeds.news();
        let values = news.iter().map(|text| serde_json::from_str::<Value>(text).expect("JSON"));
        let result = |value: Value| value["params"]["result"].clone();
        values
            .map(result)
            .map(|it| {
                let number = it["number"].as_str().or(it["blockNumber"].as_str()).or(it.as_str());
                (number.unwrap_or_default().to_owned(), it["removed"] == true)
            })
            .collect()
    }

    // Kills: news before the answer, blocks twice or in the wrong order, a reorganisation without removals.
    #[test]
    fn subscriptions_tell_what_a_node_tells() {
        let chain = Chain::new(1);
        let node = Arc::new(Node::new(Arc::clone(&chain), 0, false, 0));
        let mut feeds = Feeds::new(node, Arc::default());
        feeds.answer("eth_subscribe", &json!(["newHeads"])).expect("its").expect("an id");
        chain.advance();
        assert_eq!(told(&mut feeds), [], "not answered yet");
        feeds.go_live();
        chain.advance();
        let at = |number: u64, removed| (format!("{:#x}", Chain::GENESIS_HEAD + number), removed);
        assert_eq!(told(&mut feeds), [at(1, false), at(2, false)]);
        let id = feeds.answer("eth_subscribe", &json!(["logs", {}])).expect("its").expect("an id");
        feeds.go_live();
        chain.reorganise(1);
        assert_eq!(
            told(&mut feeds),
            [at(2, false), at(3, false), at(2, true), at(2, true), at(2, false), at(2, false)]
        );
        assert_eq!(feeds.answer("eth_unsubscribe", &json!([id])), Some(Ok(json!(true))));
        assert_eq!((told(&mut feeds), feeds.sockets.subscriptions()), (vec![], 1));
    }

    // Kills: a node that lags and tells its old blocks again.
    #[test]
    fn a_node_that_falls_behind_tells_nothing_twice() {
        let chain = Chain::new(1);
        let node = Arc::new(Node::new(Arc::clone(&chain), 0, false, 0));
        let mut feeds = Feeds::new(Arc::clone(&node), Arc::default());
        feeds.answer("eth_subscribe", &json!(["newHeads"])).expect("its").expect("an id");
        feeds.answer("eth_subscribe", &json!(["newPendingTransactions"])).expect("its").expect("an id");
        feeds.go_live();
        node.set_lag(5);
        chain.gossip(1);
        assert_eq!(told(&mut feeds).len(), 1);
        node.set_lag(0);
        assert_eq!(told(&mut feeds), []);
        node.freeze(true);
        chain.advance();
        assert_eq!(told(&mut feeds), []);
        node.freeze(false);
        assert_eq!(told(&mut feeds).len(), 1);
    }
}
