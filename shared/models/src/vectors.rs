//! The vectors of texts that were embedded already. A description is compared with the answers of every model, in runs of their
//! own: while its vector is remembered, no text is embedded twice, also by dialogues that need it at the same time.
//!
//! What is remembered is bounded by its bytes; the text that came first is forgotten first. It is an economy and nothing more: a worker
//! that forgot a text embeds it again, and comes to the same.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::embed::EmbedReply;
use crate::error::CallError;

/// Maximum size of the texts and vectors that are remembered, in bytes.
const REMEMBERED_BYTES_MAX: usize = 64 << 20;

/// What a vector is expected to take, in bytes: 1 024 numbers of four.
const VECTOR_BYTES: usize = 4_096;

/// A vector that is known, or that somebody asks for just now.
type VectorPlace = Arc<OnceCell<EmbedReply>>;

/// See the text of the module.
#[derive(Debug, Default)]
pub struct KnownVectors(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    /// By embedder and text.
    places: HashMap<Arc<(String, String)>, VectorPlace>,
    /// In the order in which they came.
    order: VecDeque<Arc<(String, String)>>,
    bytes: usize,
}

impl KnownVectors {
    /// The vector of a text by an embedder, which is asked for it by `embed` unless somebody has or does.
    ///
    /// # Errors
    /// Those of `embed`; nothing is remembered then.
    pub(crate) async fn of(
        &self,
        embedder: &str,
        text: &str,
        embed: impl Future<Output = Result<EmbedReply, CallError>> + Send,
    ) -> Result<EmbedReply, CallError> {
        let place = self.place(embedder, text);
        place.get_or_try_init(|| embed).await.cloned()
    }

    fn place(&self, embedder: &str, text: &str) -> VectorPlace {
        let key = Arc::new((embedder.to_owned(), text.to_owned()));
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = remembered.places.get(&key) {
            return Arc::clone(place);
        }
        remembered.bytes += size(&key);
        while remembered.bytes > REMEMBERED_BYTES_MAX {
            let Some(first) = remembered.order.pop_front() else { break };
            remembered.bytes -= size(&first);
            remembered.places.remove(&first);
        }
        let place = VectorPlace::default();
        remembered.places.insert(Arc::clone(&key), Arc::clone(&place));
        remembered.order.push_back(key);
        place
    }
}

fn size(key: &(String, String)) -> usize {
    key.0.len() + key.1.len() + VECTOR_BYTES
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use domain::{FailureCause, RetryAdvice, Usage};

    use super::*;
    use crate::embed::Embedding;

    async fn ask(known: &KnownVectors, asked: &AtomicUsize, embedder: &str, text: &str) {
        let embed = async {
            tokio::task::yield_now().await;
            asked.fetch_add(1, Ordering::SeqCst);
            let embedding = Embedding::new(vec![text.len() as f32 + 1.0]).unwrap();
            Ok(EmbedReply { embedding, usage: Usage::default(), reported_model: None })
        };
        known.of(embedder, text, embed).await.unwrap();
    }

    #[tokio::test]
    async fn a_text_is_embedded_once_also_by_those_who_ask_at_once() {
        let (known, asked) = (KnownVectors::default(), AtomicUsize::new(0));
        futures::future::join_all((0..8).map(|_| ask(&known, &asked, "e", "a"))).await;
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        ask(&known, &asked, "e", "b").await;
        ask(&known, &asked, "another", "a").await;
        assert_eq!(asked.load(Ordering::SeqCst), 3);
    }

    #[tokio::test]
    async fn what_failed_is_asked_again() {
        let (known, asked) = (KnownVectors::default(), AtomicUsize::new(0));
        let failed = async { Err(CallError::new(FailureCause::Server, RetryAdvice::No, "no")) };
        assert!(known.of("e", "a", failed).await.is_err());
        ask(&known, &asked, "e", "a").await;
        assert_eq!(asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn more_than_fits_is_forgotten_from_the_front() {
        let (known, asked) = (KnownVectors::default(), AtomicUsize::new(0));
        let long = |letter: &str| letter.repeat(REMEMBERED_BYTES_MAX / 2 - VECTOR_BYTES - 1);
        let (first, second, third) = (long("a"), long("b"), long("c"));
        for text in [&first, &second, &second, &third, &second, &first] {
            ask(&known, &asked, "e", text).await;
        }
        assert_eq!(asked.load(Ordering::SeqCst), 4, "the first was forgotten for the third");
    }
}
