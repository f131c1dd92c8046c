//! The second pass: compares every record with the new pack.

use std::collections::{BTreeMap, HashMap};

use domain::PromptKind;
use results::llmkgbench::ResultRecord;

use super::cases::{CollectedTask, Collector};
use super::follow_ups::{self, gives};
use super::report::{FollowUpLine, Problem, TaskReport, TemplateOrigin};

/// Compares records with the tasks derived from them.
pub(super) struct Checker<'c> {
    collector: &'c Collector,
    /// Per task.
    counts: Vec<Counts>,
    turns: HashMap<(usize, String), Turn>,
}

#[derive(Clone, Debug, Default)]
struct Counts {
    dialogues: usize,
    prompts_kept: usize,
    /// Per kind: follow-ups sent, and those that the template reproduces.
    follow_ups: BTreeMap<PromptKind, (usize, usize)>,
}

/// The position of a model in a task.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    dialogues: usize,
    out_of_turn: bool,
}

impl<'c> Checker<'c> {
    pub(super) fn new(collector: &'c Collector) -> Self {
        Self { collector, counts: vec![Counts::default(); collector.tasks().len()], turns: HashMap::new() }
    }

    /// The differences between a record and the pack. Records of tasks that were left out are skipped.
    pub(super) fn check(&mut self, record: &ResultRecord) -> Vec<Problem> {
        let Some((index, task)) = self.collector.task_of(record) else { return Vec::new() };
        let Some(case) = task.case_index(record) else { return Vec::new() };
        self.counts[index].dialogues += 1;
        let mut problems = Vec::new();
        problems.extend(self.check_turn(index, task, case, record.model_id()));
        self.counts[index].prompts_kept += usize::from(is_kept_prompt(task, case, record));
        for follow_up in follow_ups::recorded(record, task.class) {
            let round = follow_up.round;
            let Some(kind) = follow_up.kind else {
                problems.push(Problem::UnknownFollowUp { round });
                continue;
            };
            let (sent, equal) = self.counts[index].follow_ups.entry(kind).or_default();
            *sent += 1;
            let template = task.data.wording.get(kind);
            if template.is_some_and(|template| gives(template, &follow_up.fields, follow_up.text)) {
                *equal += 1;
            } else {
                problems.push(Problem::FollowUpDiffers { round, kind });
            }
        }
        problems
    }

    /// Iteration i must use case i modulo their number. Reported once per model and task: after a missing record, all
    /// later ones are out of turn.
    fn check_turn(
        &mut self,
        index: usize,
        task: &CollectedTask,
        case: usize,
        model: &str,
    ) -> Option<Problem> {
        let turn = self.turns.entry((index, model.to_owned())).or_default();
        let expected = turn.dialogues % task.data.cases.len();
        turn.dialogues += 1;
        if case == expected || turn.out_of_turn {
            return None;
        }
        turn.out_of_turn = true;
        let uid = |case: usize| task.data.cases[case].uid.clone();
        Some(Problem::OutOfTurn { case: uid(case), expected: uid(expected) })
    }

    /// The summary of each task.
    pub(super) fn finish(self) -> Vec<TaskReport> {
        self.collector.tasks().iter().zip(self.counts).map(|(task, counts)| report(task, &counts)).collect()
    }
}

/// Whether the pack asks the case in the same words as this model was asked. Some prompts were rendered anew for
/// every question or run, so this is a statistic and not a finding.
fn is_kept_prompt(task: &CollectedTask, case: usize, record: &ResultRecord) -> bool {
    let kept = &task.data.cases[case].first_prompts;
    record.prompts().next().is_some_and(|prompt| kept.iter().any(|kept| kept == prompt))
}

fn report(task: &CollectedTask, counts: &Counts) -> TaskReport {
    let line = |kind: &PromptKind| {
        let (sent, equal) = counts.follow_ups.get(kind).copied().unwrap_or_default();
        let origin = task.origins.get(kind).cloned().unwrap_or(TemplateOrigin::Own);
        FollowUpLine { kind: *kind, origin, recorded: sent, equal }
    };
    TaskReport {
        task: task.data.label.clone(),
        class: task.data.class.clone(),
        version: task.data.version.clone(),
        cases: task.data.cases.len(),
        dialogues: counts.dialogues,
        asked_alike: counts.prompts_kept,
        first_prompts: task.data.cases.iter().map(|case| case.first_prompts.len()).sum(),
        follow_ups: task.class.follow_ups.iter().map(line).collect(),
    }
}
