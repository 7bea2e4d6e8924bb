//! Every field of an endpoint: its name, its type, its default, its meaning. One table from which the
//! reader knows the names, and the schema and the reference page are made.

use serde_json::{Map, Value, json};

use crate::fleet::Role;
use crate::settings::Origin;

/// What values a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Text,
    /// A string in which variables and files are put in, and which must then be a URL of these schemes.
    Url(&'static [&'static str]),
    /// One of these words, in any case.
    Word(&'static [&'static str]),
    Bool,
    /// A whole number, at least 1.
    Count,
    /// Whole seconds, at least 1, at most 366 days.
    Seconds,
    /// A number; its range in words.
    Number {
        range: &'static str,
    },
    /// Strings by header name.
    Headers,
    /// An object with the fields whose path begins with this one's.
    Block,
    /// Such an object, or a list of them.
    Blocks,
}

/// One row: a field of an endpoint, or of a block in it (`capacity.max_requests`).
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub path: &'static str,
    pub kind: FieldKind,
    /// As text; empty where the default is "none".
    pub default: &'static str,
    pub origin: Origin,
    /// One clause, without a full stop.
    pub meaning: &'static str,
}

macro_rules! fields {
    ($( $origin:ident $path:literal $kind:expr, $default:literal, $meaning:literal; )+) => {
        /// Every field, in the order of the reference page.
        pub const FIELDS: &[Field] = &[$( Field {
            path: $path, kind: $kind, default: $default, origin: Origin::$origin, meaning: $meaning,
        }, )+];
    };
}

const MODES: &[&str] = &["aimd", "steady"];
const TYPES: &[&str] = &["archive", "full"];

fields! {
    Kept "provider" FieldKind::Text, "", "the company, which selects detection rules (alchemy, infura, ...)";
    Kept "role" FieldKind::Word(Role::WORDS), "", "its tier; required, an endpoint with another role is left out";
    Kept "type" FieldKind::Word(TYPES), "full", "whether it has old state";
    Kept "http_url" FieldKind::Url(&["http", "https"]), "", "where calls are sent; user:password@ in it becomes basic authentication";
    Kept "ws_url" FieldKind::Url(&["ws", "wss"]), "", "where subscriptions are made; one of the two URLs is required";
    Kept "skip_sync_check" FieldKind::Bool, "false", "probes do not ask eth_syncing";
    New "account" FieldKind::Text, "<chain>/<id>", "what the provider's limit belongs to; endpoints with the same account share it";
    New "weight" FieldKind::Number { range: "above 0, at most 1000000" }, "1", "share of its tier";
    New "headers" FieldKind::Headers, "", "sent upstream with every request";
    New "private" FieldKind::Bool, "false", "a transaction goes here only when this endpoint is asked first, and then nowhere else";
    New "max_block_range" FieldKind::Count, "", "most blocks that one eth_getLogs may span here";
    Kept "capacity" FieldKind::Blocks, "", "a static ceiling; a list of them all hold; without it the ceiling is learned";
    Kept "capacity.max_requests" FieldKind::Count, "", "requests per window; this or max_compute_units is required";
    New "capacity.max_compute_units" FieldKind::Count, "", "compute units per window";
    Kept "capacity.window_seconds" FieldKind::Seconds, "", "the window; required";
    New "capacity.smooth" FieldKind::Bool, "false", "a tenth per tenth of the window, for providers that count rolling windows";
    Kept "capacity_learning" FieldKind::Block, "", "how the ceiling is learned where capacity is not set";
    Kept "capacity_learning.decrease_factor" FieldKind::Number { range: "between 0 and 1, both excluded" }, "0.5", "what a hit leaves of the ceiling";
    Kept "capacity_learning.increase_interval" FieldKind::Seconds, "60", "time between steps up";
    Kept "capacity_learning.min_estimate" FieldKind::Count, "1", "the lowest ceiling";
    Kept "capacity_learning.window_seconds" FieldKind::Seconds, "", "the only window; without it the one that refusals name, or 1, 10 and 60 s at once";
    New "capacity_learning.mode" FieldKind::Word(MODES), "aimd", "the law by which the ceiling moves";
    Kept "rate_limit_recovery" FieldKind::Block, "", "how an account that was parked comes back; without the block it waits 500 ms, doubling to 300 s, and one clean probe ends it";
    Kept "rate_limit_recovery.initial_backoff" FieldKind::Seconds, "300", "the first wait";
    Kept "rate_limit_recovery.backoff_multiplier" FieldKind::Number { range: "1 to 1000" }, "2.0", "what each failed probe multiplies the wait by";
    Kept "rate_limit_recovery.max_backoff" FieldKind::Seconds, "7200", "the longest wait";
    Kept "rate_limit_recovery.max_retries" FieldKind::Count, "10", "probes per cycle";
    Kept "rate_limit_recovery.required_successes" FieldKind::Count, "2", "clean probes in a row that end it";
    Kept "rate_limit_recovery.reset_after" FieldKind::Seconds, "86400", "time since the first hit after which a fresh cycle begins";
}

/// The names of the fields of `block`; blank for an endpoint itself.
pub(crate) fn field_names(block: &str) -> Vec<&'static str> {
    children(block).map(|(name, _)| name).collect()
}

fn children(block: &str) -> impl Iterator<Item = (&'static str, &'static Field)> {
    FIELDS.iter().filter_map(move |field| {
        let (parent, name) = field.path.split_once('.').unwrap_or(("", field.path));
        (parent == block).then_some((name, field))
    })
}

/// The JSON Schema of the endpoints file. It knows the names in lower case only, as editors need it;
/// the reader takes any case.
pub fn schema() -> Value {
    let mut endpoint = object_of("");
    endpoint["required"] = json!(["role"]);
    endpoint["anyOf"] = json!([{"required": ["http_url"]}, {"required": ["ws_url"]}]);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Endpoints by chain",
        "description": "Chain name (the path clients use) to endpoint id to endpoint.",
        "type": "object",
        "propertyNames": {"not": {"enum": ["health", "ready", "metrics", "status", ""]}},
        "additionalProperties": {
            "type": ["object", "null"],
            "additionalProperties": {"$ref": "#/$defs/endpoint"},
        },
        "$defs": {"endpoint": endpoint},
    })
}

fn object_of(block: &str) -> Value {
    let properties: Map<String, Value> =
        children(block).map(|(name, field)| (name.to_owned(), described(field))).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn described(field: &Field) -> Value {
    let mut schema = type_of(field);
    schema["description"] = json!(field.meaning);
    if let Some(default) = default_of(field) {
        schema["default"] = default;
    }
    schema
}

fn type_of(field: &Field) -> Value {
    match field.kind {
        FieldKind::Text | FieldKind::Url(_) => json!({"type": "string"}),
        FieldKind::Word(words) => json!({"type": "string", "enum": words}),
        FieldKind::Bool => json!({"type": "boolean"}),
        FieldKind::Count => json!({"type": "integer", "minimum": 1}),
        FieldKind::Seconds => json!({"type": "integer", "minimum": 1, "maximum": 366 * 86_400}),
        FieldKind::Number { .. } => json!({"type": "number", "exclusiveMinimum": 0}),
        FieldKind::Headers => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        FieldKind::Block => nullable(object_of(field.path)),
        FieldKind::Blocks => {
            let one = object_of(field.path);
            json!({"anyOf": [one, {"type": "array", "items": one}, {"type": "null"}]})
        }
    }
}

fn nullable(mut object: Value) -> Value {
    object["type"] = json!(["object", "null"]);
    object
}

fn default_of(field: &Field) -> Option<Value> {
    match field.kind {
        FieldKind::Word(_) if !field.default.is_empty() => Some(json!(field.default)),
        FieldKind::Bool | FieldKind::Count | FieldKind::Seconds | FieldKind::Number { .. } => {
            serde_json::from_str(field.default).ok()
        }
        FieldKind::Word(_)
        | FieldKind::Text
        | FieldKind::Url(_)
        | FieldKind::Headers
        | FieldKind::Block
        | FieldKind::Blocks => None,
    }
}
