//! Random choices drawn from a question seed. They never change: every later version must generate the same prompt for a
//! seed, or resumed and repeated runs would ask something else.

use domain::seed::SplitMix64;

/// A source of choices.
pub(crate) struct Seeded(SplitMix64);

impl Seeded {
    /// The choices for a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// Shuffles items (Fisher and Yates). The modulo biases some orders by less than one in 10^12, which does not matter.
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
