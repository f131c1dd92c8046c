//! Vectors of texts, and the similarity of two of them.

use domain::{FailureCause, RetryAdvice, Usage};

use crate::error::CallError;

/// Maximum size of a text, in bytes. No embedder's context holds as much, so a longer one is refused without sending
/// it.
pub const TEXT_BYTES_MAX: usize = 4 << 20;

/// Refuses a text beyond [`TEXT_BYTES_MAX`].
pub(crate) fn length_within(what: &str, text: &str) -> Result<(), CallError> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("{what} has {} bytes, at most {TEXT_BYTES_MAX} are sent", text.len());
    Err(CallError::new(FailureCause::ContextExceeded, RetryAdvice::No, message))
}

#[derive(Clone, Debug, PartialEq)]
pub struct EmbedReply {
    pub embedding: Embedding,
    /// Tokens of the text.
    pub usage: Usage,
    /// The model name in the server's answer; it may differ from the one asked for.
    pub reported_model: Option<String>,
}

/// A vector with a direction: not empty, all numbers finite, not all zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding(Vec<f32>);

impl Embedding {
    /// Checks the numbers.
    ///
    /// # Errors
    /// They have no direction; what they are, for people.
    pub fn new(numbers: Vec<f32>) -> Result<Self, &'static str> {
        if numbers.is_empty() {
            return Err("an empty vector");
        }
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err("a vector with a number that is not finite");
        }
        if numbers.iter().all(|number| *number == 0.0) {
            return Err("a vector of zeros");
        }
        Ok(Self(numbers))
    }

    /// The numbers; at least one.
    pub fn numbers(&self) -> &[f32] {
        &self.0
    }

    /// Cosine similarity of two vectors, -1 to 1. `None` for vectors of different lengths, which come from different
    /// models.
    pub fn cosine(&self, other: &Self) -> Option<f64> {
        // In f64, sums of f32 products neither overflow nor vanish.
        let dot = |a: &Self, b: &Self| -> f64 {
            a.0.iter().zip(&b.0).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
        };
        let lengths = dot(self, self).sqrt() * dot(other, other).sqrt();
        (self.0.len() == other.0.len()).then(|| (dot(self, other) / lengths).clamp(-1.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_numbers_with_a_direction_are_a_vector() {
        for numbers in [vec![], vec![0.0, -0.0], vec![1.0, f32::NAN], vec![1.0, f32::INFINITY]] {
            assert!(Embedding::new(numbers.clone()).is_err(), "{numbers:?}");
        }
    }

    #[test]
    fn cosines_are_those_of_the_angle() {
        let vector = |numbers: &[f32]| Embedding::new(numbers.to_vec()).unwrap();
        let is = |a: &[f32], b: &[f32], cosine: f64| {
            let got = vector(a).cosine(&vector(b)).unwrap();
            assert!((got - cosine).abs() < 1e-12, "{a:?} {b:?}: {got}");
        };
        is(&[1.0, 0.0], &[0.0, 3.0], 0.0);
        is(&[3.0, 4.0], &[4.0, 3.0], 24.0 / 25.0);
        is(&[2.0], &[-1.0], -1.0);
        // Neither overflow nor underflow.
        is(&[f32::MAX; 2], &[f32::MAX; 2], 1.0);
        is(&[f32::MIN_POSITIVE; 2], &[f32::MAX; 2], 1.0);
        assert_eq!(vector(&[1.0]).cosine(&vector(&[1.0, 0.0])), None);
    }

    #[test]
    fn texts_are_bounded() {
        assert!(length_within("the text", &"x".repeat(TEXT_BYTES_MAX)).is_ok());
        let error = length_within("the text", &"x".repeat(TEXT_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(error.cause, FailureCause::ContextExceeded);
        assert!(error.message.contains("the text has 4194305 bytes"), "{error}");
    }

    proptest! {
        #[test]
        fn a_cosine_is_a_number_between_minus_one_and_one(
            pair in prop::collection::vec((any::<f32>(), any::<f32>()), 1..20)
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = pair.into_iter().unzip();
            if let (Ok(a), Ok(b)) = (Embedding::new(a), Embedding::new(b)) {
                let cosine = a.cosine(&b).unwrap();
                prop_assert!((-1.0..=1.0).contains(&cosine), "{cosine}");
                prop_assert!((a.cosine(&a).unwrap() - 1.0).abs() < 1e-9);
            }
        }
    }
}
