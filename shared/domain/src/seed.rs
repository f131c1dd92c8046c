//! Seeds: everything random about a dialogue is a function of the run's seed and the dialogue's key. Nothing here may
//! change its numbers: recorded runs are repeated by them.

use sha2::{Digest, Sha256};

use crate::ids::{DialogueKey, Iteration, TaskLabel};

/// The sampling seed of one dialogue: differs between any two keys, equal for equal (run seed, key).
pub fn dialogue_seed(run_seed: u64, key: &DialogueKey) -> u64 {
    hash(run_seed, "dialogue", &[key.model.as_str(), key.task.as_str()], key.iteration)
}

/// The seed of everything random in the question itself, such as the order of statements of a graph. It leaves
/// the model out, so that every model is asked the same.
pub fn question_seed(run_seed: u64, task: &TaskLabel, iteration: Iteration) -> u64 {
    hash(run_seed, "question", &[task.as_str()], iteration)
}

/// The sampling seed of a dialogue that is asked again, so that the model may answer differently. `retry` is a number
/// that no other retry of the run has.
pub fn retry_seed(dialogue_seed: u64, retry: u64) -> u64 {
    hash(dialogue_seed, "retry", &[&retry.to_string()], 0)
}

fn hash(run_seed: u64, purpose: &str, names: &[&str], iteration: Iteration) -> u64 {
    let mut hasher = Sha256::new();
    hasher.update(run_seed.to_le_bytes());
    for text in std::iter::once(&purpose).chain(names) {
        // Length first, so that ("ab", "c") and ("a", "bc") differ.
        hasher.update((text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    hasher.update(iteration.to_le_bytes());
    let digest = hasher.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    // Some servers parse seeds as signed 64-bit integers or even as doubles: 53 bits survive both.
    u64::from_le_bytes(first) >> 11
}

/// A generator of pseudorandom numbers that will give the same numbers for a seed in every version: SplitMix64 (Steele,
/// Lea, Flood, *Fast Splittable Pseudorandom Number Generators*, OOPSLA 2014). The crate `rand` does not promise that.
/// Its numbers are predictable; use it for nothing secret.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        Self::mix(self.0)
    }

    /// The next number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        // 53 bits fill the mantissa of an f64 exactly.
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Spreads the bits of a number over all of it: the generator's output function.
    pub fn mix(mut z: u64) -> u64 {
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ModelLabel;

    #[test]
    fn the_stream_is_the_published_one() {
        // First outputs of the reference implementation for seed 1234567.
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    fn key(model: &str, task: &str, iteration: Iteration) -> DialogueKey {
        DialogueKey { model: ModelLabel::new(model), task: TaskLabel::new(task), iteration }
    }

    #[test]
    fn seeds_depend_on_every_part_of_the_key() {
        let base = dialogue_seed(1, &key("m", "t", 0));
        assert_eq!(base, dialogue_seed(1, &key("m", "t", 0)));
        for other in [
            dialogue_seed(2, &key("m", "t", 0)),
            dialogue_seed(1, &key("mt", "", 0)),
            dialogue_seed(1, &key("m", "t2", 0)),
            dialogue_seed(1, &key("m", "t", 1)),
            question_seed(1, &TaskLabel::new("t"), 0),
        ] {
            assert_ne!(base, other);
        }
        assert!(base < 1 << 53);
        assert!(retry_seed(base, 1) != base && retry_seed(base, 1) != retry_seed(base, 2));
    }
}
