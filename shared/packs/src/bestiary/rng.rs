//! A pseudo-random generator of our own: published ones change their streams between releases, and the bestiary must
//! be the same graph for ever.

/// `SplitMix64` (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
pub(super) struct Rng(u64);

impl Rng {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to `bound - 1`. The bias of the remainder is below 2⁻⁴⁰ for the bounds used here.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
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
    fn the_stream_is_the_published_one() {
        // First outputs of the reference implementation for seed 1234567.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn distinct_numbers_are_distinct_and_in_range() {
        let mut drawn = Rng::new(7).distinct(12, 12);
        drawn.sort_unstable();
        assert_eq!(drawn, (0..12).collect::<Vec<_>>());
    }
}
