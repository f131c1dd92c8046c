//! A streamed answer: one event per token, as the engine makes them.

use std::sync::Arc;

use bytes::Bytes;
use futures::Stream;

use super::answer::ServedAnswer;
use super::body::{BrokenOff, break_off};
use super::model::{SimModel, SimRun};
use crate::latency::EngineFinished;
use crate::wire::chunk::{ChunkHead, ChunkTemplate, ChunkToken, DONE, End};
use crate::wire::request::Generation;

/// How a stream ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    /// With `[DONE]`.
    Complete,
    /// After the last token, without `[DONE]`.
    WithoutDone,
    /// Never: the connection stays open and silent.
    Stall { after_tokens: u32 },
    /// The connection is closed.
    Cut { after_tokens: u32 },
}

/// A streamed answer in progress.
pub(super) struct Streamer {
    model: Arc<SimModel>,
    generation: Generation,
    prompt_tokens: u32,
    answer: ServedAnswer,
    run: SimRun,
    head: ChunkHead,
    template: ChunkTemplate,
    ending: Ending,
    /// Tokens sent.
    sent: u32,
    over: bool,
}

/// Tokens of one piece of body. Answers that take no time would else be one huge piece.
const PIECE_TOKENS: u32 = 256;
/// Bytes of one event, roughly: for the size of buffers.
const EVENT_BYTES: usize = 256;

impl Streamer {
    pub(super) fn new(
        model: Arc<SimModel>,
        generation: Generation,
        prompt_tokens: u32,
        answer: ServedAnswer,
        run: SimRun,
        head: ChunkHead,
        ending: Ending,
    ) -> Self {
        let template = head.template();
        Self { model, generation, prompt_tokens, answer, run, head, template, ending, sent: 0, over: false }
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Bytes, BrokenOff>> + Send {
        futures::stream::unfold(self, |mut streamer| async move {
            let piece = streamer.next().await?;
            Some((piece, streamer))
        })
    }

    /// The next events, all those whose time has come; `None` at the end.
    async fn next(&mut self) -> Option<Result<Bytes, BrokenOff>> {
        if self.over {
            return None;
        }
        match self.ending {
            Ending::Stall { after_tokens } if self.sent >= after_tokens => return self.model.hang().await,
            Ending::Cut { after_tokens } if self.sent >= after_tokens => {
                self.over = true;
                return Some(break_off().await);
            }
            _ => {}
        }
        let ready = match &mut self.run {
            SimRun::Instant => u32::MAX,
            SimRun::Paced(ticket) => match ticket.tokens_beyond(self.sent).await {
                Some(tokens) => tokens,
                None => return Some(Err(BrokenOff)),
            },
        };
        let total = self.answer.tokens();
        let until = match self.ending {
            Ending::Stall { after_tokens } | Ending::Cut { after_tokens } => after_tokens.min(total),
            Ending::Complete | Ending::WithoutDone => total,
        };
        let until = ready.min(until).min(self.sent.saturating_add(PIECE_TOKENS));
        let mut out = Vec::with_capacity((until - self.sent + 3) as usize * EVENT_BYTES);
        if self.sent == 0 {
            self.head.write_opening(&mut out);
        }
        let tokens = self.answer.tokens_from(self.sent);
        for (number, token) in (self.sent + 1..=until).zip(tokens) {
            match token {
                ChunkToken::Content(text) if number < total => self.template.write_content(&mut out, text),
                _ => {
                    let stop_reason = self.answer.stop_reason.as_deref();
                    let end = End { finish_reason: &self.answer.finish, stop_reason };
                    self.head.write_token(&mut out, token, (number == total).then_some(end));
                }
            }
        }
        self.sent = until;
        if self.sent == total && matches!(self.ending, Ending::Complete | Ending::WithoutDone) {
            self.over = true;
            let times = match &mut self.run {
                SimRun::Instant => EngineFinished::default(),
                SimRun::Paced(ticket) => match ticket.finished().await {
                    Some(times) => times,
                    None => return Some(Err(BrokenOff)),
                },
            };
            self.model.served(self.prompt_tokens, &self.answer, times);
            if self.generation.include_usage {
                let usage = self.model.usage(self.prompt_tokens, &self.answer, times);
                self.head.write_usage(&mut out, usage);
            }
            if matches!(self.ending, Ending::Complete) {
                out.extend_from_slice(DONE);
            }
        }
        Some(Ok(out.into()))
    }
}
