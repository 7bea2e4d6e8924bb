//! The scripts, by the hash that Valkey knows them by.

use fred::util::sha1_hash;

/// A script and its hash.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) source: &'static str,
    pub(crate) sha: String,
}

/// All there are.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) lease: Script,
    pub(crate) give_back: Script,
    pub(crate) sync: Script,
    pub(crate) swap: Script,
    pub(crate) claim: Script,
    pub(crate) release: Script,
    pub(crate) report: Script,
    pub(crate) reports: Script,
    pub(crate) forget: Script,
    pub(crate) flags: Script,
    pub(crate) limit: Script,
    pub(crate) credit: Script,
    pub(crate) slots: Script,
    pub(crate) presence: Script,
}

impl Scripts {
    pub(crate) fn new() -> Scripts {
        let script = |source: &'static str| Script { source, sha: sha1_hash(source) };
        Scripts {
            lease: script(concat!(include_str!("call.lua"), include_str!("lease.lua"))),
            give_back: script(concat!(include_str!("call.lua"), include_str!("return.lua"))),
            sync: script(concat!(include_str!("call.lua"), include_str!("sync.lua"))),
            swap: script(concat!(include_str!("call.lua"), include_str!("swap.lua"))),
            claim: script(concat!(include_str!("call.lua"), include_str!("claim.lua"))),
            release: script(concat!(include_str!("call.lua"), include_str!("release.lua"))),
            report: script(concat!(include_str!("call.lua"), include_str!("report.lua"))),
            reports: script(concat!(include_str!("call.lua"), include_str!("reports.lua"))),
            forget: script(concat!(include_str!("call.lua"), include_str!("forget.lua"))),
            flags: script(concat!(include_str!("call.lua"), include_str!("flags.lua"))),
            limit: script(concat!(include_str!("call.lua"), include_str!("limit.lua"))),
            credit: script(concat!(include_str!("call.lua"), include_str!("credit.lua"))),
            slots: script(concat!(include_str!("call.lua"), include_str!("slots.lua"))),
            presence: script(concat!(include_str!("call.lua"), include_str!("presence.lua"))),
        }
    }
}
