//! What a provider's answer means. Pure.
