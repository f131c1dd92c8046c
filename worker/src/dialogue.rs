//! One dialogue, from its first prompt to its record.
//!
//! The prompts are a function of run seed, key and verdicts. Between two attempts only time, worker and the model's
//! answers differ. To change what is asked or how it is judged, see the crate `tasks`; here is only the order of calls.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use domain::dialogue::FailedCall;
use domain::record::{HedgeEnd, HedgedCall};
use domain::seed::{dialogue_seed, question_seed, retry_seed};
use domain::{
    About, Attempt, DialogueKey, FailureCause, Message, ModelProvenance, Outcome, Prompt, Provenance, Record,
    Round, Sampling, TaskProvenance,
};
use jiff::Timestamp;
use models::{ChatRequest, Progress, RetryPolicy, complete_with_retry};
use tasks::{Dialogue, Evaluation, Task, Verdict};
use tokio::time::Instant;

use crate::evaluate::{Evaluator, Judgement, TaskList};
use crate::metrics;
use crate::second::{AskedServer, Asking, SecondServer};
use crate::trace::{DialogueTrace, RoundAsked};

/// What all dialogues of one model share.
pub struct DialogueContext {
    /// Who answers, and where.
    pub at: Arc<AskedServer>,
    /// For replayed models: the recorded prompts, which are asked instead of those of the tasks, whatever the verdicts
    /// are. So a replay has the same rounds as the recording.
    pub script: Option<Script>,
    /// Who judges.
    pub evaluator: Arc<dyn Evaluator>,
    /// The tasks, by the indexes that the evaluator knows them by.
    pub tasks: TaskList,
    /// Where the tasks come from; class, version and case are filled in per dialogue.
    pub pack: PackProvenance,
    /// How the model samples.
    pub sampling: Sampling,
    /// Which failed calls are repeated, and how often.
    pub retry: RetryPolicy,
    /// Time limits.
    pub deadlines: Deadlines,
    pub run_seed: u64,
    /// Which model's answers the run judges; `None` if it is not a run of a judge.
    pub about: Option<About>,
    /// Tells the times in records.
    pub now: fn() -> Timestamp,
}

/// The prompts of recorded dialogues, in order.
pub type Script = HashMap<DialogueKey, Vec<Prompt>>;

/// Where the tasks of a run come from, as records name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackProvenance {
    /// Name of the pack.
    pub name: String,
    /// Hash of its manifest.
    pub hash: String,
    /// Version of the scoring rules with their limits.
    pub scorer: String,
}

/// How long a dialogue may take. Calls that are repeated share the time of their round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// One call of the model, from the request to the last token.
    pub call: Duration,
    /// A whole dialogue.
    pub dialogue: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        // Published dialogues took up to 7 130 s, nearly all of it waiting for providers; 99 of 100 took less
        // than 1 342 s.
        Self { call: Duration::from_secs(600), dialogue: Duration::from_secs(2 * 3600) }
    }
}

/// A dialogue to hold.
#[derive(Clone, Debug)]
pub struct DialogueJob {
    pub key: DialogueKey,
    /// Index of its task in [`DialogueContext::tasks`].
    pub task: usize,
    /// Who holds it, for the record.
    pub attempt: Attempt,
    /// Number of the retry that it belongs to; `None` if it is none. No two retries of a run share a number.
    pub retry: Option<u64>,
    /// Its trace, where attempts are traced.
    pub trace: Option<DialogueTrace>,
    /// The state of its latest call, for other parts of the worker to read.
    pub progress: Progress,
    /// Where it is told of a second server, if a call of it is late.
    pub second: SecondServer,
}

/// Runs a dialogue from its first prompt. It never fails: every failure is a record with a cause.
pub async fn run_dialogue(context: &DialogueContext, job: DialogueJob) -> Record {
    let task = Arc::clone(&context.tasks[job.task]);
    let seed = dialogue_seed(context.run_seed, &job.key);
    let mut held = Held {
        started: Instant::now(),
        // A judge whose reply fitted nothing is to say something else this time.
        seed: job.retry.filter(|_| task.class.judges).map_or(seed, |retry| retry_seed(seed, retry)),
        system: None,
        rounds: Vec::new(),
        failed_calls: Vec::new(),
        hedged: Vec::new(),
        model: unanswered(&context.at),
        at: &context.at,
        context,
        task: &task,
        job: &job,
    };
    let started_at = (context.now)();
    let outcome = match held.run().await {
        Ok(Evaluation { infos, unscored: Some(message), .. }) => {
            Outcome::Unscored { cause: FailureCause::JudgeUnparseable, infos, message }
        }
        Ok(Evaluation { scores, infos, unscored: None }) => Outcome::Scored { scores, infos },
        Err(Failure { cause, message }) => Outcome::Failed { cause, message },
    };
    let Held { seed, system, rounds, failed_calls, hedged, model, at, .. } = held;
    let made_at = at.made_at.clone();
    Record {
        attempt: job.attempt,
        started_at,
        ended_at: (context.now)(),
        system,
        rounds,
        outcome,
        failed_calls,
        hedged,
        provenance: Provenance {
            kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
            task: TaskProvenance {
                class: task.class_name.clone(),
                version: task.version.clone(),
                case: task.case(job.key.iteration).data.uid.clone(),
                pack: context.pack.name.clone(),
                pack_hash: context.pack.hash.clone(),
                scorer: context.pack.scorer.clone(),
            },
            model,
            sampling: context.sampling.clone(),
            seed,
            about: context.about.clone(),
            made_at,
        },
        key: job.key,
    }
}

/// The model as far as it is known before it answers.
fn unanswered(at: &AskedServer) -> ModelProvenance {
    let identity = at.model.identity();
    ModelProvenance {
        connector: identity.connector.to_owned(),
        requested: identity.requested.clone(),
        reported: None,
        system_fingerprint: None,
        endpoint: identity.endpoint.clone(),
    }
}

struct Failure {
    cause: FailureCause,
    message: String,
}

impl Failure {
    /// A fault on our side.
    fn ours(error: impl std::fmt::Display) -> Self {
        Self { cause: FailureCause::EvaluatorFailed, message: error.to_string() }
    }
}

/// A dialogue on its way.
struct Held<'a> {
    context: &'a DialogueContext,
    task: &'a Arc<Task>,
    job: &'a DialogueJob,
    started: Instant,
    seed: u64,
    system: Option<String>,
    rounds: Vec<Round>,
    failed_calls: Vec<FailedCall>,
    hedged: Vec<HedgedCall>,
    model: ModelProvenance,
    /// The server that is asked. Once a second one has answered, later rounds are asked there: it knows what was said.
    at: &'a AskedServer,
}

impl<'a> Held<'a> {
    async fn run(&mut self) -> Result<Evaluation, Failure> {
        let context = self.context;
        let key = &self.job.key;
        let recorded = context.script.as_ref().and_then(|script| script.get(key));
        let question_seed = question_seed(context.run_seed, &key.task, key.iteration);
        self.system = self.task.system(key.iteration).map_err(Failure::ours)?;
        let mut dialogue = Dialogue::new(self.task.case(key.iteration).exercise().shots());
        loop {
            let prompt = match recorded {
                Some(prompts) => prompts.get(dialogue.answers()).cloned(),
                None => {
                    let next = self.task.next_prompt(key.iteration, question_seed, &dialogue);
                    next.map_err(Failure::ours)?
                }
            };
            let Some(prompt) = prompt else { return Ok(dialogue.into_evaluation()) };
            dialogue.take(self.round(prompt).await?);
        }
    }

    /// One prompt, its answer and the verdict on it.
    async fn round(&mut self, prompt: Prompt) -> Result<Verdict, Failure> {
        let answer = self.ask(prompt).await?;
        let case = self.task.case_index(self.job.key.iteration);
        let judgement = Judgement { task: self.job.task, case, answer };
        let (answered, since, class) = (Instant::now(), SystemTime::now(), self.task.class.name());
        let verdict = self.context.evaluator.judge(judgement).await;
        if let Some(trace) = &self.job.trace {
            trace.evaluated(self.rounds.len(), class, since, verdict.is_err());
        }
        let verdict = verdict.map_err(Failure::ours)?;
        metrics::evaluated(class, answered.elapsed(), &verdict);
        Ok(verdict)
    }

    /// Asks the model and keeps the round; the text of its answer.
    async fn ask(&mut self, prompt: Prompt) -> Result<Arc<str>, Failure> {
        let late = |seconds: u64| Failure {
            cause: FailureCause::Timeout,
            message: format!("the dialogue took longer than its limit of {seconds} s"),
        };
        let limits = self.context.deadlines;
        let left = limits
            .dialogue
            .checked_sub(self.started.elapsed())
            .ok_or_else(|| late(limits.dialogue.as_secs()))?;
        let Prompt { kind, text } = prompt;
        let messages = self.messages(text);
        let request = ChatRequest {
            messages: Arc::clone(&messages),
            sampling: self.context.sampling.clone(),
            seed: Some(self.seed),
            deadline: limits.call.min(left),
            key: self.job.key.clone(),
            round: self.rounds.len() as u32, // At most three.
            progress: self.job.progress.clone(),
            traceparent: self.job.trace.map(|trace| trace.parent_of_call(self.rounds.len() + 1)),
        };
        let (prompted_at, prompted, since) = ((self.context.now)(), Instant::now(), SystemTime::now());
        let asking = Asking::new(self.at, &self.job.second, self.context.now);
        let call = complete_with_retry(&asking, request, &self.context.retry, self.context.now);
        let answered = tokio::time::timeout(left, call).await;
        self.asked(asking);
        let (reply, failed_calls) = answered.map_err(|_| late(limits.dialogue.as_secs()))?;
        if let Some(trace) = &self.job.trace {
            let model = self.at.model.identity();
            let (round, retries) = (self.rounds.len() + 1, failed_calls.len());
            let asked = RoundAsked { round, model, sampling: &self.context.sampling, since, retries };
            trace.asked(&asked, reply.as_ref());
        }
        match reply {
            Ok(reply) => {
                self.model = self.at.model.identity().provenance(&reply);
                let who = (self.job.key.model.as_str(), &*self.at.name);
                let (usage, first_token) = (&reply.answer.usage, reply.first_token);
                metrics::round_answered(who, kind, prompted.elapsed(), first_token, usage);
                let text = Arc::from(reply.answer.text.as_str());
                let answered_at = (self.context.now)();
                // Copied only now: while thousands of dialogues wait for their answers, each holds its prompt once.
                let text_asked = messages.last().map(|message| message.content.clone()).unwrap_or_default();
                self.rounds.push(Round {
                    prompt: Prompt { kind, text: text_asked },
                    prompted_at,
                    answer: reply.answer,
                    answered_at,
                    failed_calls,
                });
                Ok(text)
            }
            Err(error) => {
                self.failed_calls = failed_calls;
                Err(Failure { cause: error.cause, message: error.in_words() })
            }
        }
    }

    /// Notes where a round was asked.
    fn asked(&mut self, asking: Asking<'a>) {
        let (at, calls) = asking.ended();
        for call in &calls {
            metrics::hedged_call(self.job.key.model.as_str(), &call.server, call.end == HedgeEnd::Answered);
        }
        self.hedged.extend(calls);
        self.at = at;
    }

    /// The conversation so far with `prompt` at its end: the whole history is sent each round.
    fn messages(&self, mut prompt: String) -> Arc<[Message]> {
        prompt.shrink_to_fit();
        let history = self
            .rounds
            .iter()
            .flat_map(|round| [Message::user(&round.prompt.text), Message::assistant(&round.answer.text)]);
        let system = self.system.iter().map(Message::system);
        system.chain(history).chain([Message::user(prompt)]).collect()
    }
}
