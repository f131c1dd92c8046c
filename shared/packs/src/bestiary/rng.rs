//! The random numbers that the bestiary is drawn from. They must never change, because the graph must stay the same.

use domain::seed::SplitMix64;

pub(super) struct Rng(SplitMix64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// A number from 0 to `bound - 1`. The bias of the remainder is below 2⁻⁴⁰ for the bounds used here.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.0.next_u64() % bound as u64) as usize
    }

    /// `count` distinct numbers from 0 to `bound - 1`, in the order drawn. `count` must not exceed `bound`.
    pub(super) fn distinct(&mut self, count: usize, bound: usize) -> Vec<usize> {
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let number = self.below(bound);
            if !drawn.contains(&number) {
                drawn.push(number);
            }
        }
        drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_numbers_are_distinct_and_in_range() {
        let mut drawn = Rng::new(7).distinct(12, 12);
        drawn.sort_unstable();
        assert_eq!(drawn, (0..12).collect::<Vec<_>>());
    }
}
