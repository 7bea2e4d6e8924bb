//! Learned ceilings: decrease, cooldown, growth. Pure.
