//! Choices drawn from a question seed, the same for ever: a prompt must come out the same for a seed in every later
//! version, or resumed and repeated runs would ask something else.

use domain::seed::SplitMix64;

/// A source of choices.
pub(crate) struct Seeded(SplitMix64);

impl Seeded {
    /// The choices that belong to a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Puts items into an order drawn from the seed (Fisher and Yates). The modulo prefers some orders by less than
    /// one in 10^12, which no question notices.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, (self.0.next_u64() % (last as u64 + 1)) as usize);
        }
    }

    /// 32 hexadecimal digits.
    pub(crate) fn hex(&mut self) -> String {
        format!("{:016x}{:016x}", self.0.next_u64(), self.0.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choices_of_a_seed_never_change() {
        let mut order: Vec<u32> = (0..6).collect();
        Seeded::new(1).shuffle(&mut order);
        assert_eq!(order, [0, 1, 3, 2, 4, 5]);
        assert_eq!(Seeded::new(7).hex().len(), 32);
    }
}
