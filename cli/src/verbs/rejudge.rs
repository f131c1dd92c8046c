//! `kgfleet rejudge`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anyhow::{Context, bail};
use coordinator::planned::new_name;
use domain::{Mean, Outcome, Record, Scores, TaskLabel};
use jiff::Timestamp;
use packs::Pack;
use results::log::{LogOptions, LogWriter};
use results::{RunDir, RunManifest};
use serde::Serialize;
use serde_json::json;
use tasks::{Effort, Task, TaskClass};

use crate::files::copy;
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::Table;
use crate::place::data_dir::DataDir;
use crate::place::targets::Targets;
use crate::place::{disclosure, folders, names, packs as material, trust};

/// Records between two syncs of the new log.
const COMMIT_EVERY: usize = 256;

/// Changed dialogues that are printed one by one; the rest is counted.
const CHANGES_PRINTED_MAX: usize = 20;

/// Judge the recorded answers of a run again with the current scorer, as a new run.
///
/// The new run has the records of the old one with current scores, and `rejudged_from` in its manifest; failed
/// dialogues stay failed. The old run is unchanged; a run that some process writes is refused. Answers are judged in
/// this process, without a sandbox.
///
/// Exit code 4: the run's log is damaged; the rest was judged.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[arg(help = names::HELP)]
    run: String,
    /// The pack to judge by. Default: the pack of the run.
    #[arg(long, value_name = "PACK")]
    pack: Option<String>,
    /// Print JSON: the new run and every changed dialogue, with its scores before and after.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: DataDir,
}

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

/// Runs the command.
pub fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let (dir, manifest) = arguments.data.open(&arguments.run)?;
    // A run that is being written does not have all of its records yet.
    let _whole = dir.lock()?;
    let mut damages = 0_u64;
    let index = folders::recorded_despite(&dir, &manifest, |damage| {
        damages += 1;
        eprintln!("the record log is damaged: {damage}; the dialogues in that place are not judged");
    })?;
    let pack_name = match &arguments.pack {
        Some(name) => name.as_str(),
        None => manifest.configuration.get("pack").and_then(|name| name.as_str()).unwrap_or(material::CORE),
    };
    let pack = material::open_pack(pack_name)?;
    check_pack(&arguments, &manifest, &pack)?;
    let labels: Vec<TaskLabel> = index.iter().map(|(key, _)| key.task).collect();
    let tasks = pack.build_selected(&pack.graphs()?.build(), |task| labels.contains(&task.label))?;

    let now = Timestamp::now();
    let mut other = manifest.other.clone();
    other.insert("rejudged_from".to_owned(), manifest.run.as_str().into());
    let rejudged = RunManifest {
        run: new_name(now),
        created_at: now,
        kgfleet: env!("CARGO_PKG_VERSION").to_owned(),
        // Dialogues without a record in the old run are left out of the new one, which is finished when written.
        planned_dialogues: index.len() as u64,
        other,
        ..manifest.clone()
    };
    let cipher = disclosure::cipher(&manifest)?;
    // It joins the other runs when it is whole: half of the records would look like an interrupted run, which
    // `kgfleet resume` continues with answers of today.
    let data_dir = arguments.data.path();
    let apart = tempfile::tempdir_in(data_dir)
        .with_context(|| format!("cannot make a folder in {}", data_dir.display()))?;
    let new_dir = RunDir::create(apart.path(), &rejudged)?;
    let options = LogOptions { cipher: disclosure::writing_cipher(&rejudged)?, ..LogOptions::default() };
    let judge = Judge { tasks, effort: Effort::full(pack.header().limits) };
    let (mut changes, mut tallies) = (Vec::new(), BTreeMap::<String, TaskTally>::new());
    let (mut writer, _) = LogWriter::open(&new_dir.log(), options)?;
    for entry in index.records(&dir.log(), cipher.as_ref())? {
        let mut entry = entry?;
        changes.extend(judge.again(&mut entry.record, &mut tallies));
        writer.append(&entry)?;
        if writer.group_entries() >= COMMIT_EVERY {
            writer.commit()?;
        }
    }
    writer.commit()?;
    drop(writer);
    copy::between_folders(apart.path(), data_dir, &rejudged.run)?;
    // `kgfleet retry` may ask its failed dialogues as those of the old one.
    let targets = folders::configuration(&manifest).map(|configuration| Targets::of(&configuration)).ok();
    if let Some(targets) = targets.filter(|targets| trust::is_own(&manifest.run, targets)) {
        trust::note_own(&rejudged.run, &targets);
    }

    let mut out = io::stdout().lock();
    if arguments.json {
        let told = json!({ "run": rejudged.run, "rejudged_from": manifest.run, "dialogues": index.len(), "changes": changes });
        writeln!(out, "{told}")?;
    } else {
        print(&tallies, &changes, &mut out)?;
    }
    eprintln!("run {} has the records of run {}, judged again", rejudged.run, manifest.run);
    Ok(if damages > 0 { ExitCode::BadInput } else { ExitCode::Success })
}

/// Refuses another pack, unless the user named it: scores on other exercises say nothing about the scorer.
fn check_pack(arguments: &Arguments, manifest: &RunManifest, pack: &Pack) -> anyhow::Result<()> {
    let asked = manifest.packs.iter().any(|used| used.hash == pack.hash().as_str());
    if !asked && arguments.pack.is_none() {
        bail!(usage!(
            "run {} asked from pack {}, and this one is {}; name a pack to judge by with --pack",
            manifest.run,
            manifest.packs.first().map_or("?", |pack| pack.hash.get(..12).unwrap_or("?")),
            pack.hash().short()
        ));
    }
    Ok(())
}

struct Judge {
    tasks: Vec<Task>,
    effort: Effort,
}

impl Judge {
    /// Replaces the scores of a scored record by current ones; returns the change, if there is one.
    fn again(&self, record: &mut Record, tallies: &mut BTreeMap<String, TaskTally>) -> Option<Change> {
        let Outcome::Scored { scores, infos } = &mut record.outcome else { return None };
        let task = self.tasks.iter().find(|task| task.label == record.key.task)?;
        let exercise = task.case(record.key.iteration).exercise();
        let answers = record.rounds.iter().map(|round| round.answer.text.as_str());
        let after = tasks::replay(&**exercise, answers, &self.effort).evaluation;
        record.provenance.kgfleet = env!("CARGO_PKG_VERSION").to_owned();
        record.provenance.task.scorer = worker::scorer(self.effort.limits, None);
        let before = std::mem::replace(scores, after.scores);
        *infos = after.infos;

        tallies.entry(record.key.task.to_string()).or_default().add(task.class, &before, scores);
        let change =
            || Change { dialogue: record.key.to_string(), before: before.clone(), after: scores.clone() };
        (before != *scores).then(change)
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
    table.write(out)?;
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
