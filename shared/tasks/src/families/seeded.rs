//! Choices drawn from a question seed, the same for ever.
//!
//! A prompt must come out the same for a seed in every later version, or resumed and repeated runs would ask
//! something else. The generators of the `rand` crate are free to change between its versions, so this is SplitMix64
//! (Steele, Lea and Flood, OOPSLA 2014) written out; nothing here needs to be unpredictable.

/// A source of choices.
pub(crate) struct Seeded {
    state: u64,
}

impl Seeded {
    /// The choices that belong to a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next 64 bits.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// Puts items into an order drawn from the seed (Fisher and Yates). The modulo prefers some orders by less than
    /// one in 10^12, which no question notices.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, (self.next() % (last as u64 + 1)) as usize);
        }
    }

    /// 32 hexadecimal digits.
    pub(crate) fn hex(&mut self) -> String {
        format!("{:016x}{:016x}", self.next(), self.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choices_of_a_seed_never_change() {
        // The first value is the published one of SplitMix64 for seed 1234567.
        assert_eq!(Seeded::new(1_234_567).next(), 6_457_827_717_110_365_317);
        let mut order: Vec<u32> = (0..6).collect();
        Seeded::new(1).shuffle(&mut order);
        assert_eq!(order, [0, 1, 3, 2, 4, 5]);
        assert_eq!(Seeded::new(7).hex().len(), 32);
    }
}
