//! Shared state of a fleet: usage, parks and ceilings of accounts.
