//! One served model: its settings, its answers, its engine and its counters.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::answer::ServedAnswer;
use crate::answers::Purpose;
use crate::config::ModelConfig;
use crate::latency::blocks::{BLOCK_BYTES, block_hashes};
use crate::latency::{EngineFinished, EngineJob, EngineLoad};
use crate::metrics::{EndReason, SimModelMetrics};
use crate::pace::{Pacer, Ticket};
use crate::tokenizer;
use crate::wire::reply::SimUsage;
use crate::wire::request::Generation;

/// One served model.
pub(super) struct SimModel {
    pub(super) config: ModelConfig,
    pub(super) purpose: Purpose,
    pub(super) metrics: Arc<SimModelMetrics>,
    /// `None` if the model takes no time.
    pacer: Option<Pacer>,
}

impl SimModel {
    pub(super) fn start(
        config: ModelConfig,
        purpose: Purpose,
        tasks: &TaskTracker,
        stop: CancellationToken,
    ) -> Self {
        let metrics = Arc::new(SimModelMetrics::default());
        let pacer = config.profile.engine().map(|mut settings| {
            settings.max_num_seqs = config.max_num_seqs.unwrap_or(settings.max_num_seqs);
            settings.num_gpu_blocks = config.num_gpu_blocks.unwrap_or(settings.num_gpu_blocks);
            let changes = config.capacity_at.iter().map(|change| change.of(settings.max_num_seqs)).collect();
            Pacer::start(settings, changes, metrics.clone(), tasks, stop)
        });
        Self { config, purpose, metrics, pacer }
    }

    pub(super) fn name(&self) -> &str {
        &self.config.name
    }

    /// The gauges as of now.
    pub(super) fn load(&self) -> EngineLoad {
        self.metrics.load(self.pacer.as_ref().map(Pacer::load).unwrap_or_default())
    }

    /// Tokens generated so far. vLLM counts them as they are made, and those of embedders and classifiers not at all.
    pub(super) fn generated(&self) -> u64 {
        match (&self.purpose, &self.pacer) {
            (Purpose::Chat(_), Some(pacer)) => pacer.generated(),
            _ => self.metrics.generation_tokens.load(Relaxed),
        }
    }

    /// Starts an answer; `None` if it takes no time.
    pub(super) fn run(
        &self,
        generation: &Generation,
        prompt_tokens: u32,
        answer: &ServedAnswer,
    ) -> Option<Ticket> {
        let pacer = self.pacer.as_ref()?;
        let mut job = EngineJob { prompt_tokens, output_tokens: answer.tokens(), ..EngineJob::default() };
        if pacer.caches_prefixes() {
            (job.prompt_blocks, job.answer_blocks) = blocks(generation, answer);
        }
        Some(pacer.submit(job))
    }

    /// Starts reading a text without generating; `None` if it takes no time.
    pub(super) fn read(&self, tokens: u32) -> Option<Ticket> {
        // The one token that every job makes stands for the text's last.
        let job =
            EngineJob { prompt_tokens: tokens.saturating_sub(1), output_tokens: 1, ..EngineJob::default() };
        Some(self.pacer.as_ref()?.submit(job))
    }

    /// Counts an answer as given; the token counts as this model reports them.
    pub(super) fn served(
        &self,
        prompt_tokens: u32,
        answer: &ServedAnswer,
        times: EngineFinished,
    ) -> SimUsage {
        let completion_tokens = answer.tokens();
        self.metrics.served(prompt_tokens, completion_tokens, answer.reason, times);
        let cached_tokens = self.config.enable_prompt_tokens_details.then_some(times.cached_tokens);
        SimUsage { prompt_tokens, completion_tokens, cached_tokens }
    }

    /// Never answers. The request counts as running until its client gives up.
    pub(super) async fn hang<T>(&self) -> T {
        let _running = Hanging::new(&self.metrics);
        std::future::pending().await
    }
}

/// The hashes of the full blocks of the prompt, and of those that the answer fills.
fn blocks(generation: &Generation, answer: &ServedAnswer) -> (Vec<u64>, Vec<u64>) {
    let mut text = tokenizer::render(&generation.messages);
    let in_prompt = text.len() / BLOCK_BYTES;
    text.push_str(&answer.text);
    let mut prompt = block_hashes(&text);
    let answer = prompt.split_off(in_prompt);
    (prompt, answer)
}

/// A request that a fault keeps unanswered.
struct Hanging<'a>(&'a SimModelMetrics);

impl<'a> Hanging<'a> {
    fn new(metrics: &'a SimModelMetrics) -> Self {
        metrics.hanging.fetch_add(1, Relaxed);
        Self(metrics)
    }
}

impl Drop for Hanging<'_> {
    fn drop(&mut self) {
        self.0.hanging.fetch_sub(1, Relaxed);
        self.0.ended(EndReason::Abort);
    }
}
