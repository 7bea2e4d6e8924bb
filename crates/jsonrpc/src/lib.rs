//! JSON-RPC envelopes without copying payloads. Pure.
