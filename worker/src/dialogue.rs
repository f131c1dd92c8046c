//! One dialogue, from its first prompt to its record.
//!
//! The prompts are a function of run seed, key and verdicts. Between two attempts only time, worker and the model's
//! answers differ. To change what is asked or how it is judged, see the crate `tasks`; here is only the order of calls.

use std::collections::HashMap;
use std::sync::Arc;

use domain::cut_text::ShortMessage;
use domain::dialogue::FailedCall;
use domain::odd_answer::note_oddities;
use domain::seed::{dialogue_seed, question_seed, retry_seed};
use domain::{
    Attempt, DialogueKey, FailureCause, HumanDuration, MadeAt, Message, ModelProvenance, ModelSpec, Outcome,
    Prompt, Provenance, Record, Round, TaskProvenance, machine,
};
use models::{ChatModel, ChatRequest, Progress, RetryPolicy, complete_with_retry};
use tasks::{Dialogue, Evaluation, Task, Verdict};
use tokio::time::Instant;

use crate::evaluate::Judgement;
use crate::metrics;
use crate::runs::RunContext;

/// What all dialogues of one model share.
pub struct DialogueContext {
    /// Who answers.
    pub model: Arc<dyn ChatModel>,
    /// Name of its server in metrics.
    pub server: Arc<str>,
    /// Where its records are made; `None` to say nothing of it.
    pub made_at: Option<MadeAt>,
    /// For replayed models: the recorded prompts, which are asked instead of those of the tasks, whatever the verdicts
    /// are. So a replay has the same rounds as the recording.
    pub script: Option<Script>,
    /// Its tasks, who judges their answers, and where they come from.
    pub run: Arc<RunContext>,
    /// How the model samples, and how long a dialogue may take.
    pub spec: ModelSpec,
    /// Which failed calls are repeated, and how often.
    pub retry: RetryPolicy,
}

/// The prompts of recorded dialogues, in order.
pub type Script = HashMap<DialogueKey, Vec<Prompt>>;

/// A dialogue to hold.
#[derive(Clone, Debug)]
pub struct DialogueJob {
    pub key: DialogueKey,
    /// Index of its task in [`RunContext::tasks`].
    pub task: usize,
    /// Who holds it, for the record.
    pub attempt: Attempt,
    /// Number of the retry that it belongs to; `None` if it is none. No two retries of a run share a number.
    pub retry: Option<u64>,
    /// The state of its latest call, for other parts of the worker to read.
    pub progress: Progress,
}

/// Runs a dialogue from its first prompt. It never fails: every failure is a record with a cause.
pub async fn run_dialogue(context: &DialogueContext, job: DialogueJob) -> Record {
    let run = &context.run;
    let task = Arc::clone(&run.tasks[job.task]);
    let seed = dialogue_seed(run.material.seed, &job.key);
    let mut held = Held {
        started: Instant::now(),
        // A judge whose reply fitted nothing is to say something else this time.
        seed: job.retry.filter(|_| task.class.judges).map_or(seed, |retry| retry_seed(seed, retry)),
        system: None,
        rounds: Vec::new(),
        failed_calls: Vec::new(),
        // As far as it is known before it answers.
        model: context.model.identity().provenance(None),
        context,
        task: &task,
        job: &job,
    };
    let started_at = machine::now();
    let outcome = match held.run().await {
        Ok(Evaluation { infos, unscored: Some(message), .. }) => {
            let message = ShortMessage::from(message.as_str()).0;
            Outcome::Unscored { cause: FailureCause::JudgeUnparseable, infos, message }
        }
        Ok(Evaluation { scores, infos, unscored: None }) => Outcome::Scored { scores, infos },
        Err(Failure { cause, message }) => {
            let message = ShortMessage::from(message.as_str()).0;
            Outcome::Failed { cause, message }
        }
    };
    let Held { seed, system, rounds, failed_calls, model, .. } = held;
    Record {
        attempt: job.attempt,
        started_at,
        ended_at: machine::now(),
        system,
        rounds,
        outcome,
        failed_calls,
        provenance: Provenance {
            kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
            task: TaskProvenance {
                class: task.class_name.clone(),
                version: task.version.clone(),
                case: task.case(job.key.iteration).data.uid.clone(),
                pack: run.pack.name.clone(),
                pack_hash: run.pack.hash.clone(),
                scorer: run.pack.scorer.clone(),
            },
            model,
            sampling: context.spec.sampling.clone(),
            seed,
            about: run.material.about.clone(),
            made_at: context.made_at.clone(),
        },
        key: job.key,
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
    model: ModelProvenance,
}

impl Held<'_> {
    async fn run(&mut self) -> Result<Evaluation, Failure> {
        let context = self.context;
        let key = &self.job.key;
        let recorded = context.script.as_ref().and_then(|script| script.get(key));
        let question_seed = question_seed(context.run.material.seed, &key.task, key.iteration);
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
        let (answered, class) = (Instant::now(), self.task.class.name());
        let verdict = self.context.run.evaluator.judge(judgement).await.map_err(Failure::ours)?;
        metrics::evaluated(class, answered.elapsed(), &verdict);
        Ok(verdict)
    }

    /// Asks the model and keeps the round; the text of its answer.
    async fn ask(&mut self, prompt: Prompt) -> Result<Arc<str>, Failure> {
        let time_max = self.context.spec.time_limits.dialogue();
        let late = || Failure {
            cause: FailureCause::Timeout,
            message: format!("the dialogue took longer than its limit of {}", HumanDuration(time_max)),
        };
        let left = time_max.checked_sub(self.started.elapsed()).ok_or_else(late)?;
        let Prompt { kind, text } = prompt;
        let messages = self.messages(text);
        let request = ChatRequest {
            messages: Arc::clone(&messages),
            sampling: self.context.spec.sampling.clone(),
            seed: Some(self.seed),
            deadline: left,
            key: self.job.key.clone(),
            round: self.rounds.len() as u32, // At most three.
            progress: self.job.progress.clone(),
        };
        let (prompted_at, prompted) = (machine::now(), Instant::now());
        let model = &*self.context.model;
        let call = complete_with_retry(model, request, &self.context.retry, machine::now);
        let answered = tokio::time::timeout(left, call).await;
        let (reply, failed_calls) = answered.map_err(|_| late())?;
        match reply {
            Ok(mut reply) => {
                note_oddities(&mut reply.answer, messages.iter().map(|message| &*message.content));
                self.answered_as(model.identity().provenance(Some(&reply)));
                let who = (self.job.key.model.as_str(), &*self.context.server);
                metrics::round_answered(who, kind, prompted.elapsed(), reply.first_token, &reply.answer);
                let text = Arc::from(reply.answer.text.as_str());
                let answered_at = machine::now();
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

    /// Keeps who has answered, and how requests were changed, of all rounds.
    fn answered_as(&mut self, mut by: ModelProvenance) {
        let before = std::mem::take(&mut self.model.adapted);
        by.adapted
            .extend(before.into_iter().filter(|change| !by.adapted.contains(change)).collect::<Vec<_>>());
        self.model = by;
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
