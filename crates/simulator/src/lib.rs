//! Scripted JSON-RPC providers with true limits.
