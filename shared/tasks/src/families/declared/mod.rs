//! Declared, DeclaredBest and DeclaredLast: tasks that people declare in a task file instead of writing a class. They differ in
//! the answer that counts: the only one, the best, the last.
//!
//! The parameters of a task say how an answer is read and which checks judge it ([`spec`]). An answer that cannot be read
//! scores 0 everywhere. The score of one that can is
//!
//! `score` = `readable` + (1 − `readable`) · Σ weight · main / Σ weight
//!
//! over the checks in their order, and 0 if a check that is a gate is not passed in full. Other scores are `readable` (1 or
//! 0), the main score of each check under its name, and its further ones as `NAME_part`.
//!
//! All queries, comparisons of graphs and validations of a judgement share the processor time that the pack's limits allow one query.
//!
//! Fields of a case: `expected`, an object with what each check expects by its name; `graphTurtle` or `graphName`, the graph
//! on which queries run; `wrap`, a document in which `{{answer}}` stands for the part of an answer that counts; `judge`, what
//! a judge is asked about an answer, which nothing here reads ([`spec::JudgeSpec`]). The prompt of a case is stored with it, as
//! `prompt`: [`task`](crate::task) fills it in. The
//! placeholders of the follow-ups are `answer`, the part of the answer that counts, and `finding.message`.

use std::sync::{Arc, LazyLock};

use domain::{Infos, PromptKind, Scores};
use rdf::{PrefixTable, TimeBudget};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::query::case_graph::{self, CaseGraph};
use crate::class::{AnswerForm, ClassSpec, ReadCase};
use crate::compared::ComparedPart;
use crate::exercise::{CaseError, CaseInput, Effort, Exercise, FollowUp, Shots, Verdict};
use crate::graphs::{ExerciseGraph, GraphLibrary};
use crate::task::TaskData;
use crate::wording::Fields;

mod answer;
mod checks;
mod shapes_text;
pub mod spec;
mod words;

use answer::{ReadAnswer, ReadingAids, UnreadableAnswer};
use checks::{CaseCheck, CheckScores, CheckSetting, ExtractedAnswer};
pub use checks::{EXPECTED_COLUMNS_MAX, ResultTable, pattern};
use spec::{CheckSpec, DeclaredSpec};

/// The class of tasks with one answer.
pub const ONE: &str = "Declared";

/// The class of tasks of whose answers the best counts.
pub const BEST: &str = "DeclaredBest";

/// The class of tasks of whose answers the last counts.
pub const LAST: &str = "DeclaredLast";

/// Their version. What a check means never changes within a version.
pub const VERSION: &str = "1";

/// Most characters of an answer in the infos.
const SHOWN_CHARS_MAX: usize = 2_000;

/// The score that is combined over the rounds.
const AGGREGATED: &[&str] = &["score"];

/// Tasks of task files.
pub(crate) const CLASSES: [ClassSpec; 3] = [
    ClassSpec::new(&[(ONE, &[VERSION])], &["score"], AnswerForm::Text, READ),
    several(&[(BEST, &[VERSION])], &["max", "score"]),
    several(&[(LAST, &[VERSION])], &["last", "score"]),
];

const READ: ReadCase = |input, graphs, _| Ok(Box::new(DeclaredCase::read(input, graphs)?));

const fn several(
    names: &'static [(&'static str, &'static [&'static str])],
    headline: &'static [&'static str],
) -> ClassSpec {
    ClassSpec {
        follow_ups: &[
            PromptKind::Structure,
            PromptKind::Syntax,
            PromptKind::EmptyResult,
            PromptKind::Content,
        ],
        ..ClassSpec::new(names, headline, AnswerForm::Text, READ)
    }
}

/// A case of a declared task.
struct DeclaredCase {
    rules: Arc<DeclaredRules>,
    checks: Vec<CaseCheck>,
    /// The document around the part of an answer that counts.
    wrap: Option<String>,
    graph: Option<CaseGraphLater>,
    rounds: Option<usize>,
}

/// What the cases of a task share.
struct DeclaredRules {
    spec: DeclaredSpec,
    prefixes: PrefixTable,
}

impl DeclaredRules {
    fn read(parameters: &Map<String, Value>) -> Result<Self, CaseError> {
        let spec = DeclaredSpec::deserialize(parameters)
            .map_err(|error| CaseError::Reference { field: "parameters", message: error.to_string() })?;
        Ok(Self { prefixes: spec.prefixes.iter().collect(), spec })
    }
}

/// The graph of a case, which processes that only ask read never.
type CaseGraphLater = LazyLock<Loaded, Box<dyn FnOnce() -> Loaded + Send>>;

type Loaded = Result<Arc<ExerciseGraph>, CaseError>;

impl DeclaredCase {
    fn read(input: &CaseInput<'_>, library: &GraphLibrary) -> Result<Self, CaseError> {
        let rules = input.once.get_or_read(|| DeclaredRules::read(input.parameters))?;
        let nothing = Map::new();
        let expected = input.data.get("expected").and_then(Value::as_object).unwrap_or(&nothing);
        let read = |check: &Arc<CheckSpec>| {
            CaseCheck::read(check.clone(), expected.get(&check.name), &rules.prefixes)
        };
        let checks = rules.spec.checks.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let wrap = input.data.get("wrap").and_then(Value::as_str).map(str::to_owned);
        let graph = case_graph::of_case(input.data, library)?;
        let deferred = graph.as_ref().is_some_and(CaseGraph::is_deferred);
        let graph = graph.map(|graph| CaseGraphLater::new(Box::new(|| graph.load())));
        let rounds = (input.class != ONE).then_some(rules.spec.rounds);
        let case = Self { rules, checks, wrap, graph, rounds };
        if !deferred {
            case.prepare()?;
        }
        Ok(case)
    }

    /// The graph and the prefixes that answers may use undeclared.
    ///
    /// # Panics
    /// The graph was deferred and cannot be read; call [`Exercise::prepare`] first.
    fn ground(&self) -> (Option<&ExerciseGraph>, PrefixTable) {
        let Some(graph) = &self.graph else { return (None, self.prefixes()) };
        match &**graph {
            Ok(graph) => (Some(graph), self.prefixes()),
            Err(error) => panic!("judged without being prepared: {error}"),
        }
    }

    /// The prefixes that answers may use undeclared: without those of a graph that cannot be read.
    fn prefixes(&self) -> PrefixTable {
        match self.graph.as_deref() {
            Some(Ok(graph)) => PrefixTable::layered(&[&graph.prefixes, &self.rules.prefixes]),
            Some(Err(_)) | None => self.rules.prefixes.clone(),
        }
    }

    fn refuse(&self, finding: UnreadableAnswer) -> Verdict {
        let mut infos = Infos::new();
        infos.insert("answer".into(), finding.part.as_deref().map(shown).into());
        infos.insert("finding".into(), finding.message.as_str().into());
        let scores = self.checks.iter().map(CaseCheck::unreadable).collect();
        let part = finding.part.unwrap_or_default();
        self.verdict(false, scores, infos, Some(follow_up(finding.kind, &finding.message, &part)))
    }

    fn compare(&self, answer: &ReadAnswer, part: &str, bench: &CheckSetting<'_>) -> Verdict {
        let mut infos = Infos::new();
        infos.insert("answer".into(), shown(part).into());
        let mut scores = Vec::with_capacity(self.checks.len());
        for check in &self.checks {
            let mut judged = check.judge(answer, bench);
            for (name, value) in std::mem::take(&mut judged.infos) {
                infos.insert(format!("{}_{name}", check.spec.name), value);
            }
            scores.push(judged);
        }
        let empty = scores.iter().any(|scores| scores.empty);
        let follow_up = if empty {
            Some(follow_up(PromptKind::EmptyResult, "The answer leads to an empty result.", part))
        } else {
            self.content_finding(&scores).map(|message| follow_up(PromptKind::Content, &message, part))
        };
        self.verdict(true, scores, infos, follow_up)
    }

    /// What a follow-up tells of an answer that is not right: scores, and nothing of what is expected.
    fn content_finding(&self, scores: &[CheckScores]) -> Option<String> {
        let checked = || self.checks.iter().zip(scores);
        if !self.rules.spec.content || checked().all(|(_, scores)| scores.main >= 1.0) {
            return None;
        }
        let one =
            |(check, scores): (&CaseCheck, &CheckScores)| format!("{} {:.2}", check.spec.name, scores.main);
        let told: Vec<String> = checked().map(one).collect();
        Some(format!("The answer is not right yet. Scores, of 1: {}.", told.join(", ")))
    }

    fn verdict(
        &self,
        readable: bool,
        checked: Vec<CheckScores>,
        infos: Infos,
        follow_up: Option<FollowUp>,
    ) -> Verdict {
        let (mut sum, mut weights, mut passed) = (0.0, 0.0, readable);
        for (check, scores) in self.checks.iter().zip(&checked) {
            sum += check.spec.weight * scores.main;
            weights += check.spec.weight;
            passed &= !check.spec.gate || scores.main >= 1.0;
        }
        let of_checks = if weights > 0.0 { sum / weights } else { 0.0 };
        let share = self.rules.spec.readable;
        let score = if passed { share + (1.0 - share) * of_checks } else { 0.0 };
        let mut scores = Scores::new();
        scores.insert("score".into(), score.into());
        scores.insert("readable".into(), f64::from(u8::from(readable)).into());
        for (check, checked) in self.checks.iter().zip(checked) {
            let name = &check.spec.name;
            scores.insert(name.clone(), checked.main.into());
            for (part, value) in checked.parts {
                scores.insert(format!("{name}_{part}"), value.into());
            }
        }
        Verdict { scores, infos, follow_up, unscored: None }
    }
}

/// How often each case of a task of a task file is asked where a configuration does not say how often; nothing of other tasks.
pub fn repeats(task: &TaskData) -> Option<u32> {
    if ![ONE, BEST, LAST].contains(&task.class.as_str()) {
        return None;
    }
    let repeats = task.parameters.get("repeats").and_then(Value::as_u64);
    Some(repeats.map_or(1, |repeats| u32::try_from(repeats).unwrap_or(u32::MAX)))
}

/// A score of the last answer of a dialogue with a declared task, by its name.
pub fn of_last(scores: &Scores, name: &str) -> Option<f64> {
    let of_answer = scores.get("last").and_then(Value::as_object).unwrap_or(scores);
    of_answer.get(name)?.as_f64()
}

/// Whether a check can be used with what a case expects of it.
///
/// # Errors
/// What is wrong.
pub fn check_expected(
    spec: &CheckSpec,
    expected: Option<&Value>,
    prefixes: &PrefixTable,
) -> Result<(), CaseError> {
    CaseCheck::read(Arc::new(spec.clone()), expected, prefixes).map(|_| ())
}

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn follow_up(kind: PromptKind, message: &str, answer: &str) -> FollowUp {
    let fields = [("finding.message", message), ("answer", answer)];
    let fields = fields.map(|(name, text)| (name.to_owned(), text.to_owned()));
    FollowUp { kind, fields: Fields::from(fields) }
}

impl Exercise for DeclaredCase {
    fn shots(&self) -> Shots {
        self.rounds.map_or(Shots::Single, |answers_max| Shots::up_to(answers_max, AGGREGATED))
    }

    fn prepare(&self) -> Result<(), CaseError> {
        self.graph.as_deref().map_or(Ok(()), |graph| graph.as_ref().map(|_| ()).map_err(Clone::clone))
    }

    fn judge(&self, answer: &str, effort: &Effort) -> Verdict {
        let (graph, prefixes) = self.ground();
        let aids = ReadingAids { wrap: self.wrap.as_deref(), prefixes: &prefixes };
        match answer::read(answer, &self.rules.spec.answer, aids, effort) {
            Err(finding) => self.refuse(finding),
            Ok((read, part)) => {
                let budget = TimeBudget::begin(effort.limits.query_time);
                let graph = graph.map(|loaded| &loaded.graph);
                let bench = CheckSetting { graph, prefixes: &prefixes, effort, part: &part, budget };
                self.compare(&read, &part, &bench)
            }
        }
    }

    fn compared(&self, answer: &str, infos: &Infos, effort: &Effort) -> Vec<ComparedPart> {
        let prefixes = self.prefixes();
        let aids = ReadingAids { wrap: self.wrap.as_deref(), prefixes: &prefixes };
        let (read, part) = match answer::read(answer, &self.rules.spec.answer, aids, effort) {
            Ok((read, part)) => (Some(read), Some(part)),
            Err(finding) => (None, finding.part),
        };
        let part = part.filter(|part| !part.is_empty());
        let extracted =
            ExtractedAnswer { read: read.as_ref(), part: part.clone(), infos, prefixes: &prefixes };
        let mut parts: Vec<ComparedPart> =
            self.checks.iter().flat_map(|check| check.compared(&extracted)).collect();
        // Several checks may look at the same thing.
        parts.dedup_by(|next, before| {
            (&next.expected, &next.extracted) == (&before.expected, &before.extracted)
        });
        if parts.is_empty() {
            parts.push(ComparedPart::new("answer", None, part));
        }
        parts
    }
}

#[cfg(test)]
mod tests;
