//! What must hold at the end of a simulation.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::control::{BenchmarkCommand, BenchmarkView, Control, RunPhase};
use domain::{RecordId, RunId};
use queue::{QueueStore, RunState};
use results::Summary;
use results::log::{LogItem, LogReader, WinnerIndex};
use serde_json::Value;

use crate::book::{Asked, Came, Kept, Told, of};
use crate::fleet::FleetInTurn;
use crate::users::{EXTENDED_JUDGED, EXTENDED_PLAIN, PLAIN};

/// The longest time from the last command and the last fault to the end of every benchmark.
const END_MAX: Duration = Duration::from_secs(300);

/// How often it is looked whether benchmarks have ended.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// What a run says that was submitted by somebody who died before it was begun, so that somebody resumes it.
const NEVER_BEGUN: &str = "never begun";

/// Time in which who does not lead any more finds that out, and runs hear of the last command.
const QUIET: Duration = Duration::from_secs(3);

/// Sees that commands were obeyed, that everything ends, and that records, queue and views agree.
pub async fn all(fleet: &FleetInTurn) {
    tokio::time::sleep(QUIET).await;
    obeyed(fleet).await;
    resume_paused(fleet).await;
    match ended(fleet).await {
        Ok(()) => {}
        Err(why) => return fleet.book.broken(why),
    }
    tokio::time::sleep(QUIET).await;
    for run in runs(fleet).await {
        sound(fleet, &run).await;
    }
    extended(fleet).await;
    agreed(fleet).await;
    one_answer(fleet);
}

async fn listed(fleet: &FleetInTurn) -> Vec<BenchmarkView> {
    match fleet.leading().await.access.list().await {
        Ok(listed) => listed,
        Err(error) => {
            fleet.book.broken(format!("benchmarks cannot be listed: {error}"));
            Vec::new()
        }
    }
}

/// What the log of a run says: its records, which of them count, and the phase that its last event says.
struct Said {
    ids: BTreeSet<RecordId>,
    winners: WinnerIndex,
    phase: Option<RunPhase>,
}

impl Said {
    fn read(fleet: &FleetInTurn, run: &RunId) -> Self {
        let (book, folder) = (&fleet.book, fleet.sink.run_dir(run).unwrap().log());
        let (mut ids, mut phase) = (BTreeSet::new(), None);
        for item in LogReader::<Summary>::of(&folder, None).unwrap() {
            match item {
                Ok(LogItem::Record { record, .. }) => _ = ids.insert(record.attempt.id),
                Ok(LogItem::Event { json, .. }) => {
                    let event: Value = serde_json::from_str(&json).unwrap();
                    if let Some(state) = event.get("state") {
                        phase = Some(serde_json::from_value(state["phase"].clone()).unwrap());
                    }
                }
                // What a writer left unfinished that was followed counts for nobody.
                Ok(LogItem::Damage(damage)) if !damage.is_loss() => {}
                Ok(LogItem::Damage(damage)) => book.broken(format!("the log of {run} is damaged: {damage}")),
                Err(error) => book.broken(format!("the log of {run} cannot be read: {error}")),
            }
        }
        Self { ids, phase, winners: WinnerIndex::build(&folder, None, 0, |_| {}).unwrap() }
    }

    fn scored(&self) -> u64 {
        self.winners.scored() as u64
    }

    fn failed(&self) -> u64 {
        (self.winners.len() - self.winners.scored()) as u64
    }
}

/// The phase of a run by its log, or of a judged benchmark by its documents; `None` where there is none. A state alone is none: what
/// it is of was removed while it was written.
async fn phase_in_sink(fleet: &FleetInTurn, name: &RunId) -> Option<RunPhase> {
    if fleet.sink.manifest(name).await.is_ok() {
        return Said::read(fleet, name).phase;
    }
    fleet.sink.read(&format!("pipelines/{name}.manifest-1.json")).await.unwrap()?;
    let (_, state) = fleet.sink.newest_json::<Value>(&format!("pipelines/{name}.state"), 0).await.unwrap()?;
    serde_json::from_value(state["phase"].clone()).unwrap()
}

/// Commands that may let a benchmark go on that was cancelled or paused.
fn revives(asked: Asked, is_judged: bool) -> bool {
    match asked {
        Asked::Extend | Asked::Resume | Asked::Retry => true,
        // The same configuration is the same judged benchmark, and another run.
        Asked::Submit => is_judged,
        Asked::Pause | Asked::Cancel | Asked::Remove => false,
    }
}

/// Sees that what was cancelled and let go on by nobody is cancelled, and what was removed is gone.
async fn obeyed(fleet: &FleetInTurn) {
    let told = fleet.book.told();
    let names: BTreeSet<&RunId> = told.iter().map(|told| &told.name).collect();
    for name in names {
        let about: Vec<&Told> = told.iter().filter(|told| told.name == *name).collect();
        let is_judged = name.as_str().starts_with("judged-");
        let undone = |done: &Told, by: &dyn Fn(Asked) -> bool| {
            about
                .iter()
                .any(|later| by(later.asked) && later.came != Came::Refused && later.ended > done.begun)
        };
        let done = |asked| about.iter().filter(move |told| told.asked == asked && told.came == Came::Done);
        let phase = phase_in_sink(fleet, name).await;
        let by_removal = |asked| asked == Asked::Remove;
        if done(Asked::Remove).any(|removal| !undone(removal, &|asked| asked == Asked::Submit && is_judged)) {
            if phase.is_some() {
                fleet.book.broken(format!("{name} was removed and is {phase:?}"));
            }
            continue;
        }
        let revived = |asked| revives(asked, is_judged) || by_removal(asked);
        if done(Asked::Cancel).any(|cancel| !undone(cancel, &revived)) && phase != Some(RunPhase::Cancelled) {
            fleet.book.broken(format!("{name} was cancelled and is {phase:?}"));
        }
        let changed = |asked| asked != Asked::Pause && (asked != Asked::Submit || is_judged);
        if done(Asked::Pause).any(|pause| !undone(pause, &changed))
            && !matches!(phase, Some(RunPhase::Paused | RunPhase::Finished))
        {
            // What was handed out before may have finished it.
            fleet.book.broken(format!("{name} was paused and is {phase:?}"));
        }
    }
}

/// Lets go on what a user has left paused. Who is told that the same may succeed later asks again, as users do.
async fn resume_paused(fleet: &FleetInTurn) {
    for view in listed(fleet).await {
        if view.phase == RunPhase::Paused {
            let live = fleet.leading().await;
            let resume = || live.access.command(&view.run, BenchmarkCommand::Resume);
            let resumed = match resume().await {
                Err(error) if error.code.is_transient() => resume().await,
                resumed => resumed,
            };
            if let Err(error) = resumed {
                fleet.book.broken(format!("{} cannot be resumed: {error}", view.run));
            }
        }
    }
}

/// Whether a benchmark goes on, of which the newest manifest plans `planned` dialogues. One that was extended when it was
/// finished, by somebody who died over that, goes on once a coordinator has looked for such runs; until then coordinators
/// may show what they loaded before.
fn goes_on(view: &BenchmarkView, planned: u64) -> bool {
    !view.phase.is_over() || (view.phase == RunPhase::Finished && view.done() < planned.max(view.planned))
}

/// The benchmarks that go on.
async fn going(fleet: &FleetInTurn) -> Vec<BenchmarkView> {
    let mut going = Vec::new();
    for view in listed(fleet).await {
        // A judged benchmark plans by its parts, which its coordinators show.
        let planned = fleet.sink.manifest(&view.run).await.map_or(0, |manifest| manifest.planned_dialogues);
        if goes_on(&view, planned) {
            going.push(view);
        }
    }
    going
}

/// Waits for the end of every benchmark, and does meanwhile what one asks its users for.
async fn ended(fleet: &FleetInTurn) -> Result<(), String> {
    let begun = fleet.world.elapsed();
    loop {
        let going = going(fleet).await;
        if going.is_empty() {
            return Ok(());
        }
        if fleet.world.elapsed() > begun + END_MAX {
            let mut why = String::from("not all ends:\n");
            for view in &going {
                let live = fleet.leading().await;
                let seen = live.access.view(&view.run).await;
                why += &format!("{} does not end: listed as {view:?}, seen as {seen:?}\n", view.run);
            }
            return Err(why);
        }
        for view in &going {
            if view.trouble.as_deref().is_some_and(|trouble| trouble.contains(NEVER_BEGUN)) {
                let live = fleet.leading().await;
                let _ = live.access.command(&view.run, BenchmarkCommand::Resume).await;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The runs in the sink.
async fn runs(fleet: &FleetInTurn) -> Vec<RunId> {
    fleet.sink.runs().await.unwrap().into_iter().map(|found| found.dir.run()).collect()
}

/// Sees that a run has every record that was acknowledged and one that counts for each dialogue, and that the queue and the list
/// of the sink say so, too.
async fn sound(fleet: &FleetInTurn, run: &RunId) {
    let book = &fleet.book;
    let manifest = fleet.sink.manifest(run).await.unwrap();
    let said = Said::read(fleet, run);
    let told = book.told();
    let removals: Vec<&Told> =
        told.iter().filter(|told| told.asked == Asked::Remove && of(&told.name, run)).collect();
    let removed = fleet.sink.removed_generation(run).await.unwrap();
    for kept in book.kept().iter().filter(|kept| kept.run == *run) {
        // What is derived while its benchmark is removed goes a moment later, with what it was told until then.
        let was_derived_meanwhile = !removals.is_empty() && kept.generation <= removed;
        let was_removed = was_derived_meanwhile || removals.iter().any(|removal| removal.ended > kept.at);
        if !was_removed && !said.ids.contains(&kept.id) {
            book.broken(format!("the record of {} of run {run} was acknowledged and is lost", kept.key));
        }
    }
    let (phase, found) = (said.phase, said.winners.len() as u64);
    // A benchmark may be cancelled when its run was extended and had not gone on yet.
    let benchmark = RunId::new(run.as_str().split('.').next().unwrap_or_default());
    let is_held_up = benchmark != *run && phase_in_sink(fleet, &benchmark).await == Some(RunPhase::Cancelled);
    if phase == Some(RunPhase::Finished) && found != manifest.planned_dialogues && !is_held_up {
        let planned = manifest.planned_dialogues;
        book.broken(format!("run {run} is finished with {found} of {planned} dialogues"));
    }
    list_agrees(fleet, run, &said).await;
    let Some(status) = fleet.leading().await.queue.queue.run(run).await.unwrap() else { return };
    let expected = match phase {
        Some(RunPhase::Finished) => RunState::Finished,
        Some(RunPhase::Cancelled) => RunState::Cancelled,
        Some(RunPhase::Paused) => RunState::Paused,
        _ => RunState::Active,
    };
    // A Redis that was set back may know an earlier end: nothing is handed out either way, until a thorough round tells it.
    let is_over = |state| matches!(state, RunState::Finished | RunState::Cancelled);
    if status.state != expected && !(is_over(status.state) && is_over(expected)) {
        book.broken(format!("run {run} is {phase:?}, and {} in the queue", status.state));
    }
}

/// Sees that the sink's list says of a run that is over what its log says. Where somebody has claimed a later epoch, it says nothing.
async fn list_agrees(fleet: &FleetInTurn, run: &RunId, said: &Said) {
    let listed = fleet.sink.state::<Value>(run).await.unwrap().unwrap_or_default();
    let is_newest = listed["epoch"].as_u64() == fleet.sink.epoch(run).await.unwrap().map(u64::from);
    if !is_newest || !said.phase.is_some_and(RunPhase::is_over) {
        return;
    }
    let phase: Option<RunPhase> = serde_json::from_value(listed["phase"].clone()).unwrap();
    let failed: u64 =
        listed["failures"].as_array().unwrap().iter().filter_map(|cause| cause[1].as_u64()).sum();
    if (phase, listed["scored"].as_u64(), failed) != (said.phase, Some(said.scored()), said.failed()) {
        let (scored, failed) = (said.scored(), said.failed());
        fleet.book.broken(format!(
            "run {run} is {:?} with {scored} scored and {failed} failed dialogues, and listed as {listed}",
            said.phase
        ));
    }
}

/// Sees that what was extended has everything that it was extended by.
async fn extended(fleet: &FleetInTurn) {
    let told = fleet.book.told();
    let listed = listed(fleet).await;
    for view in &listed {
        let about = |asked| told.iter().filter(move |told| told.asked == asked && told.name == view.run);
        let removed = about(Asked::Remove).any(|told| told.came != Came::Refused);
        let done = about(Asked::Extend).any(|told| told.came == Came::Done);
        let planned = if view.run.as_str().starts_with("judged-") { EXTENDED_JUDGED } else { EXTENDED_PLAIN };
        if done && !removed && view.phase == RunPhase::Finished && view.planned != planned {
            fleet.book.broken(format!("{} was extended to {planned} dialogues: {view:?}", view.run));
        }
    }
}

/// Sees that a finished benchmark is finished in all its parts, a cancelled one has none that goes on, and that the leader shows
/// what the logs say.
async fn agreed(fleet: &FleetInTurn) {
    let book = &fleet.book;
    for listed in listed(fleet).await {
        let view = match fleet.leading().await.access.view(&listed.run).await {
            Ok(view) => view,
            Err(error) => {
                book.broken(format!("{} cannot be seen: {error}", listed.run));
                continue;
            }
        };
        // A list has the counts of a judged benchmark that ended at last.
        let is_plain = fleet.sink.manifest(&view.run).await.is_ok();
        let counts = |view: &BenchmarkView| (view.planned, view.scored, view.failed);
        let facts = |view: &BenchmarkView| (view.phase, is_plain.then(|| counts(view)));
        if facts(&listed) != facts(&view) {
            book.broken(format!("{} is listed as {listed:?} and seen as {view:?}", view.run));
        }
        let shown = [(&view.run, view.phase, view.scored, view.failed)];
        let lines = view.runs.iter().map(|line| (&line.name, line.phase, line.scored, line.failed));
        for (run, phase, scored, failed) in shown.into_iter().chain(lines) {
            if *run == view.run && !is_plain {
                continue;
            }
            let said = Said::read(fleet, run);
            let begun = (phase != RunPhase::Preparing).then_some(phase);
            if (said.phase, said.scored(), said.failed()) != (begun, scored, failed) {
                let in_log = (said.phase, said.scored(), said.failed());
                book.broken(format!("run {run} is shown as {:?} and is {in_log:?}", (phase, scored, failed)));
            }
        }
        let parts: Vec<_> = view
            .runs
            .iter()
            .filter(|line| {
                // One that was created and never begun asks nothing.
                (!line.phase.is_over() && line.phase != RunPhase::Preparing)
                    || (view.phase == RunPhase::Finished && line.phase != RunPhase::Finished)
            })
            .collect();
        if view.phase.is_over() && !parts.is_empty() {
            book.broken(format!("{} is {} and has parts that are not: {parts:?}", view.run, view.phase));
        }
        if view.phase == RunPhase::Finished && view.done() != view.planned {
            book.broken(format!(
                "{} is finished with {} of {} dialogues",
                view.run,
                view.done(),
                view.planned
            ));
        }
    }
}

/// Sees that submissions of one configuration at the same moment began one run.
fn one_answer(fleet: &FleetInTurn) {
    let (told, kept) = (fleet.book.told(), fleet.book.kept());
    let overlap = |one: &Told, other: &Told| one.begun < other.ended && other.begun < one.ended;
    let is_plain_submission = |told: &&Told| {
        told.asked == Asked::Submit && told.came == Came::Done && !told.name.as_str().starts_with("judged-")
    };
    let mut begun: Vec<&Told> = Vec::new();
    for submission in told.iter().filter(is_plain_submission) {
        if begun.iter().any(|known| known.name == submission.name) {
            continue;
        }
        for known in &begun {
            let ends = |told: &Told| {
                matches!(told.asked, Asked::Cancel | Asked::Remove)
                    && told.name == known.name
                    && told.begun < submission.ended
            };
            let is_of_known = |kept: &&Kept| kept.run == known.name && kept.at < submission.ended;
            // It may have been finished when it was looked for.
            let is_done = kept.iter().filter(is_of_known).count() as u64 >= PLAIN;
            if overlap(known, submission) && !is_done && !told.iter().any(ends) {
                let (one, other) = (&known.name, &submission.name);
                fleet
                    .book
                    .broken(format!("submissions at the same moment began two runs: {one} and {other}"));
            }
        }
        begun.push(submission);
    }
}
