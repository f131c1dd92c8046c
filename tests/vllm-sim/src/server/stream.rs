//! A streamed answer: one event per token, as the engine makes them.

use std::sync::Arc;

use bytes::Bytes;
use futures::Stream;

use super::answer::ServedAnswer;
use super::body::{BrokenOff, break_off};
use super::generate::finished;
use super::model::SimModel;
use crate::pace::Ticket;
use crate::wire::reply::{DONE, EventMould, ReplyHead};

/// A streamed answer in progress.
pub(super) struct Streamer {
    model: Arc<SimModel>,
    prompt_tokens: u32,
    include_usage: bool,
    answer: ServedAnswer,
    run: Option<Ticket>,
    head: ReplyHead,
    mould: EventMould,
    /// The connection is closed after so many tokens.
    cut_after: Option<u32>,
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
        prompt_tokens: u32,
        include_usage: bool,
        answer: ServedAnswer,
        run: Option<Ticket>,
        head: ReplyHead,
        cut_after: Option<u32>,
    ) -> Self {
        let mould = head.mould();
        let (sent, over) = (0, false);
        Self { model, prompt_tokens, include_usage, answer, run, head, mould, cut_after, sent, over }
    }

    pub(super) fn into_stream(self) -> impl Stream<Item = Result<Bytes, BrokenOff>> + Send {
        futures::stream::unfold(self, |mut streamer| async move {
            if streamer.over {
                return None;
            }
            Some((streamer.next().await, streamer))
        })
    }

    /// The next events, all those whose time has come.
    async fn next(&mut self) -> Result<Bytes, BrokenOff> {
        let total = self.answer.tokens();
        let until = self.cut_after.unwrap_or(total).min(total);
        if self.cut_after.is_some() && self.sent >= until {
            self.over = true;
            return break_off().await;
        }
        let ready = match &self.run {
            None => u32::MAX,
            Some(ticket) => ticket.tokens_beyond(self.sent).await,
        };
        let until = ready.min(until).min(self.sent.saturating_add(PIECE_TOKENS));
        let mut out = Vec::with_capacity((until - self.sent + 3) as usize * EVENT_BYTES);
        if self.sent == 0 {
            self.head.write_opening(&mut out);
        }
        for (number, text) in (self.sent + 1..=until).zip(self.answer.tokens_from(self.sent)) {
            if number < total {
                self.mould.write(&mut out, text);
            } else {
                self.head.write_token(&mut out, text, Some(self.answer.end()));
            }
        }
        self.sent = until;
        if self.sent == total && self.cut_after.is_none() {
            self.over = true;
            let times = finished(self.run.as_ref()).await;
            let usage = self.model.served(self.prompt_tokens, &self.answer, times);
            if self.include_usage {
                self.head.write_usage(&mut out, usage);
            }
            out.extend_from_slice(DONE);
        }
        Ok(out.into())
    }
}
