//! Vectors of texts: the trait of models that give them, what goes in and out, and how near two of them are.

use std::sync::Arc;
use std::time::Duration;

use domain::{DialogueKey, FailureCause, RetryAdvice, Usage};
use futures::future::BoxFuture;

use crate::chat::ModelIdentity;
use crate::error::CallError;

/// The most texts of one request. Servers take more (OpenAI 2048), but one answer then holds megabytes of digits.
pub const TEXTS_MAX: usize = 256;

/// The longest text, in bytes. No embedder's context holds as much, so it is refused as too long unsent.
pub const TEXT_BYTES_MAX: usize = 4 << 20;

/// The most bytes of all texts of one request together: what one call may keep in memory, a few times over.
pub const REQUEST_BYTES_MAX: usize = 16 << 20;

/// Something that turns texts into vectors. One call is one attempt, as with [`crate::ChatModel`].
pub trait EmbedModel: Send + Sync {
    /// Asks once.
    ///
    /// # Errors
    /// Whatever kept the model from answering, and answers that are no vectors of one length.
    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<EmbedReply, CallError>>;

    /// Who is asked, for records and messages.
    fn identity(&self) -> &ModelIdentity;
}

/// Some texts for a model. Cloning is cheap: the texts are shared.
#[derive(Clone, Debug)]
pub struct EmbedRequest {
    /// One to [`TEXTS_MAX`] texts of at most [`TEXT_BYTES_MAX`] bytes each, [`REQUEST_BYTES_MAX`] together.
    pub texts: Arc<[String]>,
    /// The most time this one call may take.
    pub deadline: Duration,
    /// The dialogue that asks: what makes back-off delays repeatable.
    pub key: DialogueKey,
    /// Round of the dialogue, from 0.
    pub round: u32,
}

impl EmbedRequest {
    /// Refuses what no server should be sent.
    pub(crate) fn check(&self) -> Result<(), CallError> {
        count_within("texts", self.texts.len(), TEXTS_MAX)?;
        self.texts.iter().enumerate().try_for_each(|(at, text)| length_within("text", at, text))?;
        size_within(self.texts.iter().map(String::len).sum())
    }
}

/// Refuses a request of nothing or of too much.
pub(crate) fn count_within(what: &str, count: usize, count_max: usize) -> Result<(), CallError> {
    if (1..=count_max).contains(&count) {
        return Ok(());
    }
    let message = format!("a request takes 1 to {count_max} {what}, not {count}");
    Err(CallError::new(FailureCause::BadRequest, RetryAdvice::No, message))
}

/// Refuses a text beyond [`TEXT_BYTES_MAX`].
pub(crate) fn length_within(what: &str, at: usize, text: &str) -> Result<(), CallError> {
    if text.len() <= TEXT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("{what} {at} has {} bytes, at most {TEXT_BYTES_MAX} are sent", text.len());
    Err(CallError::new(FailureCause::ContextExceeded, RetryAdvice::No, message))
}

/// Refuses a request beyond [`REQUEST_BYTES_MAX`].
pub(crate) fn size_within(bytes: usize) -> Result<(), CallError> {
    if bytes <= REQUEST_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "the texts of a request have {bytes} bytes, at most {REQUEST_BYTES_MAX} are sent: ask in parts"
    );
    Err(CallError::new(FailureCause::BadRequest, RetryAdvice::No, message))
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub struct EmbedReply {
    /// One vector for each text, in their order, all of one length.
    pub embeddings: Vec<Embedding>,
    /// Tokens of all texts together.
    pub usage: Usage,
    /// The model name in the server's answer; it may differ from the one asked for.
    pub reported_model: Option<String>,
}

/// A vector that has a direction: not empty, all numbers finite, not all of them zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Embedding(Vec<f32>);

/// Numbers that are no [`Embedding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadVector {
    /// There are none.
    #[error("a vector without numbers")]
    Empty,
    /// One is infinite or not a number.
    #[error("number {at} of a vector is not finite")]
    NotFinite {
        /// Which one, from 0.
        at: usize,
    },
    /// Nothing is near to the origin, or far from it.
    #[error("a vector of zeros")]
    Zero,
}

impl Embedding {
    /// Checks the numbers.
    ///
    /// # Errors
    /// What keeps them from having a direction.
    pub fn new(numbers: Vec<f32>) -> Result<Self, BadVector> {
        if numbers.is_empty() {
            return Err(BadVector::Empty);
        }
        if let Some(at) = numbers.iter().position(|number| !number.is_finite()) {
            return Err(BadVector::NotFinite { at });
        }
        if numbers.iter().all(|number| *number == 0.0) {
            return Err(BadVector::Zero);
        }
        Ok(Self(numbers))
    }

    /// The numbers; at least one.
    pub fn numbers(&self) -> &[f32] {
        &self.0
    }

    /// How near two vectors are: the cosine of their angle, -1 to 1. None for vectors of different lengths, which
    /// come from different models and have nothing to do with each other.
    pub fn cosine(&self, other: &Self) -> Option<f64> {
        // In f64 no sum of f32 products overflows, and none of a vector that is not zero vanishes.
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
        assert_eq!(Embedding::new(vec![]), Err(BadVector::Empty));
        assert_eq!(Embedding::new(vec![0.0, -0.0]), Err(BadVector::Zero));
        for number in [f32::NAN, f32::INFINITY] {
            assert_eq!(Embedding::new(vec![1.0, number]), Err(BadVector::NotFinite { at: 1 }));
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
    fn requests_are_bounded() {
        let request = |texts: Vec<String>| EmbedRequest {
            texts: texts.into(),
            deadline: Duration::from_secs(1),
            key: DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 },
            round: 0,
        };
        assert!(request(vec![String::new(); TEXTS_MAX]).check().is_ok());
        for count in [0, TEXTS_MAX + 1] {
            let error = request(vec![String::new(); count]).check().unwrap_err();
            assert_eq!((error.cause, error.retry), (FailureCause::BadRequest, RetryAdvice::No));
        }
        let error = request(vec![String::new(), "x".repeat(TEXT_BYTES_MAX + 1)]).check().unwrap_err();
        assert_eq!(error.cause, FailureCause::ContextExceeded);
        assert!(error.message.contains("text 1 has 4194305 bytes"), "{error}");
        let most = REQUEST_BYTES_MAX / TEXT_BYTES_MAX;
        assert!(request(vec!["x".repeat(TEXT_BYTES_MAX); most]).check().is_ok());
        let error = request(vec!["x".repeat(TEXT_BYTES_MAX); most + 1]).check().unwrap_err();
        assert_eq!((error.cause, error.retry), (FailureCause::BadRequest, RetryAdvice::No));
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
