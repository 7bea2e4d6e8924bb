//! The methods we know by name, and what is true of them.

use super::{FilterUse, Safety};

/// Methods that only read, Ethereum's and Solana's. Sorted; others that only read are recognised by prefix.
const READS: &[&str] = &[
    "alchemy_getAssetTransfers",
    "alchemy_getTokenAllowance",
    "alchemy_getTokenBalances",
    "alchemy_getTokenMetadata",
    "alchemy_getTransactionReceipts",
    "bor_getAuthor",
    "bor_getCurrentProposer",
    "bor_getCurrentValidators",
    "bor_getRootHash",
    "debug_accountRange",
    "debug_getBadBlocks",
    "debug_getModifiedAccountsByHash",
    "debug_getModifiedAccountsByNumber",
    "debug_getRawBlock",
    "debug_getRawHeader",
    "debug_getRawReceipts",
    "debug_getRawTransaction",
    "debug_storageRangeAt",
    "debug_traceBadBlock",
    "debug_traceBlock",
    "debug_traceBlockByHash",
    "debug_traceBlockByNumber",
    "debug_traceCall",
    "debug_traceCallMany",
    "debug_traceTransaction",
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
    "eth_getHeaderByHash",
    "eth_getHeaderByNumber",
    "eth_getLogs",
    "eth_getProof",
    "eth_getRawTransactionByHash",
    "eth_getStorageAt",
    "eth_getTransactionByBlockHashAndIndex",
    "eth_getTransactionByBlockNumberAndIndex",
    "eth_getTransactionByHash",
    "eth_getTransactionCount",
    "eth_getTransactionReceipt",
    "eth_getTransactionReceiptsByBlock",
    "eth_getUncleByBlockHashAndIndex",
    "eth_getUncleByBlockNumberAndIndex",
    "eth_getUncleCountByBlockHash",
    "eth_getUncleCountByBlockNumber",
    "eth_getUserOperationByHash",
    "eth_getUserOperationReceipt",
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
    "getAccountInfo",
    "getAsset",
    "getAssetsByOwner",
    "getBalance",
    "getBlock",
    "getBlockCommitment",
    "getBlockHeight",
    "getBlockProduction",
    "getBlockTime",
    "getBlocks",
    "getBlocksWithLimit",
    "getClusterNodes",
    "getEpochInfo",
    "getEpochSchedule",
    "getFeeForMessage",
    "getFirstAvailableBlock",
    "getGenesisHash",
    "getHealth",
    "getHighestSnapshotSlot",
    "getIdentity",
    "getInflationGovernor",
    "getInflationRate",
    "getInflationReward",
    "getLargestAccounts",
    "getLatestBlockhash",
    "getLeaderSchedule",
    "getMaxRetransmitSlot",
    "getMaxShredInsertSlot",
    "getMinimumBalanceForRentExemption",
    "getMultipleAccounts",
    "getProgramAccounts",
    "getRecentPerformanceSamples",
    "getRecentPrioritizationFees",
    "getSignatureStatuses",
    "getSignaturesForAddress",
    "getSlot",
    "getSlotLeader",
    "getSlotLeaders",
    "getStakeMinimumDelegation",
    "getSupply",
    "getTokenAccountBalance",
    "getTokenAccountsByDelegate",
    "getTokenAccountsByOwner",
    "getTokenLargestAccounts",
    "getTokenSupply",
    "getTransaction",
    "getTransactionCount",
    "getVersion",
    "getVoteAccounts",
    "isBlockhashValid",
    "linea_estimateGas",
    "linea_getProof",
    "minimumLedgerSlot",
    "net_listening",
    "net_peerCount",
    "net_version",
    "simulateTransaction",
    "web3_clientVersion",
    "web3_sha3",
];

/// Methods that do more than read, and that many providers refuse.
const WRITES: &[&str] = &[
    "eth_callBundle",
    "eth_sendBundle",
    "eth_sendPrivateTransaction",
    "eth_sendRawTransaction",
    "eth_sendRawTransactionConditional",
    "eth_sendRawTransactionSync",
    "eth_sendTransaction",
    "eth_sendUserOperation",
    "eth_sign",
    "eth_signTransaction",
    "requestAirdrop",
    "sendTransaction",
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
    is_reader(method) || is_otherwise_known(method)
}

fn is_reader(method: &str) -> bool {
    READS.binary_search(&method).is_ok()
}

fn is_otherwise_known(method: &str) -> bool {
    WRITES.contains(&method)
        || READING_PREFIXES
            .iter()
            .any(|prefix| prefix.ends_with('_') && method.starts_with(prefix) && method.len() < 64)
}

/// Whether it may be repeated, and whether it [is known](is_known): one search for both.
pub(super) fn safety_of(method: &str) -> (Safety, bool) {
    let reads = is_reader(method);
    let safety = match method {
        "eth_sendRawTransaction" => Safety::Transaction,
        // What changed since the last poll is told only once.
        "eth_getFilterChanges" => Safety::Once,
        _ if reads => Safety::Repeatable,
        _ if READING_PREFIXES.iter().any(|prefix| method.starts_with(prefix)) => Safety::Repeatable,
        _ => Safety::Once,
    };
    (safety, reads || is_otherwise_known(method))
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
            assert_eq!(safety_of(method), (expected, is_known(method)), "{method}");
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

    /// Kills: a method that providers refuse every day and that is asked of them anew each time; made-up names that
    /// push real ones out of the memory of refusals.
    #[test]
    fn real_methods_are_known_and_made_up_names_are_not() {
        for (method, known) in [
            ("eth_call", true),
            ("trace_block", true),
            ("debug_traceTransaction", true),
            ("debug_storageRangeAt", true),
            ("eth_sendRawTransaction", true),
            ("eth_sendUserOperation", true),
            ("alchemy_getAssetTransfers", true),
            ("getProgramAccounts", true),
            ("sendTransaction", true),
            ("eth_made_up", false),
            ("debug_traceMadeUp", false),
            ("getMadeUp", false),
        ] {
            assert_eq!(is_known(method), known, "{method}");
        }
        assert!(!is_known(&format!("trace_{}", "x".repeat(99))));
    }
}
