//! The three blocks about limits: `capacity`, `capacity_learning`, `rate_limit_recovery`. Decides whether
//! a block can be used; a bad one is dropped whole, with a finding that names the field.

use std::time::Duration;

use super::fields::Fields;
use crate::finding::{Finding, did_you_mean, quoted};
use crate::json::Node;

/// A static ceiling of an account. At least one of the two maxima is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Requests per window, at least 1.
    pub max_requests: Option<u64>,
    /// Compute units per window, at least 1.
    pub max_compute_units: Option<u64>,
    /// 1 second to 366 days, whole seconds.
    pub window: Duration,
    /// A tenth per slot instead of all at once.
    pub smooth: bool,
}

/// How the ceiling of an account without a static one is learned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearningConfig {
    /// Between 0 and 1, both excluded.
    pub decrease_factor: f64,
    /// At least 1 second.
    pub increase_interval: Duration,
    /// At least 1.
    pub min_estimate: u64,
    /// The only window, if set; at least 1 second.
    pub window: Option<Duration>,
    pub mode: LearningMode,
    /// Whether the file has the block.
    pub given: bool,
}

impl Default for LearningConfig {
    fn default() -> Self {
        Self {
            decrease_factor: 0.5,
            increase_interval: Duration::from_secs(60),
            min_estimate: 1,
            window: None,
            mode: LearningMode::Aimd,
            given: false,
        }
    }
}

/// By which law a ceiling moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearningMode {
    Aimd,
    Steady,
}

/// How an account that was parked comes back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecoveryConfig {
    /// 1 to 1000.
    pub backoff_multiplier: f64,
    /// 1 second to 366 days, as the two below.
    pub initial_backoff: Duration,
    pub max_backoff: Duration,
    /// Probes per cycle, at least 1.
    pub max_retries: u32,
    /// At least 1.
    pub required_successes: u32,
    pub reset_after: Duration,
}

impl Default for RecoveryConfig {
    fn default() -> Self {
        Self {
            backoff_multiplier: 2.0,
            initial_backoff: Duration::from_secs(300),
            max_backoff: Duration::from_secs(7200),
            max_retries: 10,
            required_successes: 2,
            reset_after: Duration::from_secs(86_400),
        }
    }
}

const LONGEST_SECONDS: i128 = 366 * 86_400;
/// The largest count that every store and every double holds exactly.
const LARGEST_COUNT: i128 = 1 << 53;

/// What is wrong with a block: the field's path and why.
type Bad = (String, String);

/// Reads `capacity`, an object or a list of them. Items that cannot be used are dropped, those of one
/// window become one.
pub(super) fn capacity(path: &str, node: &Node, findings: &mut Vec<Finding>) -> Vec<Capacity> {
    let items: Vec<(String, &Node)> = if let Node::List(items) = node {
        items.iter().enumerate().map(|(at, item)| (format!("{path}[{at}]"), item)).collect()
    } else {
        vec![(path.to_owned(), node)]
    };
    let mut all: Vec<Capacity> = Vec::new();
    for (path, item) in items {
        let Some(one) = block(&path, "capacity", item, findings, capacity_item) else { continue };
        match all.iter_mut().find(|other| other.window == one.window) {
            Some(other) => {
                findings.push(Finding::warning(
                    path,
                    "a second ceiling for the same window; the lower numbers count",
                ));
                *other = lower(*other, one);
            }
            None => all.push(one),
        }
    }
    all.sort_by_key(|capacity| capacity.window);
    all
}

fn lower(a: Capacity, b: Capacity) -> Capacity {
    let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
    Capacity {
        max_requests: least(a.max_requests, b.max_requests),
        max_compute_units: least(a.max_compute_units, b.max_compute_units),
        window: a.window,
        smooth: a.smooth || b.smooth,
    }
}

fn capacity_item(fields: &Fields<'_>, bads: &mut Vec<Bad>) -> Capacity {
    let max_requests = taken(whole(fields, "max_requests", LARGEST_COUNT), bads);
    let max_compute_units = taken(whole(fields, "max_compute_units", LARGEST_COUNT), bads);
    if fields.get("max_requests").is_none() && fields.get("max_compute_units").is_none() {
        bads.push((fields.path("max_requests"), "is missing, and so is max_compute_units".to_owned()));
    }
    let window = taken(seconds(fields, "window_seconds"), bads);
    if fields.get("window_seconds").is_none() {
        bads.push((fields.path("window_seconds"), "is missing".to_owned()));
    }
    let smooth = taken(flag(fields, "smooth").map(Some), bads).unwrap_or_default();
    Capacity { max_requests, max_compute_units, window: window.unwrap_or_default(), smooth }
}

/// Reads `capacity_learning`; the defaults, as if it were not there, where it cannot be used.
pub(super) fn learning(path: &str, node: &Node, findings: &mut Vec<Finding>) -> LearningConfig {
    block(path, "capacity_learning", node, findings, learning_fields).unwrap_or_default()
}

fn learning_fields(fields: &Fields<'_>, bads: &mut Vec<Bad>) -> LearningConfig {
    let default = LearningConfig::default();
    LearningConfig {
        decrease_factor: taken(factor(fields), bads).unwrap_or(default.decrease_factor),
        increase_interval: taken(seconds(fields, "increase_interval"), bads)
            .unwrap_or(default.increase_interval),
        min_estimate: taken(whole(fields, "min_estimate", LARGEST_COUNT), bads)
            .unwrap_or(default.min_estimate),
        window: taken(seconds(fields, "window_seconds"), bads),
        mode: taken(mode(fields).map(Some), bads).unwrap_or(default.mode),
        given: true,
    }
}

fn factor(fields: &Fields<'_>) -> Result<Option<f64>, Bad> {
    match number(fields, "decrease_factor")? {
        Some(factor) if !(factor > 0.0 && factor < 1.0) => {
            Err((fields.path("decrease_factor"), format!("{factor} is not between 0 and 1")))
        }
        factor => Ok(factor),
    }
}

fn mode(fields: &Fields<'_>) -> Result<LearningMode, Bad> {
    match fields.get("mode") {
        None => Ok(LearningMode::Aimd),
        Some(Node::Text(word)) if word.eq_ignore_ascii_case("aimd") => Ok(LearningMode::Aimd),
        Some(Node::Text(word)) if word.eq_ignore_ascii_case("steady") => Ok(LearningMode::Steady),
        Some(Node::Text(word)) => {
            let hint = did_you_mean(word, ["aimd", "steady"]);
            Err((fields.path("mode"), format!("unknown mode {}{hint}", quoted(word))))
        }
        Some(other) => Err((fields.path("mode"), format!("must be a string, not {}", other.kind()))),
    }
}

/// Reads `rate_limit_recovery`. A field that is 0 keeps its default, as it did for the predecessor.
pub(super) fn recovery(path: &str, node: &Node, findings: &mut Vec<Finding>) -> Option<RecoveryConfig> {
    let mut zeros = Vec::new();
    let recovery = block(path, "rate_limit_recovery", node, findings, |fields, bads| {
        recovery_fields(fields, bads, &mut zeros)
    })?;
    findings.extend(zeros.into_iter().map(|path| Finding::warning(path, "0 keeps the default")));
    if recovery.max_backoff < recovery.initial_backoff {
        findings.push(Finding::warning(
            path,
            "max_backoff is below initial_backoff, which therefore never applies",
        ));
    }
    Some(recovery)
}

fn recovery_fields(fields: &Fields<'_>, bads: &mut Vec<Bad>, zeros: &mut Vec<String>) -> RecoveryConfig {
    let mut given = |name: &str| {
        let zero = fields.get(name).and_then(Node::number) == Some(0.0);
        if zero {
            zeros.push(fields.path(name));
        }
        fields.get(name).is_some() && !zero
    };
    let mut recovery = RecoveryConfig::default();
    if given("backoff_multiplier") {
        recovery.backoff_multiplier =
            taken(multiplier(fields).map(Some), bads).unwrap_or(recovery.backoff_multiplier);
    }
    for (name, place) in [
        ("initial_backoff", &mut recovery.initial_backoff),
        ("max_backoff", &mut recovery.max_backoff),
        ("reset_after", &mut recovery.reset_after),
    ] {
        if given(name) {
            *place = taken(seconds(fields, name), bads).unwrap_or(*place);
        }
    }
    for (name, place) in
        [("max_retries", &mut recovery.max_retries), ("required_successes", &mut recovery.required_successes)]
    {
        if given(name) {
            let count = taken(whole(fields, name, i128::from(u32::MAX)), bads);
            *place = count.and_then(|count| u32::try_from(count).ok()).unwrap_or(*place);
        }
    }
    recovery
}

fn multiplier(fields: &Fields<'_>) -> Result<f64, Bad> {
    let multiplier = number(fields, "backoff_multiplier")?.unwrap_or(1.0);
    match (1.0..=1000.0).contains(&multiplier) {
        true => Ok(multiplier),
        false => Err((fields.path("backoff_multiplier"), format!("{multiplier} is not between 1 and 1000"))),
    }
}

/// What a field holds; what is wrong with it is noted.
fn taken<T>(read: Result<Option<T>, Bad>, bads: &mut Vec<Bad>) -> Option<T> {
    read.unwrap_or_else(|bad| {
        bads.push(bad);
        None
    })
}

/// Reads one block with `read`; all that is wrong in it is noted, and a bad one dropped.
fn block<T>(
    path: &str,
    name: &str,
    node: &Node,
    findings: &mut Vec<Finding>,
    read: impl FnOnce(&Fields<'_>, &mut Vec<Bad>) -> T,
) -> Option<T> {
    let mut bads = Vec::new();
    let block = match node.members("an object") {
        Ok(members) => Some(read(&Fields::read(path, name, members, findings), &mut bads)),
        Err(why) => {
            bads.push((path.to_owned(), why));
            None
        }
    };
    let dropped = |(at, why)| Finding::warning(at, format!("{why}; the whole block is dropped"));
    let bad = !bads.is_empty();
    findings.extend(bads.into_iter().map(dropped));
    block.filter(|_| !bad)
}

/// A whole number from 1 to `largest`.
fn whole(fields: &Fields<'_>, name: &str, largest: i128) -> Result<Option<u64>, Bad> {
    let Some(node) = fields.get(name) else { return Ok(None) };
    let bad = |why: String| Err((fields.path(name), why));
    match node.whole() {
        None => bad(format!(
            "must be a whole number, not {}",
            if let Node::Float(number) = node { number.to_string() } else { node.kind().to_owned() }
        )),
        Some(number) if number < 1 => bad(format!("{number} is below the least value, 1")),
        Some(number) if number > largest => bad(format!("{number} is above the largest value, {largest}")),
        Some(number) => Ok(u64::try_from(number).ok()),
    }
}

fn seconds(fields: &Fields<'_>, name: &str) -> Result<Option<Duration>, Bad> {
    Ok(whole(fields, name, LONGEST_SECONDS)?.map(Duration::from_secs))
}

fn number(fields: &Fields<'_>, name: &str) -> Result<Option<f64>, Bad> {
    match fields.get(name) {
        None => Ok(None),
        Some(node) => match node.number() {
            Some(number) => Ok(Some(number)),
            None => Err((fields.path(name), format!("must be a number, not {}", node.kind()))),
        },
    }
}

fn flag(fields: &Fields<'_>, name: &str) -> Result<bool, Bad> {
    match fields.get(name) {
        None => Ok(false),
        Some(Node::Bool(flag)) => Ok(*flag),
        Some(other) => Err((fields.path(name), format!("must be true or false, not {}", other.kind()))),
    }
}
