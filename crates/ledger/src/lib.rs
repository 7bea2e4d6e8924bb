//! Windows, slots, usage and leased blocks: may one more be dispatched, and when again. Pure.
