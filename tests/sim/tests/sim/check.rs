//! What must hold at the end of a simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::control::{BenchmarkCommand, BenchmarkView, Control, RunPhase};
use domain::{DialogueKey, RecordId, RunId};
use queue::RunState;
use results::log::{LogItem, LogReader, Seals, WinnerIndex};
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

/// Time in which every coordinator hears of the last command.
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
    let mut tries = 0;
    loop {
        let live = fleet.coordinators().remove(tries % 2);
        match live.access.list().await {
            Ok(listed) => return listed,
            Err(error) if tries > 5 => {
                fleet.book.broken(format!("benchmarks cannot be listed: {error}"));
                return Vec::new();
            }
            Err(_) => tries += 1,
        }
    }
}

/// The phase of a run or of a judged benchmark in the sink; `None` where there is none. A state alone is none: what it is of was
/// removed while it was written.
async fn phase_in_sink(fleet: &FleetInTurn, name: &RunId) -> Option<RunPhase> {
    let documents = [
        (format!("runs/{name}/state"), format!("runs/{name}/manifest.json")),
        (format!("pipelines/{name}.state"), format!("pipelines/{name}.manifest-1.json")),
    ];
    for (document, manifest) in documents {
        if fleet.sink.read(&manifest).await.unwrap().is_none() {
            continue;
        }
        if let Ok(Some((_, state))) = fleet.sink.newest_json::<Value>(&document, 0).await {
            return serde_json::from_value(state["phase"].clone()).ok();
        }
    }
    None
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
            let live = fleet.coordinators().remove(0);
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
        if going.is_empty() && are_closed(fleet).await {
            return Ok(());
        }
        if fleet.world.elapsed() > begun + END_MAX {
            let mut why = String::from("not all ends, or is closed:\n");
            for view in &going {
                let live = fleet.coordinators().remove(0);
                let seen = live.access.view(&view.run).await;
                why += &format!("{} does not end: listed as {view:?}, seen as {seen:?}\n", view.run);
            }
            return Err(why);
        }
        for view in &going {
            if view.trouble.as_deref().is_some_and(|trouble| trouble.contains(NEVER_BEGUN)) {
                let live = fleet.coordinators().remove(0);
                let _ = live.access.command(&view.run, BenchmarkCommand::Resume).await;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Whether a run is finished without a seal that fixes its winners.
async fn is_open(fleet: &FleetInTurn, run: &RunId) -> bool {
    let folder = fleet.sink.run_dir(run).unwrap().log();
    phase_in_sink(fleet, run).await == Some(RunPhase::Finished)
        && !Seals::read(&folder).unwrap().0.is_closed()
}

/// Whether every finished run is closed. One that was reopened by somebody who died over that is closed again, after a while.
async fn are_closed(fleet: &FleetInTurn) -> bool {
    for run in runs(fleet).await {
        if is_open(fleet, &run).await {
            return false;
        }
    }
    true
}

/// The runs in the sink.
async fn runs(fleet: &FleetInTurn) -> Vec<RunId> {
    fleet.sink.runs().await.unwrap().into_iter().map(|found| found.dir.run()).collect()
}

/// Sees that a run has every record that was acknowledged and one that counts for each dialogue, and that the queue says so,
/// too.
async fn sound(fleet: &FleetInTurn, run: &RunId) {
    let book = &fleet.book;
    let manifest = fleet.sink.manifest(run).await.unwrap();
    let folder = fleet.sink.run_dir(run).unwrap().log();
    let mut ids = BTreeSet::<RecordId>::new();
    for item in LogReader::open(&folder, None).unwrap() {
        match item {
            Ok(LogItem::Entry { entry, .. }) => _ = ids.insert(entry.record.attempt.id.clone()),
            Ok(LogItem::Damage(damage)) => book.broken(format!("the log of {run} is damaged: {damage}")),
            Err(error) => book.broken(format!("the log of {run} cannot be read: {error}")),
        }
    }
    let told = book.told();
    let removals: Vec<&Told> =
        told.iter().filter(|told| told.asked == Asked::Remove && of(&told.name, run)).collect();
    let removed = fleet.sink.removed_generation(run).await.unwrap();
    for kept in book.kept().iter().filter(|kept| kept.run == *run) {
        // What is derived while its benchmark is removed goes a moment later, with what it was told until then.
        let was_derived_meanwhile = !removals.is_empty() && kept.generation <= removed;
        let was_removed = was_derived_meanwhile || removals.iter().any(|removal| removal.ended > kept.at);
        if !was_removed && !ids.contains(&kept.id) {
            book.broken(format!("the record of {} of run {run} was acknowledged and is lost", kept.key));
        }
    }
    let index = WinnerIndex::build(&folder, None, 0, |_| {}).unwrap();
    let phase = phase_in_sink(fleet, run).await;
    let winners: BTreeMap<DialogueKey, bool> =
        index.iter().map(|(key, rank)| (key, rank.is_scored())).collect();
    if phase == Some(RunPhase::Finished) && winners.len() as u64 != manifest.planned_dialogues {
        let (found, planned) = (winners.len(), manifest.planned_dialogues);
        book.broken(format!("run {run} is finished with {found} of {planned} dialogues"));
    }
    if is_open(fleet, run).await {
        book.broken(format!("run {run} is finished, and no seal fixes its winners"));
    }
    let Some(status) = fleet.queue.run(run).await.unwrap() else { return };
    let expected = match phase {
        Some(RunPhase::Finished) => RunState::Finished,
        Some(RunPhase::Cancelled) => RunState::Cancelled,
        Some(RunPhase::Paused) => RunState::Paused,
        _ => RunState::Active,
    };
    if status.state != expected {
        book.broken(format!("run {run} is {phase:?}, and {} in the queue", status.state));
    }
    let counted: u64 = fleet
        .queue
        .counts(&status.at)
        .await
        .unwrap()
        .iter()
        .map(|counts| counts.scored + counts.failed)
        .sum();
    // The queue of a run that is over may be built anew, empty.
    if counted > winners.len() as u64 {
        let found = winners.len();
        book.broken(format!(
            "the queue counts {counted} dialogues of run {run}, of which {found} have a record"
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

/// Sees that a finished benchmark is finished in all its parts, a cancelled one has none that goes on, and that all
/// coordinators show the same.
async fn agreed(fleet: &FleetInTurn) {
    let book = &fleet.book;
    for listed in listed(fleet).await {
        let mut seen = Vec::new();
        for live in fleet.coordinators() {
            match live.access.view(&listed.run).await {
                Ok(view) => seen.push(view),
                Err(error) => book.broken(format!("{} cannot be seen: {error}", listed.run)),
            }
        }
        let facts = |view: &BenchmarkView| {
            let cells: Vec<_> = view
                .cells
                .iter()
                .map(|cell| (cell.task.clone(), cell.model.clone(), cell.scored, cell.failed))
                .collect();
            (view.phase, view.planned, view.scored, view.failed, cells)
        };
        if let [one, two] = seen.as_slice()
            && facts(one) != facts(two)
        {
            book.broken(format!("coordinators do not agree: {one:?}\n{two:?}"));
        }
        let Some(view) = seen.first() else { continue };
        let parts: Vec<_> = view
            .runs
            .iter()
            .filter(|line| {
                !line.phase.is_over()
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
