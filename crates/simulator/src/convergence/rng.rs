//! Seeded chance: SplitMix64, so that a run is the same on every machine and with every version of a library.

/// A stream of numbers that follows from its seed.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 even bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Even in 0 ≤ x < 1.
    pub fn even(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The gap to the next of events that come at random, `rate` per unit of time on average.
    pub fn gap(&mut self, rate: f64) -> f64 {
        -(1.0 - self.even()).ln() / rate
    }

    /// True with this chance.
    pub fn chance(&mut self, chance: f64) -> bool {
        self.even() < chance
    }
}
