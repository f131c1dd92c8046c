//! Seeds: everything random about a dialogue is a function of the run's seed and the dialogue's key.

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

/// The sampling seed of a dialogue that is asked again and may be answered otherwise: it differs for each retry, which a
/// number tells from others.
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
    // Servers read seeds as signed 64-bit or even as doubles: 53 bits survive both.
    u64::from_le_bytes(first) >> 11
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ModelLabel;

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
