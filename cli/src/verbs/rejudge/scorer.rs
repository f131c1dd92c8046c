//! Judges the recorded answers of a run again with the current scorer, as a new run.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail};
use coordinator::planned::new_name;
use domain::seed::question_seed;
use domain::{Mean, Outcome, Record, Scores, TaskLabel};
use jiff::Timestamp;
use results::log::{LogOptions, LogWriter};
use results::{RunDir, RunManifest};
use serde::Serialize;
use serde_json::json;
use tasks::{Dialogue, Effort, Evaluation, Task, TaskClass};

use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{Table, note};
use crate::kit::screen::Screen;
use crate::place::opened::OpenedBenchmark;
use crate::place::targets::Targets;
use crate::place::{disclosure, folders, packs as material, trust};

/// Records between two syncs of the new log.
const COMMIT_EVERY: usize = 256;

/// Changed dialogues that are printed one by one; the rest is counted.
const CHANGES_PRINTED_MAX: usize = 20;

/// A dialogue whose scores changed.
#[derive(Serialize)]
struct Change {
    dialogue: String,
    before: Scores,
    after: Scores,
}

/// The changes of one task.
#[derive(Default)]
struct TaskTally {
    changed: u64,
    /// Headline scores of its dialogues; absent where the scores have none.
    before: Vec<Option<f64>>,
    after: Vec<Option<f64>>,
}

impl TaskTally {
    fn add(&mut self, class: TaskClass, before: &Scores, after: &Scores) {
        self.before.push(class.headline_of(before));
        self.after.push(class.headline_of(after));
        self.changed += u64::from(before != after);
    }
}

/// Judges a run again, by another pack if one is named. The new run goes into the data folder.
pub(super) fn run(
    opened: &OpenedBenchmark,
    other_pack: Option<&str>,
    data_dir: &Path,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let (dir, manifest) = opened.only()?;
    // A run that is being written does not have all of its records yet.
    let _whole = dir.lock()?;
    let mut damages = 0_u64;
    let index = folders::recorded_despite(dir, manifest, |damage| {
        damages += 1;
        eprintln!("the record log is damaged: {damage}; the dialogues in that place are not judged");
    })?;
    let own_pack = || manifest.configuration.get("pack").and_then(|name| name.as_str());
    let pack = material::open_pack(other_pack.or_else(own_pack).unwrap_or(material::CORE))?;
    let is_other = manifest.packs.iter().all(|used| used.hash != pack.hash().as_str());
    if is_other && other_pack.is_none() {
        // Scores on other exercises say nothing about the scorer.
        bail!(usage!(
            "run {} asked from pack {}, and this one is {}; name a pack to judge by with --pack",
            manifest.run,
            manifest.packs.first().map_or("?", |pack| pack.hash.get(..12).unwrap_or("?")),
            pack.hash().short()
        ));
    }
    let labels: Vec<TaskLabel> = index.iter().map(|(key, _)| key.task).collect();
    let tasks = pack.build_selected(&pack.graphs()?.build(), |task| labels.contains(&task.label))?;

    let now = Timestamp::now();
    let mut other = manifest.other.clone();
    other.insert("rejudged_from".to_owned(), manifest.run.as_str().into());
    if is_other {
        let (name, hash) = (pack.header().name.as_str(), pack.hash().as_str());
        other.insert("rejudged_by".to_owned(), json!({ "pack": name, "hash": hash }));
    }
    let rejudged = RunManifest {
        run: new_name(now),
        created_at: now,
        kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
        // Dialogues without a record in the old run are left out of the new one, which is finished when written.
        planned_dialogues: index.len() as u64,
        other,
        ..manifest.clone()
    };
    let cipher = disclosure::cipher(manifest)?;
    // It joins the other runs when it is whole: half of the records would look like an interrupted run, which
    // `kgfleet resume` continues with answers of today.
    let apart = tempfile::tempdir_in(data_dir)
        .with_context(|| format!("cannot make a folder in {}", data_dir.display()))?;
    let new_dir = RunDir::create(apart.path(), &rejudged)?;
    let options = LogOptions { cipher: disclosure::writing_cipher(&rejudged)?, ..LogOptions::default() };
    let expects_prompts = is_other.then_some(manifest.seed);
    let judge = Judge { tasks, effort: Effort::full(pack.header().limits), expects_prompts };
    let (mut changes, mut tallies) = (Vec::new(), BTreeMap::<String, TaskTally>::new());
    let mut writer = LogWriter::open(&new_dir.log(), options)?;
    for record in index.records(&dir.log(), cipher.as_ref())? {
        let mut record = record?;
        changes.extend(judge.again(&mut record, &mut tallies)?);
        writer.append(&record)?;
        if writer.group_lines() >= COMMIT_EVERY {
            writer.commit()?;
        }
    }
    writer.commit()?;
    drop(writer);
    new_dir.move_to(data_dir)?;
    // `kgfleet retry` may ask its failed dialogues as those of the old one.
    let targets = folders::configuration(manifest).map(|configuration| Targets::of(&configuration)).ok();
    if let Some(targets) = targets.filter(|targets| trust::is_own(&manifest.run, targets)) {
        trust::note_own(&rejudged.run, &targets);
    }

    let mut out = io::stdout().lock();
    if json {
        let told = json!({ "run": rejudged.run, "rejudged_from": manifest.run, "dialogues": index.len(), "changes": changes });
        writeln!(out, "{told}")?;
    } else {
        print(&tallies, &changes, &mut out)?;
    }
    note!("run {} has the records of run {}, judged again", rejudged.run, manifest.run);
    Ok(if damages > 0 { ExitCode::BadInput } else { ExitCode::Success })
}

struct Judge {
    tasks: Vec<Task>,
    effort: Effort,
    /// The seed of a run that asked from another pack: its prompts must be those of this one.
    expects_prompts: Option<u64>,
}

impl Judge {
    /// Replaces the scores of a scored record by current ones; returns the change, if there is one.
    ///
    /// # Errors
    /// The pack would have asked something else.
    fn again(
        &self,
        record: &mut Record,
        tallies: &mut BTreeMap<String, TaskTally>,
    ) -> anyhow::Result<Option<Change>> {
        if !record.outcome.is_scored() {
            return Ok(None);
        }
        let task = self.tasks.iter().find(|task| task.label == record.key.task);
        let as_asked = self.expects_prompts.map(|seed| self.as_asked(task, record, seed)).transpose()?;
        let Some(task) = task else { return Ok(None) };
        let after = as_asked.unwrap_or_else(|| {
            let exercise = task.case(record.key.iteration).exercise();
            let answers = record.rounds.iter().map(|round| round.answer.text.as_str());
            tasks::replay(&**exercise, answers, &self.effort).evaluation
        });
        let Outcome::Scored { scores, infos } = &mut record.outcome else { return Ok(None) };
        record.provenance.kgfleet = env!("CARGO_PKG_VERSION").to_owned();
        record.provenance.task.scorer = worker::scorer(self.effort.limits, None);
        let before = std::mem::replace(scores, after.scores);
        *infos = after.infos;

        tallies.entry(record.key.task.to_string()).or_default().add(task.class, &before, scores);
        let change =
            || Change { dialogue: record.key.to_string(), before: before.clone(), after: scores.clone() };
        Ok((before != *scores).then(change))
    }

    /// Judges the answers of a dialogue in which the pack would have asked what the run did.
    ///
    /// # Errors
    /// It would have asked something else.
    fn as_asked(&self, task: Option<&Task>, record: &Record, seed: u64) -> anyhow::Result<Evaluation> {
        let otherwise = |difference: String| {
            let key = &record.key;
            usage!("{key}: {difference}, so this answer cannot be judged by it; nothing was written")
        };
        let task = task.ok_or_else(|| otherwise("the pack has no such task".to_owned()))?;
        let asked = &record.provenance.task;
        if (&task.class_name, &task.version) != (&asked.class, &asked.version) {
            let (class, version) = (&task.class_name, &task.version);
            let was = format!("{} {}", asked.class, asked.version);
            return Err(otherwise(format!(
                "the pack has a task of class {class} {version}, and the run asked one of {was}"
            )));
        }
        let iteration = record.key.iteration;
        if task.system(iteration)? != record.system {
            return Err(otherwise("the pack has another system prompt".to_owned()));
        }
        let seed = question_seed(seed, &task.label, iteration);
        let exercise = task.case(iteration).exercise();
        let mut dialogue = Dialogue::new(exercise.shots());
        for number in 0..=record.rounds.len() {
            let (next, sent) = (task.next_prompt(iteration, seed, &dialogue)?, record.rounds.get(number));
            if next.map(|prompt| prompt.text).as_deref() != sent.map(|round| round.prompt.text.as_str()) {
                return Err(otherwise(match (number, sent) {
                    (0, _) => "the pack has another prompt".to_owned(),
                    (_, None) => format!("by the pack there would be another prompt after answer {number}"),
                    (_, Some(_)) => {
                        format!("by the pack another prompt, or none, would follow answer {number}")
                    }
                }));
            }
            if let Some(round) = sent {
                dialogue.take(exercise.judge(&round.answer.text, &self.effort));
            }
        }
        Ok(dialogue.into_evaluation())
    }
}

fn print(tallies: &BTreeMap<String, TaskTally>, changes: &[Change], out: &mut dyn Write) -> io::Result<()> {
    let mut table =
        Table::default().left(["task"]).right(["dialogues", "changed", "headline before", "after"]);
    for (task, tally) in tallies {
        let mean = |headlines: &[Option<f64>]| format!("{:.4}", Mean::of(headlines.iter().copied()));
        table.row(vec![
            task.clone(),
            tally.before.len().to_string(),
            tally.changed.to_string(),
            mean(&tally.before),
            mean(&tally.after),
        ]);
    }
    Screen::here().table(&table, out)?;
    writeln!(out)?;
    for change in changes.iter().take(CHANGES_PRINTED_MAX) {
        writeln!(out, "changed: {}", change.dialogue)?;
    }
    if changes.len() > CHANGES_PRINTED_MAX {
        writeln!(out, "... and {} more; --json lists all", changes.len() - CHANGES_PRINTED_MAX)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_headline_is_missing_from_the_means() {
        let class = TaskClass::resolve("RdfFriendCount", "4.4").unwrap();
        let scores = |value: serde_json::Value| value.as_object().cloned().unwrap();
        let mut tally = TaskTally::default();
        tally.add(class, &scores(json!({"f1": 0.5})), &scores(json!({"f1": 0.5})));
        tally.add(class, &scores(json!({"recall": 1})), &scores(json!({"f1": 1})));
        let mut out = Vec::new();
        print(&BTreeMap::from([("count".to_owned(), tally)]), &[], &mut out).unwrap();
        let printed = String::from_utf8(out).unwrap();
        let row: Vec<&str> =
            printed.lines().find(|line| line.contains("count")).unwrap().split_whitespace().collect();
        assert_eq!(row, ["count", "2", "1", "0.5000", "(1/2)", "0.7500"], "{printed}");
    }
}
