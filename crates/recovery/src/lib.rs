//! When a parked account is back. Pure.
