//! Random histories of a pipeline: retries, extensions, crashes between write and create, coordinators that derive at once,
//! a queue that was lost, late records. Whatever happens, every question that is needed is asked in exactly one run, none is
//! missing, and the report is that of somebody who looks at the records only.

#![allow(
    clippy::redundant_closure_for_method_calls,
    reason = "a path to the method names one lifetime, the calls have any"
)]

use std::collections::{BTreeMap, BTreeSet};

use domain::control::Better;
use domain::{DialogueKey, FailureCause, Infos, RunId, Scores};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, json};

use super::*;
use crate::judging::{Judging, PromptTexts, Stage, delimited};
use crate::kinds::judged_facts;
use crate::report::{JudgedOutcome, Metric, ModelReport};

/// Three stages: one question; two about answers that the first stage called half right; one where those two differ.
static JUDGING: Judging = Judging {
    stages: &[
        stage("one", |subject, _| vec![texts(subject, "one")]),
        stage("two", |subject, before| match before.number("one", "grade") {
            Ok(Some(0.5)) => vec![texts(subject, "left"), texts(subject, "right")],
            _ => Vec::new(),
        }),
        stage("three", |subject, before| match before.of("two") {
            [left, right] if left.number("grade") != right.number("grade") => vec![texts(subject, "last")],
            _ => Vec::new(),
        }),
    ],
    settings: &[],
    every_case: false,
    refuses: |_| None,
    conclude: |_, judgements| {
        let mut grade = None;
        for stage in ["one", "two", "three"] {
            grade = judgements.number(stage, "grade")?.or(grade);
        }
        Ok(Scores::from_iter([("grade".to_owned(), json!(grade))]))
    },
    metrics: |judged| vec![Metric::mean_of("grade", "grade", judged)],
    results: &[("grade", Better::Higher)],
};

const fn stage(name: &'static str, questions: fn(&Subject, &Judgements<'_>) -> Vec<PromptTexts>) -> Stage {
    let task = || (judged_facts::KIND.stages()[0].task)();
    let about = StageInput::Answers { reads: &[], questions };
    Stage { name, judge: "judge", version: "1", task, places: &[], stands_in: false, about }
}

/// A derivation of a configuration that chooses nothing.
fn derivation<'a>(judging: &'a Judging, judges: &'a [&'a ModelSpec]) -> Derivation<'a> {
    static SETTINGS: Settings = Settings::new();
    static WORDINGS: JudgeWordings = JudgeWordings::new();
    Derivation { pipeline: "p", judging, judges, settings: &SETTINGS, wordings: &WORDINGS }
}

fn texts(subject: &Subject, part: &str) -> PromptTexts {
    vec![("answer", delimited(&subject.answer)), ("part", part.to_owned())]
}

const MODELS: [&str; 2] = ["m", "a model/with a name"];
const TASKS: [&str; 2] = ["t", "another"];
const ITERATIONS_MAX: usize = 6;

/// The dialogues of a model: iterations of the first task, then those of the second.
const SLOTS_MAX: usize = TASKS.len() * ITERATIONS_MAX;

/// Above every number of a run.
const LATER: u32 = 1_000_000;

/// Rounds after which a pipeline of so few questions must be at its end.
const ROUNDS_MAX: usize = 50;

/// A rule that is not kept.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Broken {
    /// The sink takes a second run of a name, instead of the first one alone.
    CreatesAgain,
    /// Questions that earlier runs hold are not left out.
    ForgetsWhatIsHeld,
    /// The last scored verdict counts, not the first.
    TakesTheLastVerdict,
}

/// What the sink holds.
#[derive(Clone, Debug, Default)]
struct Sink {
    broken: Option<Broken>,
    /// By model and slot: what the model answered, or why it did not; nothing while it was not asked.
    answers: BTreeMap<(usize, usize), Result<u8, FailureCause>>,
    /// Iterations planned, by model and task.
    planned: [[usize; TASKS.len()]; MODELS.len()],
    packs: BTreeSet<RunId>,
    /// The questions of each run.
    runs: BTreeMap<RunId, Vec<CaseUid>>,
    /// Records in their order: run, question, what was said.
    records: Vec<(RunName, CaseUid, Ruling)>,
}

impl Sink {
    /// The slots of the planned dialogues of a model.
    fn slots(&self, model: usize) -> impl Iterator<Item = usize> + use<> {
        let planned = self.planned[model];
        (0..SLOTS_MAX).filter(move |slot| slot % ITERATIONS_MAX < planned[slot / ITERATIONS_MAX])
    }

    fn subjects(&self, model: usize) -> Vec<Subject> {
        let of_model = self.slots(model).filter_map(|slot| {
            let answer = self.answers.get(&(model, slot))?.ok()?;
            Some(Subject {
                key: key(model, slot),
                question: "q".to_owned(),
                answer: format!("answer {answer}"),
                case: Map::new(),
                scores: Scores::new(),
            })
        });
        of_model.collect()
    }

    fn stages(&self, model: usize) -> Vec<StageRecords> {
        let label: ModelLabel = MODELS[model].into();
        let of_stage = |spec: &Stage| {
            let mut found = StageRecords { finished: true, ..StageRecords::default() };
            let name = |number| RunName::new("p", spec.name, &label, number);
            while let Some(cases) = self.runs.get(&name(found.runs + 1).run()) {
                found.runs += 1;
                if self.broken != Some(Broken::ForgetsWhatIsHeld) {
                    found.held.extend(cases.iter().cloned());
                }
                let recorded = |uid: &CaseUid| {
                    self.records.iter().any(|(run, of, _)| *run == name(found.runs) && of == uid)
                };
                found.finished &= cases.iter().all(recorded);
            }
            let takes_last = self.broken == Some(Broken::TakesTheLastVerdict);
            let mut records: Vec<_> = self.records.iter().collect();
            if takes_last {
                records.reverse();
            }
            for (run, uid, ruling) in records.into_iter().filter(|(run, ..)| *run == name(run.number)) {
                let number = if takes_last { LATER - run.number } else { run.number };
                found.verdicts.add(number, uid.clone(), ruling.clone());
            }
            found
        };
        JUDGING.stages.iter().map(of_stage).collect()
    }

    /// Whether every dialogue of a model has a record: only then its answers are judged.
    fn is_asked(&self, model: usize) -> bool {
        self.slots(model).all(|slot| self.answers.contains_key(&(model, slot)))
    }

    fn derive<T>(&self, model: usize, with: impl FnOnce(&Derivation<'_>, &Asked<'_>) -> T) -> T {
        let judge: ModelSpec =
            serde_json::from_value(json!({"label": "j", "connector": "simulated"})).unwrap();
        let judges = vec![&judge; JUDGING.stages.len()];
        let (subjects, stages, label) = (self.subjects(model), self.stages(model), MODELS[model].into());
        with(&derivation(&JUDGING, &judges), &Asked { model: &label, subjects: &subjects, stages: &stages })
    }

    fn new_runs(&self, model: usize) -> Vec<NewRun> {
        if self.is_asked(model) {
            self.derive(model, |derivation, asked| derivation.new_runs(asked))
        } else {
            Vec::new()
        }
    }

    /// Who comes second finds the run there.
    fn create(&mut self, run: &NewRun) {
        let cases = run.task.cases.iter().map(|case| CaseUid::read(&case.uid));
        if self.broken == Some(Broken::CreatesAgain) {
            self.runs.insert(run.name.run(), cases.collect());
            return;
        }
        self.runs.entry(run.name.run()).or_insert_with(|| cases.collect());
    }

    fn record(&mut self, run: &RunName, uid: &CaseUid, ruling: Ruling) {
        self.records.push((run.clone(), uid.clone(), ruling));
    }

    fn report(&self, model: usize) -> ModelReport {
        let judged = self.derive(model, |derivation, asked| derivation.judged(asked));
        let all = self.slots(model).map(|slot| {
            let key = key(model, slot);
            match self.answers.get(&(model, slot)) {
                None => JudgedDialogue::unasked(key),
                Some(Err(cause)) => JudgedDialogue::unanswered(key, *cause),
                Some(Ok(_)) => judged.iter().find(|judged| judged.key == key).unwrap().clone(),
            }
        });
        ModelReport::of(MODELS[model].into(), &all.collect::<Vec<_>>(), JUDGING.metrics)
    }
}

fn key(model: usize, slot: usize) -> DialogueKey {
    let (task, iteration) = (TASKS[slot / ITERATIONS_MAX].into(), (slot % ITERATIONS_MAX) as u32);
    DialogueKey { model: MODELS[model].into(), task, iteration }
}

fn grade(grade: f64) -> Ruling {
    Ruling::Scored {
        scores: Scores::from_iter([("grade".to_owned(), json!(grade))]),
        infos: Infos::new(),
        seconds: 1.0,
    }
}

fn ruling(said: u8) -> Ruling {
    match said % 5 {
        0 => grade(0.0),
        1 | 2 => grade(0.5),
        3 => grade(1.0),
        _ => Ruling::Not(FailureCause::JudgeUnparseable),
    }
}

/// The grade of an answer, by somebody who knows the records and the rules, and no code of this crate but the names of
/// questions.
fn graded(sink: &Sink, model: usize, subject: &Subject) -> Option<f64> {
    let judge: ModelSpec = serde_json::from_value(json!({"label": "j", "connector": "simulated"})).unwrap();
    let said = |stage: usize, part: &str| -> Option<f64> {
        let spec = &JUDGING.stages[stage];
        let uid = JudgeQuestion::new(spec, &JudgeWordings::new(), &judge, texts(subject, part)).uid;
        let slug = RunName::new("p", spec.name, &MODELS[model].into(), 1).model;
        let mut found: Vec<_> = sink
            .records
            .iter()
            .filter(|(run, of, _)| run.stage == spec.name && run.model == slug && *of == uid)
            .filter_map(|(run, _, ruling)| Some((run.number, ruling.number("grade")?)))
            .collect();
        found.sort_by_key(|(number, _)| *number);
        found.first().map(|(_, grade)| *grade)
    };
    let one = said(0, "one")?;
    if one != 0.5 {
        return Some(one);
    }
    let (left, right) = (said(1, "left")?, said(1, "right")?);
    if left == right { Some(left) } else { said(2, "last") }
}

#[derive(Clone, Debug)]
enum Event {
    /// A model answers, fails, or answers at last where it had failed.
    Answer {
        model: usize,
        slot: usize,
        said: u8,
    },
    /// More iterations of a task are planned, or the first ones of a new task.
    Extend {
        model: usize,
        task: usize,
    },
    /// A coordinator looks at the sink and derives what it is to create.
    Derive {
        coordinator: usize,
        model: usize,
    },
    WritePack {
        coordinator: usize,
    },
    Create {
        coordinator: usize,
    },
    Crash {
        coordinator: usize,
    },
    /// A judge replies: the first time, after a retry, or to a worker that was given up: late, or twice after the queue
    /// was lost.
    Judge {
        place: usize,
        said: u8,
    },
}

fn event() -> impl Strategy<Value = Event> {
    let (model, slot, coordinator) = (0..MODELS.len(), 0..SLOTS_MAX, 0..3_usize);
    prop_oneof![
        4 => (model.clone(), slot, any::<u8>()).prop_map(|(model, slot, said)| Event::Answer { model, slot, said }),
        1 => (model.clone(), 0..TASKS.len()).prop_map(|(model, task)| Event::Extend { model, task }),
        3 => (coordinator.clone(), model).prop_map(|(coordinator, model)| Event::Derive { coordinator, model }),
        2 => coordinator.clone().prop_map(|coordinator| Event::WritePack { coordinator }),
        2 => coordinator.clone().prop_map(|coordinator| Event::Create { coordinator }),
        1 => coordinator.prop_map(|coordinator| Event::Crash { coordinator }),
        6 => (any::<usize>(), any::<u8>()).prop_map(|(place, said)| Event::Judge { place, said }),
    ]
}

/// What a coordinator has derived, and whether the pack of the first of it is written.
type Intent = (Vec<NewRun>, bool);

fn happen(sink: &mut Sink, intents: &mut [Intent; 3], event: Event) {
    match event {
        Event::Answer { model, slot, said } => {
            let answer = if said.is_multiple_of(4) { Err(FailureCause::Timeout) } else { Ok(said % 3) };
            let open = !matches!(sink.answers.get(&(model, slot)), Some(Ok(_)));
            // An answer stands; a failure may be asked again.
            if sink.slots(model).any(|planned| planned == slot) && open {
                sink.answers.insert((model, slot), answer);
            }
        }
        Event::Extend { model, task } => {
            let planned = &mut sink.planned[model][task];
            *planned = (*planned + 2).min(ITERATIONS_MAX);
        }
        Event::Derive { coordinator, model } => intents[coordinator] = (sink.new_runs(model), false),
        Event::WritePack { coordinator } => {
            let (runs, written) = &mut intents[coordinator];
            if let Some(run) = runs.first() {
                sink.packs.insert(run.name.run());
                *written = true;
            }
        }
        Event::Create { coordinator } => {
            let (runs, written) = &mut intents[coordinator];
            if *written {
                sink.create(&runs.remove(0));
                *written = false;
            }
        }
        Event::Crash { coordinator } => intents[coordinator] = Intent::default(),
        Event::Judge { place, said } => {
            let asked: Vec<(RunName, CaseUid)> = sink
                .runs
                .iter()
                .flat_map(|(run, cases)| cases.iter().map(|uid| (RunName::read(run).unwrap(), uid.clone())))
                .collect();
            if let Some((run, uid)) = asked.get(place % asked.len().max(1)) {
                sink.record(run, uid, ruling(said));
            }
        }
    }
}

/// Everything that can happen happens, until nothing is left to do: all models answer, all judges reply, one coordinator
/// derives. Whether it comes to an end.
fn settle(sink: &mut Sink) -> bool {
    for model in 0..MODELS.len() {
        for slot in sink.slots(model) {
            let answer = sink.answers.entry((model, slot)).or_insert(Ok(0));
            *answer = Ok(answer.unwrap_or(1));
        }
    }
    for _ in 0..ROUNDS_MAX {
        let runs: Vec<NewRun> = (0..MODELS.len()).flat_map(|model| sink.new_runs(model)).collect();
        let unsaid: Vec<(RunName, CaseUid)> = sink
            .runs
            .iter()
            .flat_map(|(run, cases)| cases.iter().map(|uid| (RunName::read(run).unwrap(), uid.clone())))
            .filter(|(run, uid)| {
                let scored = |ruling: &Ruling| ruling.number("grade").is_some();
                !sink.records.iter().any(|(of, said, ruling)| of == run && said == uid && scored(ruling))
            })
            .collect();
        if runs.is_empty() && unsaid.is_empty() {
            return true;
        }
        runs.iter().for_each(|run| sink.create(run));
        for (place, (run, uid)) in unsaid.into_iter().enumerate() {
            sink.record(&run, &uid, ruling(place as u8 % 4));
        }
    }
    false
}

/// Sees that the report is that of the records alone.
fn agrees(sink: &Sink) -> Result<(), TestCaseError> {
    for model in 0..MODELS.len() {
        let subjects = sink.subjects(model);
        for judged in sink.derive(model, |derivation, asked| derivation.judged(asked)) {
            if let JudgedOutcome::Scored(_) = judged.outcome {
                let subject = subjects.iter().find(|subject| subject.key == judged.key).unwrap();
                prop_assert_eq!(judged.number("grade"), graded(sink, model, subject));
            }
        }
    }
    Ok(())
}

/// Everything that the property says, for one history. `Err` says what does not hold.
fn holds_through(events: Vec<Event>, broken: Option<Broken>) -> Result<(), TestCaseError> {
    let mut sink = Sink { planned: [[4, 0], [3, 0]], broken, ..Sink::default() };
    let mut intents = <[Intent; 3]>::default();
    let late: Vec<Event> =
        events.iter().filter(|event| matches!(event, Event::Judge { .. })).cloned().collect();
    for event in events {
        happen(&mut sink, &mut intents, event);
        agrees(&sink)?;
    }
    prop_assert!(settle(&mut sink), "it never comes to an end");
    // Every judge has spoken, and some speak once more: to a worker that was given up, or after the queue was lost.
    for event in late {
        happen(&mut sink, &mut intents, event);
    }
    agrees(&sink)?;
    // Coordinators that were on their way come late, and change nothing that exists.
    let settled = sink.clone();
    for (runs, _) in intents {
        runs.iter().for_each(|run| sink.create(run));
    }
    prop_assert!(settled.runs.iter().all(|(run, cases)| sink.runs.get(run) == Some(cases)), "a run changed");
    prop_assert!(settle(&mut sink), "it never comes to an end");
    for (model, label) in MODELS.iter().enumerate() {
        for spec in JUDGING.stages {
            let of_stage = sink.runs.iter().filter(|(run, _)| {
                let name = RunName::read(run).unwrap();
                name.stage == spec.name
                    && name.model == RunName::new("p", spec.name, &(*label).into(), 1).model
            });
            let mut asked: Vec<&CaseUid> = of_stage.flat_map(|(_, cases)| cases).collect();
            let all = asked.len();
            asked.sort();
            asked.dedup();
            prop_assert_eq!(asked.len(), all, "a question stands in two runs of {}", spec.name);
        }
        prop_assert!(sink.new_runs(model).is_empty());
        let standings = sink.derive(model, |derivation, asked| derivation.standings(asked));
        prop_assert!(standings.iter().all(|standing| *standing == StageProgress::Done), "{:?}", standings);
        let subjects = sink.subjects(model);
        let grades: Vec<Option<f64>> = subjects.iter().map(|subject| graded(&sink, model, subject)).collect();
        prop_assert!(grades.iter().all(Option::is_some), "a verdict is missing: {:?}", grades);
        let report = sink.report(model);
        prop_assert_eq!((report.planned, report.scored), (grades.len() as u64, grades.len() as u64));
        prop_assert_eq!(report.metrics[0].mean, domain::Mean::of(grades));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_needed_question_is_asked_in_one_run_whatever_happens(events in prop::collection::vec(event(), 0..90)) {
        holds_through(events, None)?;
    }
}

/// Rules are broken one at a time, and each time the property says so: without these it would prove nothing.
#[test]
fn the_property_sees_every_rule_that_is_broken() {
    for (broken, complaint) in [
        (Broken::CreatesAgain, ""),
        (Broken::ForgetsWhatIsHeld, "never comes to an end"),
        (Broken::TakesTheLastVerdict, "assertion failed"),
    ] {
        let config = ProptestConfig {
            failure_persistence: None,
            max_shrink_iters: 0,
            ..ProptestConfig::with_cases(400)
        };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let histories = prop::collection::vec(event(), 0..90);
        let found = runner.run(&histories, |events| holds_through(events, Some(broken)));
        let found = found.expect_err(&format!("{broken:?} goes unnoticed")).to_string();
        assert!(found.contains(complaint), "{broken:?}: {found}");
    }
}

#[test]
fn what_failed_before_is_not_judged_and_a_judge_that_says_nothing_is_no_zero() {
    let mut sink = Sink { planned: [[3, 0], [0, 0]], ..Sink::default() };
    sink.answers.insert((0, 0), Ok(0));
    sink.answers.insert((0, 1), Err(FailureCause::Timeout));
    sink.answers.insert((0, 2), Ok(1));
    let runs = sink.new_runs(0);
    assert_eq!(
        (runs.len(), runs[0].name.to_string(), runs[0].task.cases.len()),
        (1, "p.one.m.1".to_owned(), 2)
    );
    sink.create(&runs[0]);
    let uids: Vec<CaseUid> = runs[0].task.cases.iter().map(|case| CaseUid::read(&case.uid)).collect();
    sink.record(&runs[0].name, &uids[0], grade(1.0));
    assert_eq!(sink.derive(0, |derivation, asked| derivation.standings(asked))[0], StageProgress::Asking);
    sink.record(&runs[0].name, &uids[1], Ruling::Not(FailureCause::JudgeUnparseable));
    assert!(sink.new_runs(0).is_empty());
    let report = sink.report(0);
    assert_eq!((report.planned, report.scored), (3, 1));
    assert_eq!(report.metrics[0].mean.to_string(), "1.000 (1/3)");
    let why: Vec<(&str, &str)> =
        report.not_judged.iter().map(|(why, _)| (why.stage, why.cause.as_str())).collect();
    assert_eq!(why, [("ask", "timeout"), ("one", "judge-unparseable")]);
    // A retry: the same question of the same run, and then one that follows from it.
    sink.record(&runs[0].name, &uids[1], grade(0.5));
    let next = sink.new_runs(0);
    assert_eq!((next[0].name.to_string(), next[0].task.cases.len()), ("p.two.m.1".to_owned(), 2));
}

/// A stage about cases that the second stage reads and the first does not.
static WITH_CASES: Judging = Judging {
    stages: &[
        Stage {
            stands_in: true,
            about: StageInput::Cases(|case| {
                let fact = case.get("fact").and_then(Value::as_str).unwrap_or_default().to_owned();
                vec![vec![("fact", fact)]]
            }),
            ..stage("facts", |_, _| Vec::new())
        },
        stage("first", |subject, _| vec![texts(subject, "first")]),
        Stage {
            stands_in: false,
            about: StageInput::Answers {
                reads: &["facts"],
                questions: |subject, _| vec![texts(subject, "second")],
            },
            ..stage("second", |_, _| Vec::new())
        },
    ],
    settings: &[],
    every_case: false,
    refuses: |_| None,
    conclude: |_, judgements| {
        let grade = judgements.number("second", "grade")?;
        Ok(Scores::from_iter([("grade".to_owned(), json!(grade))]))
    },
    metrics: |judged| vec![Metric::mean_of("grade", "grade", judged)],
    results: &[("grade", Better::Higher)],
};

#[test]
fn what_is_asked_about_cases_is_asked_once_for_all_models_and_holds_up_only_who_reads_it() {
    let judge: ModelSpec = serde_json::from_value(json!({"label": "j", "connector": "simulated"})).unwrap();
    let judges = [&judge; 3];
    let derivation = derivation(&WITH_CASES, &judges);
    let case = |fact: &str| Map::from_iter([("fact".to_owned(), json!(fact))]);
    let subject = |model: usize, fact: &str| Subject {
        key: key(model, 0),
        question: "q".to_owned(),
        answer: format!("answer of {model}"),
        case: case(fact),
        scores: Scores::new(),
    };
    let finished = || StageRecords { finished: true, ..StageRecords::default() };
    let mut stages = vec![finished(), finished(), finished()];
    let new_runs = |model: usize, stages: &[StageRecords]| {
        let (label, subjects): (ModelLabel, _) = (MODELS[model].into(), [subject(model, "a")]);
        let asked = Asked { model: &label, subjects: &subjects, stages };
        let names =
            derivation.new_runs(&asked).into_iter().map(|run| run.name.to_string()).collect::<Vec<_>>();
        (names, derivation.standings(&asked), derivation.judged(&asked).remove(0).outcome)
    };
    let shared = derivation.shared_runs(&[case("a"), case("b"), case("a")], &stages);
    assert_eq!(
        (shared.len(), shared[0].name.to_string(), shared[0].task.cases.len()),
        (1, "p.facts.all.1".to_owned(), 2)
    );
    let uids: Vec<CaseUid> = shared[0].task.cases.iter().map(|case| CaseUid::read(&case.uid)).collect();
    // Created, and no record yet: what needs no fact goes on, for each model.
    stages[0] = StageRecords {
        runs: 1,
        held: uids.iter().cloned().collect(),
        finished: false,
        ..StageRecords::default()
    };
    assert!(derivation.shared_runs(&[case("b"), case("a")], &stages).is_empty());
    for model in 0..MODELS.len() {
        let (names, standings, _) = new_runs(model, &stages);
        assert!(names.len() == 1 && names[0].starts_with("p.first."), "{names:?}");
        assert_eq!(standings, [StageProgress::Asking, StageProgress::Open, StageProgress::Waiting]);
    }
    let first = JudgeQuestion::new(
        &WITH_CASES.stages[1],
        &JudgeWordings::new(),
        &judge,
        texts(&subject(0, "a"), "first"),
    )
    .uid;
    stages[1].held.insert(first.clone());
    stages[1].verdicts.add(1, first, grade(1.0));
    let (names, standings, outcome) = new_runs(0, &stages);
    assert!(names.is_empty(), "the second one waits for facts");
    assert_eq!(standings, [StageProgress::Asking, StageProgress::Done, StageProgress::Waiting]);
    assert_eq!(outcome, JudgedOutcome::Waiting("facts"));
    // A fact that nobody could write holds nothing up.
    stages[0].verdicts.add(1, uids[0].clone(), Ruling::Not(FailureCause::Timeout));
    stages[0].verdicts.add(1, uids[1].clone(), grade(1.0));
    stages[0].finished = true;
    let (names, standings, _) = new_runs(0, &stages);
    assert_eq!(names, ["p.second.m.1"]);
    assert_eq!(standings, [StageProgress::Done, StageProgress::Done, StageProgress::Open]);
    // Another case is one more run.
    let shared = derivation.shared_runs(&[case("a"), case("c")], &stages);
    assert_eq!((shared[0].name.to_string(), shared[0].task.cases.len()), ("p.facts.all.2".to_owned(), 1));
}
