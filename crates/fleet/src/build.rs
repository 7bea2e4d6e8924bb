//! Makes a fleet from a configuration: targets and accounts are prepared, the state of endpoints that stay is
//! carried over, and who is disabled is left out.

use super::{Chain, Endpoint, EndpointState, Fleet, Head, Methods, Tier};
use crate::gates::Gates;
use crate::tables::Tables;
use config::{EndpointConfig, FleetConfig, Role, Settings};
use health::Rules;
use ledger::{Limit, Unit};
use recovery::{Block, Policy};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use store::{Account, Memory};
use upstream::{BadTarget, Target};

/// An endpoint cannot be used as it is configured.
#[derive(Debug, thiserror::Error)]
#[error("{chain}.{endpoint}: {why}")]
pub struct BuildError {
    chain: String,
    endpoint: String,
    why: BadTarget,
}

/// How a probe may take at most.
pub const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// Builds the fleet of `config` with these tables; `before` lends the state of endpoints that stay.
pub fn build(
    config: &FleetConfig,
    tables: Arc<Tables>,
    settings: &Settings,
    memory: &Memory,
    before: &Fleet,
    gates: &Gates,
    now: u64,
) -> Result<Fleet, BuildError> {
    let mut fleet = Fleet { tables: Some(Arc::clone(&tables)), ..Fleet::default() };
    let builder = Builder { settings, memory, before, gates, now, rules: rules(settings), tables };
    for (name, chain) in &config.chains {
        let usable: Vec<&EndpointConfig> =
            chain.endpoints.iter().filter(|endpoint| endpoint.disabled.is_none()).collect();
        fleet.chains.insert(name.as_str().into(), Arc::new(builder.chain(name, &usable)?));
    }
    fleet.large = fleet.in_any_order().filter(|chain| chain.is_large()).cloned().collect();
    fleet.numbers = fleet.endpoints().map(|(_, endpoint)| endpoint.number).collect();
    Ok(fleet)
}

/// The thresholds of the settings.
fn rules(settings: &Settings) -> Rules {
    Rules {
        down_after: settings.endpoint_failure_threshold,
        up_after: good_probes_to_return(settings),
        eject_after: settings.endpoint_failure_threshold,
        return_after: settings.endpoint_success_threshold,
        proxied: settings.ephemeral_checks_enabled,
        fresh_for_ms: fresh_for_ms(settings),
    }
}

/// One, unless a separate checker looks at nothing but what failed.
fn good_probes_to_return(settings: &Settings) -> u32 {
    match settings.health_check_interval.is_zero() && !settings.checks_inside() {
        true => settings.ephemeral_checks_healthy_threshold,
        false => 1,
    }
}

/// How long a checker's finding is believed, in milliseconds.
#[must_use]
pub fn fresh_for_ms(settings: &Settings) -> u64 {
    Rules::fresh_for(
        millis(settings.health_check_interval),
        millis(settings.ephemeral_checks_interval),
        millis(PROBE_TIMEOUT),
    )
}

struct Builder<'a> {
    settings: &'a Settings,
    memory: &'a Memory,
    before: &'a Fleet,
    gates: &'a Gates,
    now: u64,
    rules: Rules,
    tables: Arc<Tables>,
}

impl Builder<'_> {
    fn chain(&self, name: &str, endpoints: &[&EndpointConfig]) -> Result<Chain, BuildError> {
        let old = self.before.chain(name);
        let endpoints = endpoints
            .iter()
            .map(|config| self.endpoint(name, config, old.map(|chain| &**chain)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Chain {
            name: name.into(),
            number: old.map_or_else(next_number, |chain| chain.number),
            tables: Arc::clone(&self.tables),
            tiers: tiers(&endpoints, self.settings.public_first),
            endpoints,
            head: old.map_or_else(Arc::<Head>::default, |chain| Arc::clone(&chain.head)),
            told: old.map_or_else(Arc::<Head>::default, |chain| Arc::clone(&chain.told)),
            methods: old.map_or_else(Arc::<Methods>::default, |chain| Arc::clone(&chain.methods)),
            gate: self.gates.of_chain(name),
        })
    }

    fn endpoint(
        &self,
        chain: &str,
        config: &EndpointConfig,
        old: Option<&Chain>,
    ) -> Result<Endpoint, BuildError> {
        let refuse = |why| BuildError { chain: chain.to_owned(), endpoint: config.id.clone(), why };
        let target = |url| Target::new(url, &config.headers).map(Box::new).map_err(refuse);
        let http = config.http_url.as_ref().map(target).transpose()?;
        let same = |before: &&Endpoint| *before.id == *config.id && before.urls == urls(config);
        let old = old.and_then(|chain| chain.endpoints.iter().find(same));
        let place = config.http_url.as_ref().or(config.ws_url.as_ref());
        let place = place.map_or_else(String::new, |url| format!("{}:{}", url.host(), url.port()));
        Ok(Endpoint {
            id: config.id.as_str().into(),
            number: old.map_or_else(next_number, |before| before.number),
            urls: urls(config),
            provider: config.provider.as_str().into(),
            role: config.role,
            archive: config.archive,
            private: config.private,
            skip_sync_check: config.skip_sync_check,
            weight: config.weight,
            max_block_range: config.max_block_range,
            http,
            ws: config.ws_url.as_ref().map(target).transpose()?,
            account: self.account(config),
            address: self.memory.address(&place),
            state: self.state(old, config.http_url.is_none()),
            filter_tag: filter_tag(chain, &config.id),
        })
    }

    fn state(&self, old: Option<&Endpoint>, calls_over_ws: bool) -> Arc<EndpointState> {
        match old {
            Some(before) => {
                before.state.follow(self.rules, self.now);
                Arc::clone(&before.state)
            }
            None => Arc::new(EndpointState::new(self.rules, calls_over_ws)),
        }
    }

    fn account(&self, config: &EndpointConfig) -> Arc<Account> {
        let learning = self.learning(config);
        let limits = limits(config);
        let policy = match learning {
            Some(aimd::Params { mode: aimd::Mode::Steady, .. }) if limits.is_empty() => {
                policy(config).quick()
            }
            Some(_) | None => policy(config),
        };
        let rules = format!("{limits:?} {learning:?} {policy:?}");
        self.memory.account(&config.account, &rules, |before| {
            let learned = before.and_then(|before| before.gate.export());
            let gate = self.memory.gate(limits.clone(), learning, learned);
            Account::new(&config.account, policy, gate, before, self.now)
        })
    }

    fn learning(&self, config: &EndpointConfig) -> Option<aimd::Params> {
        let on = self.settings.capacity_learning_enabled && self.settings.capacity_throttling_enabled;
        let learning = &config.learning;
        on.then(|| aimd::Params {
            mode: match learning.mode {
                config::LearningMode::Aimd => aimd::Mode::Aimd,
                config::LearningMode::Steady => aimd::Mode::Steady,
            },
            decrease_factor: learning.decrease_factor,
            increase_interval_ms: millis(learning.increase_interval),
            min_estimate: learning.min_estimate,
            window_ms: learning.window.map(millis),
        })
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn limits(config: &EndpointConfig) -> Vec<Limit> {
    let mut limits = Vec::new();
    for capacity in &config.capacity {
        for (amount, unit) in
            [(capacity.max_requests, Unit::Requests), (capacity.max_compute_units, Unit::ComputeUnits)]
        {
            limits.extend(amount.map(|amount| Limit {
                amount: u32::try_from(amount).unwrap_or(u32::MAX),
                unit,
                window_ms: millis(capacity.window),
                smooth: capacity.smooth,
            }));
        }
    }
    limits
}

fn policy(config: &EndpointConfig) -> Policy {
    let block = config.recovery.as_ref().map(|block| Block {
        initial_backoff: block.initial_backoff,
        backoff_multiplier: block.backoff_multiplier,
        max_backoff: block.max_backoff,
        max_retries: block.max_retries,
        required_successes: block.required_successes,
        reset_after: block.reset_after,
    });
    Policy::new(block.as_ref())
}

/// What makes an endpoint another one although its id stays.
fn urls(config: &EndpointConfig) -> Box<str> {
    let text = |url: &Option<config::SecretUrl>| {
        url.as_ref().map_or_else(String::new, |url| url.expose().to_string())
    };
    format!("{} {}", text(&config.http_url), text(&config.ws_url)).into()
}

fn tiers(endpoints: &[Endpoint], public_first: bool) -> Vec<Tier> {
    let order = if public_first {
        [Role::Public, Role::Primary, Role::Fallback]
    } else {
        [Role::Primary, Role::Fallback, Role::Public]
    };
    let of_role = |role| {
        let members = (0u16..).zip(endpoints).filter(|(_, endpoint)| endpoint.role == role);
        Tier { role, order: members.map(|(index, _)| AtomicU16::new(index)).collect() }
    };
    order.into_iter().map(of_role).filter(|tier| !tier.order.is_empty()).collect()
}

/// The digits of an endpoint in ids of filters: a hash (FNV-1a, 32 bits) of its chain and id, the same in every process.
#[must_use]
pub fn filter_tag(chain: &str, endpoint: &str) -> [u8; 8] {
    let bytes = chain.bytes().chain([0]).chain(endpoint.bytes());
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let mut tag = [0; 8];
    tag.copy_from_slice(format!("{hash:08x}").as_bytes());
    tag
}

/// Numbers that are given once in the life of the process.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_different_digits() {
        let tags = [
            filter_tag("main", "a"),
            filter_tag("main", "b"),
            filter_tag("maina", ""),
            filter_tag("mai", "na"),
        ];
        for (i, left) in tags.iter().enumerate() {
            assert!(tags[i + 1..].iter().all(|right| left != right));
        }
    }
}
