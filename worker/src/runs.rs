//! What the dialogues of one run share: tasks, models and evaluator.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use domain::exchange::{RunMaterial, WorkExchange};
use domain::{Ask, ErrorCode, Iteration, ModelLabel, ModelSpec, RunId, ServiceError, TaskLabel};
use packs::Pack;
use tasks::{Effort, EvaluationLimits, FixedLimits, Verdict};

use crate::evaluate::{
    Evaluator, EvaluatorError, InProcess, Judgement, Sandbox, SandboxConfig, SandboxLimits, TaskList,
};
use crate::material::{self, CORE, MaterialError, MaterialRequest, PackFolder};
use crate::warm::CaseAsked;
use domain::Backoff;

/// How answers are judged.
#[derive(Clone, Debug)]
pub enum EvaluationMode {
    /// Child processes with limits.
    Sandbox {
        /// The program; normally this very binary.
        program: PathBuf,
        /// Arguments that lead to [`crate::evaluate::sandbox::child::serve`] with [`material::load`].
        arguments: Vec<String>,
    },
    /// Threads of this process, for trusted answers.
    InProcess,
}

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

pub struct RunContext {
    /// Its description from the coordinator.
    pub material: RunMaterial,
    /// Its tasks, in the order of the plan.
    pub tasks: TaskList,
    pub evaluator: Arc<dyn Evaluator>,
    /// The kind of question that all of its tasks ask.
    pub ask: Ask,
    /// Provenance of the tasks.
    pub pack: PackProvenance,
    indexes: HashMap<TaskLabel, usize>,
}

impl RunContext {
    /// The index of a task by its label in the run.
    pub fn task(&self, label: &TaskLabel) -> Option<usize> {
        self.indexes.get(label).copied()
    }

    /// The case of a dialogue; `None` if the run has no such task.
    pub fn case(&self, task: &TaskLabel, iteration: Iteration) -> Option<CaseAsked> {
        let task = self.task(task)?;
        Some(CaseAsked { task, case: self.tasks[task].case_index(iteration) })
    }

    /// A model of the run.
    pub fn model(&self, label: &ModelLabel) -> Option<&ModelSpec> {
        self.material.models.iter().find(|model| model.label == *label)
    }
}

/// Why this worker cannot work on a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The coordinator does not provide its description or pack.
    #[error(transparent)]
    Exchange(#[from] ServiceError),
    /// Its tasks cannot be used. Boxed, because it is much larger than the others.
    #[error(transparent)]
    Material(Box<MaterialError>),
    /// Two of its tasks ask models in different ways.
    #[error("its tasks {0} ask models in different ways; each way needs a run of its own")]
    Mixed(String),
    /// No evaluator can be started.
    #[error("cannot start the evaluation of answers: {0}")]
    Evaluator(#[from] std::io::Error),
    /// It needs the pack of this hash, and there is no folder to store it in.
    #[error("it needs pack {0}, but this worker has no folder for packs")]
    NoFolder(String),
}

impl From<MaterialError> for RunError {
    fn from(error: MaterialError) -> Self {
        Self::Material(Box::new(error))
    }
}

impl RunError {
    /// Whether the reason is this worker's own, such as a full disk: other workers may well work on the run.
    pub fn is_own(&self) -> bool {
        match self {
            Self::Material(error) => matches!(**error, MaterialError::Folder { .. }),
            Self::Evaluator(_) | Self::NoFolder(_) => true,
            Self::Exchange(_) | Self::Mixed(_) => false,
        }
    }
}

/// Evaluators by pack and tasks.
type Evaluators = HashMap<MaterialRequest, Weak<dyn Evaluator>>;

/// Prepares runs. Runs with the same tasks share an evaluator, because its processes hold large graphs.
pub struct HeldRuns {
    exchange: Arc<dyn WorkExchange>,
    evaluation: EvaluationMode,
    evaluators: NonZeroUsize,
    packs: Option<PackFolder>,
    started: Mutex<Evaluators>,
}

impl HeldRuns {
    /// `evaluators` is the number of judging processes or threads, per set of tasks.
    pub fn new(
        exchange: Arc<dyn WorkExchange>,
        evaluation: EvaluationMode,
        evaluators: NonZeroUsize,
        packs: Option<PackFolder>,
    ) -> Self {
        Self { exchange, evaluation, evaluators, packs, started: Mutex::default() }
    }

    /// Prepares a run. Waits while the coordinator is away; the caller drops the future when the run is not needed
    /// any more.
    ///
    /// # Errors
    /// A permanent reason why this worker cannot work on the run.
    pub async fn load(self: Arc<Self>, run: RunId) -> Result<RunContext, RunError> {
        let material = patiently(|| self.exchange.run_material(&run)).await?;
        let (name, pack) = self.pack(&material.pack_hash).await?;
        blocking(move || self.build(material, &name, &pack)).await?
    }

    /// The pack of this hash, and the name by which evaluation processes open it.
    async fn pack(&self, hash: &str) -> Result<(String, Arc<Pack>), RunError> {
        let builtin = blocking(|| material::open_pack(CORE)).await??;
        if builtin.hash().as_str() == hash {
            return Ok((CORE.to_owned(), builtin));
        }
        let (wanted, fetch) = (hash.to_owned(), || patiently(|| self.exchange.pack(hash)));
        let Some(folder) = self.packs.clone() else {
            // Evaluation processes open a pack by its file; whoever judges in this process has it.
            if matches!(self.evaluation, EvaluationMode::Sandbox { .. }) {
                return Err(RunError::NoFolder(wanted));
            }
            let sealed = fetch().await?;
            let opened = blocking(move || material::open_fetched(&wanted, &sealed)).await??;
            return Ok((hash.to_owned(), opened));
        };
        let (place, known) = (folder.clone(), wanted.clone());
        if let Ok(Some(found)) = blocking(move || place.find(&known)).await {
            return Ok(found);
        }
        let sealed = fetch().await?;
        Ok(blocking(move || folder.keep(&wanted, &sealed)).await??)
    }

    fn build(&self, material: RunMaterial, name: &str, pack: &Pack) -> Result<RunContext, RunError> {
        let labels = material.tasks.iter().map(|task| &task.pack_label);
        let tasks = material::build_to_ask(pack, labels)?;
        let ask = ask_of(&tasks)?;
        let request = MaterialRequest::of(name, &tasks);
        let of_judges = request.is_of_judges();
        let limits = pack.header().limits;
        let evaluator = self.evaluator(request, &tasks, limits)?;
        let evaluator = if of_judges { Arc::new(OneCase(evaluator)) } else { evaluator };
        let indexes =
            material.tasks.iter().enumerate().map(|(index, task)| (task.label.clone(), index)).collect();
        Ok(RunContext { tasks, evaluator, ask, pack: self.provenance(pack, limits), indexes, material })
    }

    /// The evaluator of these tasks; starts one if there is none.
    fn evaluator(
        &self,
        request: MaterialRequest,
        tasks: &TaskList,
        limits: EvaluationLimits,
    ) -> std::io::Result<Arc<dyn Evaluator>> {
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.retain(|_, evaluator| evaluator.strong_count() > 0);
        if let Some(evaluator) = started.get(&request).and_then(Weak::upgrade) {
            return Ok(evaluator);
        }
        let evaluator: Arc<dyn Evaluator> = match &self.evaluation {
            EvaluationMode::InProcess => {
                let tasks = if request.is_of_judges() { &judges_of(&request)? } else { tasks };
                Arc::new(InProcess::start(tasks, Effort::full(limits), self.evaluators)?)
            }
            EvaluationMode::Sandbox { program, arguments } => Arc::new(Sandbox::start(SandboxConfig {
                program: program.clone(),
                arguments: arguments.clone(),
                tasks: serde_json::to_value(&request)?,
                children: self.evaluators,
                evaluation: limits,
                limits: SandboxLimits::of(&limits),
            })?),
        };
        started.insert(request, Arc::downgrade(&evaluator));
        Ok(evaluator)
    }

    /// The provenance of pack and evaluator for records.
    fn provenance(&self, pack: &Pack, limits: EvaluationLimits) -> PackProvenance {
        let sandbox = match &self.evaluation {
            EvaluationMode::Sandbox { .. } => Some(SandboxLimits::of(&limits)),
            EvaluationMode::InProcess => None,
        };
        PackProvenance {
            name: pack.header().name.clone(),
            hash: pack.hash().as_str().to_owned(),
            scorer: scorer(limits, sandbox),
        }
    }
}

/// The kind of question that the tasks of a run ask.
fn ask_of(tasks: &TaskList) -> Result<Ask, RunError> {
    let Some(first) = tasks.first() else { return Ok(Ask::Chat) };
    let ask = first.class.asks;
    match tasks.iter().find(|task| task.class.asks != ask) {
        Some(other) => Err(RunError::Mixed(format!("{} and {}", first.label, other.label))),
        None => Ok(ask),
    }
}

/// The tasks of judges, for evaluation on threads of this process.
fn judges_of(request: &MaterialRequest) -> std::io::Result<TaskList> {
    let tasks = material::load(&serde_json::to_value(request)?).map_err(std::io::Error::other)?;
    Ok(tasks.into())
}

/// Judges every reply with the evaluator's only case: verdicts on replies of judges do not depend on it.
struct OneCase(Arc<dyn Evaluator>);

#[async_trait::async_trait]
impl Evaluator for OneCase {
    async fn judge(&self, judgement: Judgement) -> Result<Verdict, EvaluatorError> {
        self.0.judge(Judgement { case: 0, ..judgement }).await
    }
}

/// The scorer version: kgfleet's version, with every limit that an answer can hit.
pub fn scorer(evaluation: EvaluationLimits, sandbox: Option<SandboxLimits>) -> String {
    Limits { evaluation, fixed: FixedLimits::of_this_program(), sandbox }.scorer()
}

#[derive(serde::Serialize)]
struct Limits {
    #[serde(flatten)]
    evaluation: EvaluationLimits,
    #[serde(flatten)]
    fixed: FixedLimits,
    /// `None` if answers are judged on threads of the worker.
    sandbox: Option<SandboxLimits>,
}

impl Limits {
    fn scorer(&self) -> String {
        let limits = serde_json::to_value(self).unwrap_or_default();
        format!("{} {limits}", env!("CARGO_PKG_VERSION"))
    }
}

/// Retries a call while its error is transient.
async fn patiently<T, F>(call: impl Fn() -> F) -> Result<T, ServiceError>
where
    F: Future<Output = Result<T, ServiceError>>,
{
    let mut backoff = Backoff::default();
    loop {
        match call().await {
            Err(error) if error.code.is_transient() => tokio::time::sleep(backoff.next_delay()).await,
            done => return done,
        }
    }
}

/// Runs `work` off the async threads. It fails if the runtime is shutting down or the work panicked.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ServiceError> {
    service_kit::aside::run(work).await.map_err(|_| ServiceError::new(ErrorCode::Internal, "a thread died"))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_scorer_names_every_limit_that_it_judges_by() {
        let limits = EvaluationLimits::default();
        let sandbox = scorer(limits, Some(SandboxLimits::of(&limits)));
        assert!(sandbox.starts_with(concat!(env!("CARGO_PKG_VERSION"), " {")), "{sandbox}");
        for named in [
            "\"query_wall\":10.0",
            "\"answer_bytes_max\":16777216",
            "\"nesting_max\":256",
            "\"rows_max\":1000000",
            "\"query_bytes_max\":1048576",
            "\"query_depth_max\":100",
            "\"query_links_max\":256",
            "\"sandbox\":{\"cpu_seconds\":12,\"memory_bytes\":1073741824}",
        ] {
            assert!(sandbox.contains(named), "{named} in {sandbox}");
        }
        assert!(scorer(limits, None).contains("\"sandbox\":null"));
    }

    #[test]
    fn a_changed_limit_changes_the_scorer() {
        let (evaluation, fixed) = (EvaluationLimits::default(), FixedLimits::of_this_program());
        let sandbox = SandboxLimits::of(&evaluation);
        let unchanged = scorer(evaluation, Some(sandbox));

        let mut seen = HashSet::from([unchanged]);
        let mut changed = |evaluation, fixed, sandbox| {
            let scorer = Limits { evaluation, fixed, sandbox: Some(sandbox) }.scorer();
            assert!(seen.insert(scorer.clone()), "not told from another: {scorer}");
        };
        for evaluation in each_changed(&evaluation) {
            changed(evaluation, fixed, sandbox);
        }
        for fixed in each_changed(&fixed) {
            changed(evaluation, fixed, sandbox);
        }
        changed(evaluation, fixed, SandboxLimits { cpu_seconds: sandbox.cpu_seconds + 1, ..sandbox });
        changed(evaluation, fixed, SandboxLimits { memory_bytes: sandbox.memory_bytes + 1, ..sandbox });
    }

    /// A copy of the limits for each of them, with that one changed.
    fn each_changed<T: serde::Serialize + serde::de::DeserializeOwned>(limits: &T) -> Vec<T> {
        let serde_json::Value::Object(fields) = serde_json::to_value(limits).unwrap() else {
            panic!("limits have names");
        };
        let with_one_more = |name: &String| {
            let mut fields = fields.clone();
            let value = &mut fields[name];
            *value = match value.as_u64() {
                Some(whole) => (whole + 1).into(),
                None => (value.as_f64().unwrap() + 1.0).into(),
            };
            serde_json::from_value(fields.into()).unwrap()
        };
        fields.keys().map(with_one_more).collect()
    }
}
