//! Asks a model at one server, and at a second one if the first token does not come.
//!
//! The server that begins to answer first is waited for, and the other call is dropped before it has said anything. So
//! which answer counts does not depend on what the answers say or on how long they are, and there is no best of two. When
//! a call is late is decided in [`tail`](crate::tail), and which server is the second one in `work::late`.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::record::{HedgeEnd, HedgedCall};
use domain::{FailureCause, MadeAt};
use futures::future::BoxFuture;
use jiff::Timestamp;
use models::{CallError, ChatModel, ChatReply, ChatRequest, ModelIdentity, Progress};
use tokio::sync::SetOnce;
use tokio::time::Instant;

/// A server of a model, as dialogues ask it.
pub struct AskedServer {
    /// Who answers.
    pub model: Arc<dyn ChatModel>,
    /// Its name in metrics and records.
    pub name: Arc<str>,
    /// Where its records are made; `None` to say nothing of it.
    pub made_at: Option<MadeAt>,
}

impl fmt::Debug for AskedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AskedServer").field(&self.name).finish()
    }
}

/// How a dialogue is told of a second server. Clones share it. It is told once: no dialogue asks more than two servers.
#[derive(Clone, Debug, Default)]
pub struct SecondServer(Arc<SetOnce<Told>>);

#[derive(Debug)]
struct Told {
    /// When the call was sent that is late.
    sent: Instant,
    server: Arc<AskedServer>,
}

impl SecondServer {
    /// The call that was sent at this time is late: it is to be made at this server, too. If it has begun to be
    /// answered meanwhile, nothing happens.
    pub fn tell(&self, sent: Instant, server: Arc<AskedServer>) {
        // Whoever was told before stays so.
        let _ = self.0.set(Told { sent, server });
    }
}

/// One round of a dialogue, asked at one server or at two.
pub(crate) struct Asking<'a> {
    first: &'a AskedServer,
    second: &'a SecondServer,
    now: fn() -> Timestamp,
    state: Mutex<AskingState<'a>>,
}

struct AskingState<'a> {
    /// The server that answers, as far as is known.
    server: &'a AskedServer,
    hedged: Vec<HedgedCall>,
}

/// One of two calls under way.
struct Call<'a> {
    server: &'a AskedServer,
    sent_at: Timestamp,
    reply: BoxFuture<'a, Result<ChatReply, CallError>>,
    progress: Progress,
}

impl Call<'_> {
    /// Waits until it begins to be answered, or is over: then with what came of it.
    async fn begins(&mut self) -> Option<Result<ChatReply, CallError>> {
        tokio::select! {
            biased;
            reply = &mut self.reply => Some(reply),
            () = self.progress.begun() => None,
        }
    }
}

impl<'a> Asking<'a> {
    pub(crate) fn new(first: &'a AskedServer, second: &'a SecondServer, now: fn() -> Timestamp) -> Self {
        Self { first, second, now, state: Mutex::new(AskingState { server: first, hedged: Vec::new() }) }
    }

    /// The server that answered, or was asked last, and the calls of which there were two.
    pub(crate) fn ended(self) -> (&'a AskedServer, Vec<HedgedCall>) {
        let AskingState { server, hedged } = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        (server, hedged)
    }

    /// Waits for the call that begins to be answered first.
    async fn race(&self, round: u32, mut one: Call<'a>, mut two: Call<'a>) -> Result<ChatReply, CallError> {
        let hedged = |call: &Call<'_>, end, cause: Option<FailureCause>| HedgedCall {
            round,
            server: call.server.name.to_string(),
            sent_at: call.sent_at,
            ended_at: (self.now)(),
            end,
            cause,
        };
        let over = |call: &Call<'_>, reply: &Result<ChatReply, CallError>| match reply {
            Ok(_) => hedged(call, HedgeEnd::Answered, None),
            Err(error) => hedged(call, HedgeEnd::Failed, Some(error.cause)),
        };
        let dialogue = one.progress.clone();
        let (is_second, begun) = tokio::select! {
            biased;
            begun = one.begins() => (false, begun),
            begun = two.begins() => (true, begun),
        };
        let (mut ahead, mut behind) = if is_second { (two, one) } else { (one, two) };
        let (reply, server, mut calls) = match begun {
            Some(Err(error)) => {
                let failed = over(&ahead, &Err(error));
                let reply = (&mut behind.reply).await;
                let other = over(&behind, &reply);
                // Neither has answered: the round goes on where it was asked first.
                let server = if reply.is_ok() { behind.server } else { self.server() };
                (reply, server, vec![failed, other])
            }
            begun => {
                let dropped = hedged(&behind, HedgeEnd::Dropped, None);
                drop(behind);
                if is_second {
                    // What looks at the dialogue from outside sees that it is answered.
                    dialogue.token();
                }
                self.state().server = ahead.server;
                let reply = match begun {
                    Some(reply) => reply,
                    None => (&mut ahead.reply).await,
                };
                let other = over(&ahead, &reply);
                (reply, ahead.server, vec![other, dropped])
            }
        };
        if is_second {
            // In the order in which they were sent.
            calls.reverse();
        }
        let mut state = self.state();
        state.server = server;
        state.hedged.extend(calls);
        reply
    }

    fn server(&self) -> &'a AskedServer {
        self.state().server
    }

    fn state(&self) -> MutexGuard<'_, AskingState<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait::async_trait]
impl ChatModel for Asking<'_> {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        let (server, round) = (self.server(), request.round);
        let sent = request.progress.latest().map(|(sent, _)| sent);
        let sent_at = (self.now)();
        let progress = request.progress.clone();
        let mut reply = server.model.complete(request.clone());
        let told = tokio::select! {
            biased;
            reply = &mut reply => return reply,
            told = self.second.0.wait() => told,
        };
        // It may have been told of an earlier call, or too late for this one.
        if sent != Some(told.sent) || progress.silent_since().is_none() {
            return reply.await;
        }
        let one = Call { server, sent_at, reply, progress };
        let progress = Progress::default();
        progress.sent();
        let (server, again) = (&*told.server, ChatRequest { progress: progress.clone(), ..request });
        let reply = server.model.complete(again);
        let two = Call { server, sent_at: (self.now)(), reply, progress };
        self.race(round, one, two).await
    }

    fn identity(&self) -> &ModelIdentity {
        self.first.model.identity()
    }
}

#[cfg(test)]
mod tests;
