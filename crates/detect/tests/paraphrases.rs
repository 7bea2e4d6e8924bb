//! Texts that nobody recorded, from a provider nobody knows: the rules have to follow the meaning.

use detect::{Head, Protocol, Rules};
use http::HeaderMap;

/// Judges a text as a JSON-RPC error with a code that says nothing, as plain text, and as a message.
fn verdicts(rules: &Rules, text: &str) -> [&'static str; 3] {
    let headers = HeaderMap::new();
    let head = Head { status: Some(200), ..Head::new(Protocol::Http, &headers, 0) };
    let quoted = serde_json::to_string(text).expect("a string");
    let error = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":-32000,"message":{quoted}}}}}"#);
    let message = format!(r#"{{"message":{quoted}}}"#);
    [error, text.to_owned(), message].map(|body| rules.judge(&head, body.as_bytes()).verdict.as_str())
}

fn check(expected: &str, texts: &[&str]) {
    let rules = Rules::builtin();
    let mut wrong = Vec::new();
    for text in texts {
        let found = verdicts(&rules, text);
        let alternatives: Vec<&str> = expected.split('|').collect();
        if found.iter().any(|verdict| !alternatives.contains(verdict)) {
            wrong.push(format!("{text}: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "not {expected}:\n{}", wrong.join("\n"));
}

/// Only as a JSON-RPC error, where texts of nodes come from.
fn check_error(expected: &str, texts: &[&str]) {
    let rules = Rules::builtin();
    let wrong: Vec<String> = texts
        .iter()
        .map(|text| (text, verdicts(&rules, text)[0]))
        .filter(|(_, found)| !expected.split('|').any(|one| one == *found))
        .map(|(text, found)| format!("{text}: {found}"))
        .collect();
    assert!(wrong.is_empty(), "not {expected}:\n{}", wrong.join("\n"));
}

#[test]
fn limits_on_the_rate() {
    check(
        "rate_limited",
        &[
            "50/second request limit reached - reduce calls per second or upgrade your account",
            "Max calls per sec rate limit reached (5/sec)",
            "You've exceeded the rate limit. Please try again later.",
            "rps limit exceeded",
            "exceeded the allowed RPS",
            "You have exceeded the maximum number of requests per second",
            "Request limit exceeded",
            "no more than 10 requests per second are allowed",
            "cu limit exceeded; the current RPC traffic is too high",
            "Too many requests, please try again in 5 minutes",
            "Exceeded rate limit: 100/10s",
            "You are placing too much load on the server.",
            "Per anonymous IP compute unit limit exceeded. This limit is enforced per 300 seconds.",
            "your IP has been rate limited",
            "Your request has been throttled",
            "ThrottlingException: Rate exceeded",
            "RESOURCE_EXHAUSTED: slow down",
            "request rate too high, back off",
            "Server is overloaded",
            "rate-limited, retry after 3s",
            "hourly limit exceeded: 1000 requests per hour",
            "RateLimitExceeded",
            "TOO_MANY_REQUESTS",
            "You are sending requests too fast",
            "Concurrency limit exceeded for this key",
            "Your project has more than 40 in-flight requests",
            "the request was rejected: burst capacity exhausted",
            "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute'",
            "Limit exceeded",
            "You have reached your request limit. Please wait.",
            "IP has been auto-banned for extended sending of requests after usage limit has been reached",
            "API rate limit exceeded for 203.0.113.7",
            "Upgrade to a paid plan: free users are limited to 5 req/s",
            "calls from your IP are limited, too many of them",
            "reached the limit of 25 rps on the public endpoint",
            "Over the limit: 3 r/s",
            "cannot process more than 30 requests at once",
            "Unexpected response: HTTP status code: 429",
        ],
    );
}

#[test]
fn used_up_quotas() {
    check(
        "quota_exhausted",
        &[
            "You've reached your monthly limit",
            "Max daily rate limit reached. 110000 (100%) of 100000 day/limit",
            "Your plan: free-plan-daily total included usage has been consumed, please upgrade your plan here",
            "You've used up your API credits",
            "Usage is over limit.",
            "Request units quota exceeded, upgrade your plan",
            "Daily request limit exceeded",
            "Your account has insufficient credits. Please top up",
            "compute unit allowance for this billing cycle is exhausted",
            "You have consumed all included requests in your package",
            "Payment Required",
            "Not enough credits",
            "the 24 hour limit of 100,000 requests has been reached",
            "You have run out of credits",
            "monthly bandwidth cap exceeded",
            "Your free tier quota has been exhausted",
            "Exceeded the number of free requests, payment method missing",
        ],
    );
}

#[test]
fn ranges_sizes_and_batches() {
    check_error(
        "capability",
        &[
            "Log query range greater than 1000 blocks",
            "query block range exceeds server limit",
            "cannot query more than 100 blocks",
            "Exceeded maximum block range: 2000",
            "eth_getLogs requests are limited to 5 blocks on your plan",
            "You can query up to 10,000 blocks",
            "for logs the max range is 10000",
            "the difference between fromBlock and toBlock must be less than 1000 blocks",
            "no more than 100 blocks per eth_getLogs call",
            "response exceeds the maximum size of 10 MB",
            "request entity too large",
            "content length exceeds 1048576 bytes",
            "Batch size is limited to 20",
            "batching is not supported",
            "exceeds the maximum number of calls in a batch",
            "batch limit 50 exceeded",
            "Batch must contain fewer than 50 calls",
            "from and to block are too far apart",
            "Response too long",
        ],
    );
}

#[test]
fn state_that_is_not_there() {
    check_error(
        "capability",
        &[
            "missing trie node 0xabc (path 01)",
            "old data not available due to pruning",
            "no state available for block 0x1",
            "The requested block number is not yet available",
            "block #123 not found",
            "Archive node required for this request",
            "this request needs an archive plan",
            "height 5 is not available, lowest height is 100",
            "Block status not yet available for slot 12",
            "pending block is not available",
            "World state unavailable",
            "state older than 128 blocks is not retained",
            "block is beyond current head block",
            "receipts not found for block 0x12",
            "the node has no history before block 1000",
        ],
    );
}

#[test]
fn methods_that_are_not_served() {
    check_error(
        "capability",
        &[
            "Unsupported method: trace_block. See available methods at https://docs.example/limits",
            "trace_replayTransaction is not available on the free tier",
            "rpc method is not whitelisted",
            "Method 'debug_traceTransaction' not found",
            "This method is not available on your plan, please upgrade",
            "JSON-RPC method not allowed",
            "the module debug is disabled",
            "notifications not supported",
            "method requires a paid subscription",
            "eth_getProof has been disabled",
        ],
    );
}

#[test]
fn keys_accounts_and_doors() {
    check(
        "auth",
        &[
            "invalid api key",
            "Must be authenticated!",
            "project ID is required",
            "Missing API key",
            "rejected due to project ID settings",
            "Your account has been suspended",
            "Access denied by IP whitelist",
            "JWT token expired",
            "401 Authorization Required",
            "No API key provided. Get one at https://example.com/rate-limits",
            "You are not authorized to perform this action",
            "API key revoked",
            "origin not allowed",
            "The endpoint has been disabled by its owner",
            "your subscription has expired",
            "<html><title>Just a moment...</title></html>",
        ],
    );
}

#[test]
fn nodes_behind_their_chain() {
    check_error(
        "syncing",
        &[
            "node is not synced",
            "getLogs unavailable while the node is still syncing",
            "Node is out of sync",
            "indexing in progress, 40 % done",
            "the node is catching up",
            "this node is lagging behind the network",
            "waiting for the node to sync",
        ],
    );
}

#[test]
fn faults_that_mention_money_or_limits() {
    check(
        "upstream_fault",
        &[
            "Request timed out, upgrade to a paid plan for longer timeouts",
            "time limit exceeded",
            "context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
            "upstream connect error or disconnect/reset before headers. reset reason: overflow",
            "no healthy upstream",
            "Internal server error",
            "Maximum call stack size exceeded",
            "Max retries exceeded with url",
            "too many open files",
            "exceeded maximum number of redirects for this request",
            "JavaScript heap limit reached, out of memory",
            "The web server is down. Error 521",
            "dial tcp 127.0.0.1:8545: connect: connection refused",
            "failed to fetch from the backend pool",
            "oops",
            "Please check your billing plan page",
            "14290 42901 0x429",
        ],
    );
}

#[test]
fn what_clients_did_themselves() {
    check_error(
        "client_fault",
        &[
            "execution reverted: Too many requests",
            "VM Exception while processing transaction: revert rate limit exceeded",
            "transaction reverted: quota exceeded",
            "exceeds block gas limit",
            "intrinsic gas too low: have 21000, want 53000",
            "nonce too low: next nonce 5, tx nonce 4",
            "replacement transaction underpriced",
            "tx fee too low, minimum fee is 5 gwei",
            "stack limit reached 1024 (1023)",
            "invalid argument 0: hex string has length 3, want 40 for common.Address",
            "too many arguments, want at most 1",
            "query exceeds the limit of 1000 topics",
            "query returned too many results, more than 5000 logs",
            "filter not found",
            "invalid params: limit must be a number",
            "sender exceeded its rate of transactions",
            "insufficient balance for transfer",
            "ERC20: transfer amount exceeds allowance",
            "exceeds the maximum allowed gas for a call",
            "Your query matched more logs than the limit",
            "Attempt to debit an account but found no record of a prior credit.",
            "max nonce gap exceeded",
        ],
    );
}
