//! Filters that live in one node: ids that mean nothing elsewhere, and what changed since the last look.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::{RpcError, hex};
use crate::chain::View;

/// The filters of one node. Two nodes may well hand out the same id for different filters.
#[derive(Debug)]
pub(super) struct Filters {
    seen_up_to: Mutex<(u64, HashMap<String, u64>)>,
}

impl Filters {
    pub(super) fn new(seed: u64) -> Self {
        Self { seen_up_to: Mutex::new((seed, HashMap::new())) }
    }

    pub(super) fn create(&self, head: u64) -> Value {
        let mut filters = self.seen_up_to.lock().unwrap_or_else(PoisonError::into_inner);
        filters.0 += 1;
        let id = hex(filters.0);
        filters.1.insert(id.clone(), head);
        json!(id)
    }

    /// Hashes of the blocks that came since the last look.
    pub(super) fn changes(&self, params: &Value, view: &View) -> Result<Value, RpcError> {
        let mut filters = self.seen_up_to.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = params[0].as_str().and_then(|id| filters.1.get_mut(id));
        let Some(seen) = seen else { return Err(RpcError::new(-32000, "filter not found")) };
        let first = std::mem::replace(seen, view.head) + 1;
        Ok((first..=view.head).map(|number| view.hash(number)).collect())
    }

    pub(super) fn remove(&self, params: &Value) -> Value {
        let mut filters = self.seen_up_to.lock().unwrap_or_else(PoisonError::into_inner);
        json!(params[0].as_str().is_some_and(|id| filters.1.remove(id).is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_tells_each_block_once() {
        let (filters, chain) = (Filters::new(4), crate::Chain::new(1));
        let head = chain.head();
        let id = json!([filters.create(head)]);
        chain.advance();
        chain.advance();
        let view = chain.view();
        assert_eq!(id, json!(["0x5"]));
        assert_eq!(filters.changes(&id, &view), Ok(json!([view.hash(head + 1), view.hash(head + 2)])));
        assert_eq!(filters.changes(&id, &view), Ok(json!([])));
        assert_eq!(filters.remove(&id), json!(true));
        assert_eq!(filters.remove(&id), json!(false));
        assert!(filters.changes(&id, &view).is_err());
    }
}
