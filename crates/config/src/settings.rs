//! Every setting: its names, its type, its default, its meaning. One table from which the flags, the
//! reader, the reference page and `.env.example` are made; decides nothing about where a value comes from.

mod choice;
mod network;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use crate::secret::{Secret, SecretUrl};
pub use choice::{DegradedMode, FlagsProvider, LogFormat, LogLevel, Selection, StoreBackend};
pub use network::Network;
pub use value::Kind;
use value::Value;

/// Whether the predecessor had the setting. What it had is read as leniently as it was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Kept,
    New,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The environment variable. In lower case: the key in `headgate.toml` and the field of [`Settings`].
    pub name: &'static str,
    /// The flag, without its dashes.
    pub flag: &'static str,
    pub section: &'static str,
    pub kind: Kind,
    /// As text; empty where the default is "none".
    pub default: &'static str,
    pub origin: Origin,
    /// One sentence, without a full stop.
    pub meaning: &'static str,
}

impl Setting {
    /// The key in `headgate.toml`.
    pub fn key(&self) -> String {
        self.name.to_ascii_lowercase()
    }
}

/// Where [`Settings::read`] finds the text of a setting, and where it leaves what is wrong with it.
pub(crate) trait Source {
    /// The text that was given for `setting`, from whichever layer rules.
    fn text(&self, setting: &Setting) -> Option<&str>;

    /// Takes note that the text given for `setting` cannot be used and the default stands.
    fn unusable(&mut self, setting: &Setting, message: String);
}

macro_rules! settings {
    ($( $section:literal { $(
        $origin:ident $field:ident: $ty:ty = $default:literal, $name:literal $flag:literal, $kind:expr, $meaning:literal;
    )+ } )+) => {
        /// The settings, validated: one field each, named as the variable in lower case.
        #[derive(Clone, Debug)]
        pub struct Settings { $($( #[doc = $meaning] pub $field: $ty, )+)+ }

        /// Every setting, in the order of the reference page.
        pub const SETTINGS: &[Setting] = &[$($( Setting {
            name: $name, flag: $flag, section: $section, kind: $kind, default: $default,
            origin: Origin::$origin, meaning: $meaning,
        }, )+)+];

        impl Settings {
            /// Reads every setting; what cannot be used is noted and its default taken.
            pub(crate) fn read(source: &mut impl Source) -> Self {
                let mut rows = SETTINGS.iter();
                Self { $($( $field: read_one(source, rows.next().expect("one row per field")), )+)+ }
            }

            /// Names and texts of all settings that are set and not secret, in the table's order.
            pub fn shown(&self) -> Vec<(&'static str, String)> {
                let mut shown = Vec::new();
                $($( shown.extend(self.$field.show().map(|text| ($name, text))); )+)+
                shown
            }
        }
    };
}

fn read_one<T: Value>(source: &mut impl Source, setting: &Setting) -> T {
    let default = || T::parse(setting.default, setting.kind).expect("a test reads every default");
    // A password may begin or end with a blank, nothing else means one.
    let as_meant =
        |text: &str| -> String { if setting.kind == Kind::Secret { text } else { text.trim() }.to_owned() };
    match source.text(setting).map(as_meant).map(|text| T::parse(&text, setting.kind)) {
        None => default(),
        Some(Ok(value)) => value,
        Some(Err(message)) => {
            source.unusable(setting, message);
            default()
        }
    }
}

const PORT: Kind = Kind::Int { min: 0, max: 65_535 };
const COUNT: Kind = Kind::Int { min: 1, max: 1_000_000_000 };
const COUNT_OR_ZERO: Kind = Kind::Int { min: 0, max: 1_000_000_000 };
const DELAY: Kind = Kind::Seconds { min_ms: 0 };
const INTERVAL: Kind = Kind::Seconds { min_ms: 1 };
const HTTP: Kind = Kind::Url(&["http", "https"]);
const VALKEY: Kind = Kind::Url(&[
    "redis",
    "rediss",
    "redis-sentinel",
    "rediss-sentinel",
    "redis-cluster",
    "rediss-cluster",
    "valkey",
    "valkeys",
    "valkey-sentinel",
    "valkeys-sentinel",
    "valkey-cluster",
    "valkeys-cluster",
]);

settings! {
    "Files" {
        Kept config_file: PathBuf = "configs/endpoints.json", "CONFIG_FILE" "config-file", Kind::Path,
            "the endpoints file, relative to the working directory";
        New clients_file: Option<PathBuf> = "", "CLIENTS_FILE" "clients-file", Kind::Path,
            "clients, their keys, plans and limits; without it everybody may, without limits";
        New rules_file: Option<PathBuf> = "", "RULES_FILE" "rules-file", Kind::Path,
            "detection rules that are put before the built-in ones";
        New method_costs_file: Option<PathBuf> = "", "METHOD_COSTS_FILE" "method-costs-file", Kind::Path,
            "compute units by method, put over the built-in table";
    }
    "Server" {
        Kept server_port: u16 = "8080", "SERVER_PORT" "server-port", PORT,
            "port for clients; 0 lets the system choose";
        New worker_threads: Option<usize> = "", "WORKER_THREADS" "worker-threads", Kind::Int { min: 1, max: 1024 },
            "threads that serve requests; by default as many as the process has processors";
        New max_body_bytes: u64 = "10MiB", "MAX_BODY_BYTES" "max-body-bytes", Kind::Bytes,
            "largest request body";
        New max_batch: u32 = "1000", "MAX_BATCH" "max-batch", COUNT,
            "most calls in one batch";
        New max_response_scan_bytes: u64 = "10MiB", "MAX_RESPONSE_SCAN_BYTES" "max-response-scan-bytes", Kind::Bytes,
            "how much of one answer may be held and searched for an error";
        New shutdown_delay: Duration = "0", "SHUTDOWN_DELAY" "shutdown-delay", DELAY,
            "how long connections are still accepted after SIGTERM, while already not ready";
        New shutdown_timeout: Duration = "10", "SHUTDOWN_TIMEOUT" "shutdown-timeout", DELAY,
            "how long requests in flight may take after that";
        New trusted_proxies: Vec<Network> = "", "TRUSTED_PROXIES" "trusted-proxies", Kind::Networks,
            "networks whose X-Forwarded-For is believed";
        New expose_routing: bool = "false", "EXPOSE_ROUTING" "expose-routing", Kind::Bool,
            "answers carry X-Headgate-Endpoint and X-Headgate-Attempts";
        Kept cors_headers: String = "Accept, Authorization, Content-Type, Origin, X-Requested-With",
            "CORS_HEADERS" "cors-headers", Kind::Header, "Access-Control-Allow-Headers";
        Kept cors_methods: String = "GET, POST, OPTIONS", "CORS_METHODS" "cors-methods", Kind::Header,
            "Access-Control-Allow-Methods";
        Kept cors_origin: String = "*", "CORS_ORIGIN" "cors-origin", Kind::Header,
            "Access-Control-Allow-Origin, one value, sent as it is";
    }
    "Routing" {
        Kept proxy_timeout: Duration = "15", "PROXY_TIMEOUT" "proxy-timeout", INTERVAL,
            "deadline of a request, all attempts together";
        Kept proxy_timeout_per_try: Duration = "5", "PROXY_TIMEOUT_PER_TRY" "proxy-timeout-per-try", INTERVAL,
            "deadline of one attempt";
        Kept proxy_max_retries: u32 = "3", "PROXY_MAX_RETRIES" "proxy-retries", COUNT,
            "attempts per request, the first included";
        Kept public_first: bool = "false", "PUBLIC_FIRST" "public-first", Kind::Bool,
            "public endpoints are asked before the primary ones";
        Kept public_first_attempts: u32 = "2", "PUBLIC_FIRST_ATTEMPTS" "public-first-attempts", COUNT_OR_ZERO,
            "how many public endpoints are tried first";
        New selection: Selection = "least_used", "SELECTION" "selection", Kind::Choice(Selection::WORDS),
            "how an endpoint is chosen within its tier";
        New max_block_lag: u64 = "0", "MAX_BLOCK_LAG" "max-block-lag", COUNT_OR_ZERO,
            "blocks behind the best head before an endpoint counts as behind; 0 is off";
        New max_upstream_in_flight: Option<u32> = "", "MAX_UPSTREAM_IN_FLIGHT" "max-upstream-in-flight", COUNT,
            "most attempts in flight at once; none by default";
        New gate_queue: u32 = "1000", "GATE_QUEUE" "gate-queue", COUNT_OR_ZERO,
            "how many may wait at a full gate";
    }
    "Rate limits" {
        Kept capacity_throttling_enabled: bool = "true", "CAPACITY_THROTTLING_ENABLED" "capacity-throttling-enabled", Kind::Bool,
            "ceilings hold requests back and weigh endpoints; false turns both off";
        Kept capacity_learning_enabled: bool = "true", "CAPACITY_LEARNING_ENABLED" "capacity-learning-enabled", Kind::Bool,
            "ceilings are learned where none is configured";
        New saturation_wait_ms: Duration = "1000", "SATURATION_WAIT_MS" "saturation-wait-ms", Kind::Millis { min_ms: 0 },
            "how long a request may wait when every endpoint is at its ceiling, who waits longest first; 0 is no waiting";
        New replicas_assumed: u32 = "4", "REPLICAS_ASSUMED" "replicas-assumed", COUNT,
            "proxies that share a limit while Valkey is away and their number was never known";
        New limits_degraded_grace: Duration = "30", "LIMITS_DEGRADED_GRACE" "limits-degraded-grace", DELAY,
            "how long client limits are counted locally after Valkey went away";
        New limits_degraded_mode: DegradedMode = "share", "LIMITS_DEGRADED_MODE" "limits-degraded-mode", Kind::Choice(DegradedMode::WORDS),
            "what client limits do after that: share stays on the local share, deny refuses";
        New limits_slot_ttl: Duration = "15", "LIMITS_SLOT_TTL" "limits-slot-ttl", INTERVAL,
            "after how long a crashed proxy's concurrency slots are free again";
    }
    "WebSockets" {
        New max_websockets: Option<u32> = "", "MAX_WEBSOCKETS" "max-websockets", COUNT,
            "most client sockets open at once; none by default";
        New ws_share_subscriptions: bool = "true", "WS_SHARE_SUBSCRIPTIONS" "ws-share-subscriptions", Kind::Bool,
            "identical newHeads and logs subscriptions share one upstream subscription";
        New ws_ping_interval: Duration = "20", "WS_PING_INTERVAL" "ws-ping-interval", INTERVAL,
            "time between pings on a socket";
        New ws_queue_bytes: u64 = "4MiB", "WS_QUEUE_BYTES" "ws-queue-bytes", Kind::Bytes,
            "how much may wait for one slow client before its socket is closed";
        New ws_subscriptions_per_socket: u32 = "500", "WS_SUBSCRIPTIONS_PER_SOCKET" "ws-subscriptions-per-socket", COUNT,
            "most subscriptions on one upstream socket";
    }
    "Health" {
        Kept health_check_interval: Duration = "30", "HEALTH_CHECK_INTERVAL" "health-check-interval", DELAY,
            "time between probes of an endpoint; 0 probes only endpoints that failed";
        Kept health_check_concurrency: u32 = "20", "HEALTH_CHECK_CONCURRENCY" "health-check-concurrency", COUNT,
            "most probes at once";
        Kept health_check_sync_status: bool = "true", "HEALTH_CHECK_SYNC_STATUS" "health-check-sync-status", Kind::Bool,
            "probes ask eth_syncing too";
        Kept endpoint_failure_threshold: u32 = "2", "ENDPOINT_FAILURE_THRESHOLD" "endpoint-failure-threshold", COUNT,
            "failures of proxied requests in a row that take an endpoint out";
        Kept endpoint_success_threshold: u32 = "2", "ENDPOINT_SUCCESS_THRESHOLD" "endpoint-success-threshold", COUNT,
            "successes in a row that bring it back";
        Kept ephemeral_checks_enabled: bool = "true", "EPHEMERAL_CHECKS_ENABLED" "ephemeral-checks-enabled", Kind::Bool,
            "proxied requests are evidence of an endpoint's health";
        Kept ephemeral_checks_interval: Duration = "30", "EPHEMERAL_CHECKS_INTERVAL" "ephemeral-checks-interval", INTERVAL,
            "time between probes of an endpoint that failed";
        Kept ephemeral_checks_healthy_threshold: u32 = "3", "EPHEMERAL_CHECKS_HEALTHY_THRESHOLD" "ephemeral-checks-healthy-threshold", COUNT,
            "good probes in a row that end its failure";
        Kept health_cache_ttl: Duration = "10", "HEALTH_CACHE_TTL" "health-cache-ttl", DELAY,
            "the proxy reads the checker's view at least this often; 0 is every second";
        Kept standalone_health_checks: bool = "true", "STANDALONE_HEALTH_CHECKS" "standalone-health-checks", Kind::Bool,
            "a separate process checks endpoints; with the memory store the proxy always does it itself";
        Kept health_checker_server_port: u16 = "8080", "HEALTH_CHECKER_SERVER_PORT" "health-checker-server-port", PORT,
            "port of the separate checker";
        Kept health_checker_service_url: SecretUrl = "http://aetherlay-hc:8080", "HEALTH_CHECKER_SERVICE_URL" "health-checker-service-url", HTTP,
            "where the proxy finds the separate checker";
        Kept health_checker_grace_period: Duration = "60", "HEALTH_CHECKER_GRACE_PERIOD" "health-checker-grace-period", DELAY,
            "with READY_STRICT, how long the checker may be away before the proxy is not ready";
        New ready_strict: bool = "false", "READY_STRICT" "ready-strict", Kind::Bool,
            "not ready while Valkey or the checker is away";
    }
    "Store" {
        New store_backend: StoreBackend = "memory", "STORE_BACKEND" "store-backend", Kind::Choice(StoreBackend::WORDS),
            "where shared state lives; by default valkey if VALKEY_URL or VALKEY_HOST is set, else memory";
        New valkey_url: Option<SecretUrl> = "", "VALKEY_URL" "valkey-url", VALKEY,
            "a redis:// or valkey:// URL, with s for TLS, with -sentinel or -cluster; rules over host, port and the rest";
        Kept valkey_host: String = "localhost", "VALKEY_HOST" "valkey-host", Kind::Text,
            "host of Valkey";
        Kept valkey_port: u16 = "6379", "VALKEY_PORT" "valkey-port", Kind::Int { min: 1, max: 65_535 },
            "port of Valkey";
        New valkey_username: Option<String> = "", "VALKEY_USERNAME" "valkey-username", Kind::Text,
            "user for Valkey's access lists";
        Kept valkey_pass: Option<Secret> = "", "VALKEY_PASS" "valkey-pass", Kind::Secret,
            "password for Valkey";
        Kept valkey_use_tls: bool = "false", "VALKEY_USE_TLS" "valkey-use-tls", Kind::Bool,
            "TLS to Valkey, 1.2 or later";
        Kept valkey_skip_tls_check: bool = "false", "VALKEY_SKIP_TLS_CHECK" "valkey-skip-tls-check", Kind::Bool,
            "Valkey's certificate is not checked";
        New valkey_ca_file: Option<PathBuf> = "", "VALKEY_CA_FILE" "valkey-ca-file", Kind::Path,
            "certificate authorities for Valkey, PEM";
        New valkey_key_prefix: String = "headgate", "VALKEY_KEY_PREFIX" "valkey-key-prefix", Kind::Name,
            "what every key begins with";
        New valkey_timeout_ms: Duration = "50", "VALKEY_TIMEOUT_MS" "valkey-timeout-ms", Kind::Millis { min_ms: 1 },
            "longest time of any command that somebody might wait for";
    }
    "Flags" {
        New headgate_flags_provider: FlagsProvider = "static", "HEADGATE_FLAGS_PROVIDER" "headgate-flags-provider", Kind::Choice(FlagsProvider::WORDS),
            "who says how far concurrency gates are tightened; environment reads HEADGATE_FLAG_* variables";
        New headgate_flags_file: Option<PathBuf> = "", "HEADGATE_FLAGS_FILE" "headgate-flags-file", Kind::Path,
            "flags and their values, for the provider file";
        New headgate_launchdarkly_sdk_key: Option<Secret> = "", "HEADGATE_LAUNCHDARKLY_SDK_KEY" "headgate-launchdarkly-sdk-key", Kind::Secret,
            "server-side SDK key, for the provider launchdarkly";
        New headgate_launchdarkly_relay_url: Option<SecretUrl> = "", "HEADGATE_LAUNCHDARKLY_RELAY_URL" "headgate-launchdarkly-relay-url", HTTP,
            "a relay proxy to ask instead of LaunchDarkly itself";
        New headgate_ofrep_url: Option<SecretUrl> = "", "HEADGATE_OFREP_URL" "headgate-ofrep-url", HTTP,
            "an OpenFeature remote evaluation service, for the provider ofrep";
    }
    "Telling" {
        Kept log_level: LogLevel = "info", "LOG_LEVEL" "log-level", Kind::Choice(LogLevel::WORDS),
            "least level that is logged";
        New log_format: LogFormat = "text", "LOG_FORMAT" "log-format", Kind::Choice(LogFormat::WORDS),
            "one JSON object per line, or text for people";
        Kept metrics_enabled: bool = "true", "METRICS_ENABLED" "metrics-enabled", Kind::Bool,
            "the operator's port is opened";
        Kept metrics_port: u16 = "9090", "METRICS_PORT" "metrics-port", PORT,
            "port for metrics and status; 0 lets the system choose";
    }
}

impl Settings {
    /// Whether the proxy probes endpoints itself: no separate checker, or a store that no other process sees.
    pub fn checks_inside(&self) -> bool {
        self.store_backend == StoreBackend::Memory || !self.standalone_health_checks
    }
}

impl Default for Settings {
    fn default() -> Self {
        struct Nothing;
        impl Source for Nothing {
            fn text(&self, _: &Setting) -> Option<&str> {
                None
            }
            fn unusable(&mut self, _: &Setting, _: String) {}
        }
        Self::read(&mut Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Reads every default: a row whose default its own kind refuses would panic here.
    #[test]
    fn every_default_is_accepted_by_its_own_row() {
        let settings = Settings::default();
        assert_eq!((settings.server_port, settings.metrics_port), (8080, 9090));
        assert_eq!(settings.proxy_timeout, Duration::from_secs(15));
        assert_eq!(settings.max_body_bytes, 10 << 20);
        assert_eq!(settings.saturation_wait_ms, Duration::from_secs(1));
        assert!(settings.valkey_url.is_none() && settings.trusted_proxies.is_empty());
    }

    #[test]
    fn fields_keys_and_flags_are_named_after_the_variable() {
        let debug = format!("{:#?}", Settings::default());
        let mut flags: Vec<&str> = SETTINGS.iter().map(|setting| setting.flag).collect();
        for setting in SETTINGS {
            assert!(debug.contains(&format!("\n    {}: ", setting.key())), "{}", setting.name);
            let expected = match setting.name {
                "PROXY_MAX_RETRIES" => "proxy-retries".to_owned(),
                name => name.to_lowercase().replace('_', "-"),
            };
            assert_eq!(setting.flag, expected);
        }
        flags.sort_unstable();
        flags.dedup();
        assert_eq!(flags.len(), SETTINGS.len());
    }

    #[test]
    fn meanings_are_one_clause() {
        for setting in SETTINGS {
            assert!(!setting.meaning.is_empty() && !setting.meaning.ends_with('.'), "{}", setting.name);
            assert!(!setting.meaning.contains('|'), "{}: would break the table", setting.name);
        }
    }
}
