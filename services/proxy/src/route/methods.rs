//! The methods we know by name, and what is true of them.

use super::{FilterUse, Safety};

/// Methods that only read. Sorted; others that only read are recognised by prefix.
const READS: &[&str] = &[
    "eth_accounts",
    "eth_blobBaseFee",
    "eth_blockNumber",
    "eth_call",
    "eth_callMany",
    "eth_chainId",
    "eth_coinbase",
    "eth_createAccessList",
    "eth_estimateGas",
    "eth_estimateUserOperationGas",
    "eth_feeHistory",
    "eth_fillTransaction",
    "eth_gasPrice",
    "eth_getAccount",
    "eth_getBalance",
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getBlockReceipts",
    "eth_getBlockTransactionCountByHash",
    "eth_getBlockTransactionCountByNumber",
    "eth_getCode",
    "eth_getFilterChanges",
    "eth_getFilterLogs",
    "eth_getLogs",
    "eth_getProof",
    "eth_getStorageAt",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByHash",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_getUncleByBlockHashAndIndex",
    "eth_getUncleByBlockNumberAndIndex",
    "eth_getUncleCountByBlockHash",
    "eth_getUncleCountByBlockNumber",
    "eth_hashrate",
    "eth_maxPriorityFeePerGas",
    "eth_mining",
    "eth_newBlockFilter",
    "eth_newFilter",
    "eth_newPendingTransactionFilter",
    "eth_protocolVersion",
    "eth_simulateV1",
    "eth_subscribe",
    "eth_supportedEntryPoints",
    "eth_syncing",
    "eth_uninstallFilter",
    "eth_unsubscribe",
    "net_listening",
    "net_peerCount",
    "net_version",
    "web3_clientVersion",
    "web3_sha3",
];

/// Namespaces whose methods all only read, and the verbs of other chains' readers.
const READING_PREFIXES: &[&str] = &[
    "alchemy_get",
    "arbtrace_",
    "bor_get",
    "chain_get",
    "debug_get",
    "debug_storageRange",
    "debug_trace",
    "eth_get",
    "get",
    "is",
    "linea_estimate",
    "linea_get",
    "minimumLedgerSlot",
    "optimism_",
    "ots_",
    "parity_pending",
    "qn_fetch",
    "qn_get",
    "rollup_",
    "rpc_methods",
    "rpc_modules",
    "simulateTransaction",
    "starknet_block",
    "starknet_call",
    "starknet_chainId",
    "starknet_estimate",
    "starknet_get",
    "starknet_simulate",
    "starknet_spec",
    "starknet_syncing",
    "starknet_trace",
    "state_call",
    "state_get",
    "system_",
    "trace_",
    "txpool_",
    "zks_estimate",
    "zks_get",
    "zks_L1",
    "zks_main",
];

/// Whether the method is one of those known by name: only these may be parked at an endpoint, so that made-up
/// names cannot fill the memory of parks.
pub(crate) fn is_known(method: &str) -> bool {
    READS.binary_search(&method).is_ok()
        || method == "eth_sendRawTransaction"
        || READING_PREFIXES
            .iter()
            .any(|prefix| prefix.ends_with('_') && method.starts_with(prefix) && method.len() < 64)
}

pub(super) fn safety(method: &str) -> Safety {
    match method {
        "eth_sendRawTransaction" => Safety::Transaction,
        // What changed since the last poll is told only once.
        "eth_getFilterChanges" => Safety::Once,
        _ if READS.binary_search(&method).is_ok() => Safety::Repeatable,
        _ if READING_PREFIXES.iter().any(|prefix| method.starts_with(prefix)) => Safety::Repeatable,
        _ => Safety::Once,
    }
}

pub(super) fn filter_use(method: &str) -> FilterUse {
    match method {
        "eth_newFilter" | "eth_newBlockFilter" | "eth_newPendingTransactionFilter" => FilterUse::Makes,
        "eth_getFilterChanges" | "eth_getFilterLogs" | "eth_uninstallFilter" => FilterUse::Uses,
        _ => FilterUse::None,
    }
}

/// What a method does with subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubscriptionUse {
    Makes,
    Ends,
}

/// `eth_subscribe`, `slotSubscribe`, `starknet_subscribeNewHeads` and their opposites.
pub(crate) fn subscription_use(method: &str) -> Option<SubscriptionUse> {
    let name = method.split_once('_').map_or(method, |(_, name)| name);
    if name.starts_with("unsubscribe") || name.ends_with("Unsubscribe") {
        Some(SubscriptionUse::Ends)
    } else if name.starts_with("subscribe") || name.ends_with("Subscribe") {
        Some(SubscriptionUse::Makes)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_sorted() {
        assert!(READS.is_sorted(), "the search depends on it");
    }

    #[test]
    fn only_what_reads_is_repeated() {
        use Safety::{Once, Repeatable, Transaction};
        for (method, expected) in [
            ("eth_call", Repeatable),
            ("eth_getLogs", Repeatable),
            ("debug_traceTransaction", Repeatable),
            ("trace_block", Repeatable),
            ("getBalance", Repeatable),
            ("eth_sendRawTransaction", Transaction),
            ("eth_sendTransaction", Once),
            ("eth_sendRawTransactionSync", Once),
            ("eth_sendUserOperation", Once),
            ("eth_getFilterChanges", Once),
            ("evm_mine", Once),
            ("anvil_setBalance", Once),
            ("sendTransaction", Once),
            ("debug_setHead", Once),
            ("personal_sign", Once),
            ("a_made_up_name", Once),
            ("", Once),
        ] {
            assert_eq!(safety(method), expected, "{method}");
        }
    }

    #[test]
    fn subscriptions_are_known_by_their_names() {
        use SubscriptionUse::{Ends, Makes};
        for (method, expected) in [
            ("eth_subscribe", Some(Makes)),
            ("eth_unsubscribe", Some(Ends)),
            ("parity_subscribe", Some(Makes)),
            ("accountSubscribe", Some(Makes)),
            ("accountUnsubscribe", Some(Ends)),
            ("starknet_subscribeNewHeads", Some(Makes)),
            ("chain_unsubscribeNewHeads", Some(Ends)),
            ("eth_call", None),
            ("eth_getSubscriptions", None),
            ("", None),
        ] {
            assert_eq!(subscription_use(method), expected, "{method}");
        }
    }

    #[test]
    fn made_up_names_are_not_known() {
        assert!(is_known("eth_call") && is_known("trace_block") && is_known("eth_sendRawTransaction"));
        assert!(
            !is_known("eth_made_up")
                && !is_known("getBalance")
                && !is_known(&format!("trace_{}", "x".repeat(99)))
        );
    }
}
