//! For the tests: numbers that look random and are the same in every run.

/// splitmix64, by Sebastiano Vigna.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Evenly spread between `min` and `max`.
    pub(crate) fn between(&mut self, min: f64, max: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        min + (max - min) * ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
