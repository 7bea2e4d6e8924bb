//! What the benchmark's programs share: [`serve`], one current-thread runtime per thread with connections dealt in turn, and
//! [`Histogram`]. Nothing here is part of what is measured except in `bare`, which is meant to be as thin as the libraries allow.

mod histogram;
mod serve;

pub use histogram::Histogram;
pub use serve::serve;
