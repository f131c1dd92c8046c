//! Two users who change the same at the same time: whatever step of the one the other comes upon, the outcome is that
//! of one after the other.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use domain::control::{BenchmarkCommand, Control, RunPhase};
use domain::exchange::{Receipt, Serves, WorkExchange};
use domain::{DialogueKey, ErrorCode, FailureCause, RunId};

use crate::benchmarks::verbs::command_of;

use super::ground::*;
use super::pipelines::Asked;
use super::worker::*;
use super::{extending, growing, pipelines};

/// Polls a future so often, lets something else happen as a whole, and goes on with it. What it comes to, and whether it was
/// done before.
pub(super) async fn interrupted<T>(
    polls: usize,
    future: impl Future<Output = T>,
    between: impl Future,
) -> (T, bool) {
    let (mut future, mut left, mut done) = (pin!(future), polls, None);
    poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(()); // What it waited for has happened.
        }
        left -= 1;
        future.as_mut().poll(context).map(|value| done = Some(value))
    })
    .await;
    let is_done = done.is_some();
    // What happens in between may wait for what the future holds: then it goes on.
    let mut between = pin!(between);
    poll_fn(|context| {
        if between.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        if done.is_none()
            && let Poll::Ready(value) = future.as_mut().poll(context)
        {
            done = Some(value);
        }
        Poll::Pending
    })
    .await;
    match done {
        Some(value) => (value, is_done),
        None => (future.await, false),
    }
}

async fn phase(coordinator: &Started, run: &RunId) -> RunPhase {
    coordinator.view(run).await.unwrap().phase
}

#[tokio::test]
async fn a_run_that_is_extended_in_its_last_round_is_asked_everything() {
    for polls in 1.. {
        let ground = Ground::new();
        let (one, two) = ground.two_users();
        let run = one.submit(submission(1)).await.unwrap().run;
        two.tend().await.unwrap();
        let (mut worker, mut asked) = (Worker::new("w"), Vec::new());
        worker.work_off(&two, &mut asked).await;
        let extend = async { one.extend(&run, extending::more()).await.unwrap() };
        let (tended, whole) = interrupted(polls, two.tend(), extend).await;
        tended.unwrap();
        one.tend().await.unwrap();
        two.tend().await.unwrap();
        asked.extend(extending::finish(&one, &run, &mut Worker::new("v")).await);
        assert_eq!(asked.len(), extending::MORE, "after {polls} polls");
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn what_is_acknowledged_while_a_run_is_extended_is_not_asked_again() {
    for polls in 1.. {
        let ground = Ground::new();
        let (one, two) = ground.two_users();
        let run = one.submit(submission(1)).await.unwrap().run;
        two.tend().await.unwrap();
        let mut worker = Worker::new("w");
        worker.exchange(&two, 50).await;
        let grant = worker.held[0].clone();
        let key = keys(&grant)[0].clone();
        let mut receipts = None;
        let deliver = async { receipts = two.deliver(vec![scored(&grant.lease, &key)]).await.ok() };
        let (extended, whole) = interrupted(polls, one.extend(&run, extending::more()), deliver).await;
        extended.unwrap();
        let mut asked = Vec::new();
        Worker::new("v").work_off(&one, &mut asked).await;
        if receipts.is_some_and(|receipts| receipts == [Receipt::Stored]) {
            assert!(!asked.contains(&key), "after {polls} polls");
        }
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn a_command_that_meets_a_new_generation_at_any_step_is_carried_out() {
    for command in [BenchmarkCommand::Resume, BenchmarkCommand::Pause, BenchmarkCommand::Cancel] {
        for polls in 0.. {
            let ground = Ground::new();
            let (one, two) = ground.two_users();
            let run = one.submit(submission(1)).await.unwrap().run;
            if command == BenchmarkCommand::Resume {
                one.command(&run, BenchmarkCommand::Pause).await.unwrap();
            }
            two.tend().await.unwrap();
            let generation = ground.queue.run(&run).await.unwrap().unwrap().at.generation;
            let replace = async { assert!(ground.queue.forget_run(&run).await.unwrap()) };
            let (done, whole) = interrupted(polls, two.command(&run, command), replace).await;
            done.unwrap_or_else(|error| panic!("{command:?} after {polls} polls: {error}"));
            for coordinator in [&one, &two] {
                coordinator.tend().await.unwrap();
                let wanted = command_of(phase(coordinator, &run).await);
                assert_eq!(wanted, command, "after {polls} polls");
            }
            // What is over needs no queue.
            let queued = ground.queue.run(&run).await.unwrap();
            assert!(queued.is_none_or(|queued| queued.at.generation > generation || whole));
            if command == BenchmarkCommand::Resume {
                let mut asked = Vec::new();
                Worker::new("w").work_off(&two, &mut asked).await;
                assert_eq!(asked.len(), 4, "after {polls} polls");
            }
            if whole {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_retry_that_meets_a_new_generation_at_any_step_asks_everything_again() {
    for polls in 0.. {
        let ground = Ground::new();
        let (one, two) = ground.two_users();
        let run = one.submit(submission(1)).await.unwrap().run;
        two.tend().await.unwrap();
        let mut worker = Worker::new("w");
        worker.exchange(&two, 50).await;
        for grant in std::mem::take(&mut worker.held) {
            let fail = |key| failed(&grant.lease, key, FailureCause::Timeout);
            two.deliver(keys(&grant).iter().map(fail).collect()).await.unwrap();
            worker.finished.push(grant.lease);
        }
        worker.exchange(&two, 0).await;
        let replace = async { assert!(ground.queue.forget_run(&run).await.unwrap()) };
        let (retried, whole) = interrupted(polls, two.retry(&run, &[]), replace).await;
        assert_eq!(retried.unwrap(), 4, "after {polls} polls");
        let asked = finish_by_rounds(&two, &run).await;
        assert_eq!(asked.len(), 4, "after {polls} polls");
        if whole {
            return;
        }
    }
}

/// Rounds of tending after which a run must be finished.
const ROUNDS_MAX: usize = 20;

/// What is asked of a worker until a run is finished, with a round of tending after everything that it does.
async fn finish_by_rounds(coordinator: &Started, run: &RunId) -> BTreeSet<DialogueKey> {
    let (mut worker, mut asked) = (Worker::new("v"), BTreeSet::new());
    for _ in 0..ROUNDS_MAX {
        if phase(coordinator, run).await == RunPhase::Finished {
            return asked;
        }
        worker.exchange(coordinator, 50).await;
        for grant in std::mem::take(&mut worker.held) {
            let keys = keys(&grant);
            let records = keys.iter().map(|key| scored(&grant.lease, key)).collect();
            coordinator.deliver(records).await.unwrap();
            asked.extend(keys);
            worker.finished.push(grant.lease);
        }
        coordinator.tend().await.unwrap();
    }
    panic!("not finished: {:?}", coordinator.view(run).await);
}

#[tokio::test]
async fn what_is_retried_in_the_last_round_of_a_run_counts() {
    for polls in 1.. {
        let ground = Ground::new();
        let (one, two) = ground.two_users();
        let run = one.submit(submission(1)).await.unwrap().run;
        two.tend().await.unwrap();
        let mut worker = Worker::new("w");
        worker.exchange(&two, 50).await;
        for grant in std::mem::take(&mut worker.held) {
            let fail = |key| failed(&grant.lease, key, FailureCause::Timeout);
            two.deliver(keys(&grant).iter().map(fail).collect()).await.unwrap();
            worker.finished.push(grant.lease);
        }
        worker.exchange(&two, 0).await;
        let retry = async { assert_eq!(one.retry(&run, &[]).await.unwrap(), 4) };
        let (tended, whole) = interrupted(polls, two.tend(), retry).await;
        tended.unwrap();
        let asked = finish_by_rounds(&one, &run).await;
        assert_eq!(asked.len(), 4, "after {polls} polls");
        if whole {
            return;
        }
    }
}

/// A pipeline after so many rounds at another coordinator than the one that has it from a user.
async fn judged(ground: &Ground, rounds: usize) -> (Arc<Started>, Arc<Started>, RunId, Asked) {
    let (one, two) = ground.two_users();
    let name = one.submit(pipelines::submission(&["m", "n"])).await.unwrap().run;
    let mut asked = Asked::default();
    for _ in 0..rounds {
        two.tend().await.unwrap();
        pipelines::work_off(&two, &mut asked).await;
    }
    (one, two, name, asked)
}

#[tokio::test]
async fn a_judged_benchmark_that_is_removed_and_submitted_again_is_another_one() {
    let ground = Ground::new();
    let (one, two) = ground.two_users();
    let name = one.submit(pipelines::submission(&["m"])).await.unwrap().run;
    two.tend().await.unwrap();
    let mut worker = Worker::new("w");
    worker.serves = vec![Serves::Model("m".to_owned())];
    worker.exchange(&two, 50).await;
    let grant = worker.held[0].clone();
    let late = scored(&grant.lease, &keys(&grant)[0]);
    one.remove(&name, true).await.unwrap();
    assert_eq!(one.submit(pipelines::submission(&["m"])).await.unwrap().run, name);

    // What was asked before answers nothing that is asked now.
    let receipts = two.deliver(vec![late.clone()]).await.unwrap();
    assert!(matches!(&receipts[..], [Receipt::Refused { .. }]), "{receipts:?}");
    two.tend().await.unwrap();
    assert_eq!(worker.exchange(&two, 0).await.lost, [grant.lease]);
    let mut asked = Asked::default();
    let view = pipelines::finish(&two, &name, &mut asked).await;
    assert_eq!((view.planned, view.scored, asked.answered.len()), (4, 4, 4));
    one.tend().await.unwrap();
    assert_eq!(pipelines::outcome(&one.view(&name).await.unwrap()), pipelines::outcome(&view));
}

#[tokio::test]
async fn a_claim_of_a_removed_run_that_came_too_late_sets_nothing_back() {
    let ground = Ground::new();
    let one = ground.coordinator();
    let name = one.submit(pipelines::submission(&["m"])).await.unwrap().run;
    one.tend().await.unwrap();
    let runs = std::fs::read_dir(ground.data.path().join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let claims = runs.into_iter().next().unwrap().join("generations");
    let claim = |generation: u64| {
        std::fs::create_dir_all(&claims).unwrap();
        std::fs::write(claims.join(format!("{generation:020}.json")), "{}\n").unwrap();
    };
    // It was built anew by one whose clock is ahead.
    let ahead = u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap() + (1 << 30);
    claim(ahead);
    one.remove(&name, true).await.unwrap();
    // Another coordinator claims one for what it does not know to be removed.
    claim(1);
    assert_eq!(one.submit(pipelines::submission(&["m"])).await.unwrap().run, name);
    let mut asked = Asked::default();
    let view = pipelines::finish(&one, &name, &mut asked).await;
    assert_eq!((view.planned, view.scored), (4, 4));
    let highest = std::fs::read_dir(&claims).unwrap().map(|entry| entry.unwrap().file_name()).max().unwrap();
    assert!(highest.to_str().unwrap() > format!("{ahead:020}").as_str(), "{highest:?}");
}

/// Names of what there is of judged benchmarks: their runs and documents.
async fn left(ground: &Ground) -> Vec<String> {
    let runs = results::Sink::new(ground.data.path()).runs().await.unwrap();
    let documents = std::fs::read_dir(ground.data.path().join("pipelines")).unwrap();
    let documents = documents.map(|file| file.unwrap().file_name().into_string().unwrap());
    runs.iter().map(|run| run.dir.run().to_string()).chain(documents).collect()
}

/// Removes a benchmark, as somebody who asks again where another command was in the way.
async fn remove(coordinator: &Started, name: &RunId) {
    for _ in 0..pipelines::ROUNDS_MAX {
        match coordinator.remove(name, true).await {
            Err(error) if error.code.is_transient() => coordinator.tend().await.unwrap(),
            Err(error) if error.code == ErrorCode::NotFound => return,
            removed => return removed.unwrap(),
        }
    }
    panic!("{name} cannot be removed");
}

/// Sees that coordinators leave nothing of a judged benchmark that was removed.
async fn expect_nothing_left(ground: &Ground, coordinators: &[&Arc<Started>], polls: usize) {
    for coordinator in coordinators.iter().rev() {
        coordinator.tend().await.unwrap();
    }
    assert_eq!(left(ground).await, [""; 0], "after {polls} polls");
}

#[tokio::test]
async fn a_removal_is_not_undone_by_who_resumes_and_extends_meanwhile() {
    for polls in (1..).step_by(3) {
        let ground = Ground::new();
        let (one, two, name, _) = judged(&ground, 1).await;
        let meanwhile = async {
            // They are refused, or come before the removal.
            let _ = two.command(&name, BenchmarkCommand::Resume).await;
            let _ = two.extend(&name, growing::more()).await;
        };
        let ((), whole) = interrupted(polls, remove(&one, &name), meanwhile).await;
        expect_nothing_left(&ground, &[&one, &two], polls).await;
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_benchmark_that_is_removed_while_somebody_extends_it() {
    for polls in (1..).step_by(3) {
        let ground = Ground::new();
        let (one, two, name, _) = judged(&ground, 1).await;
        let remove = remove(&one, &name);
        let (_, whole) = Box::pin(interrupted(polls, two.extend(&name, growing::more()), remove)).await;
        expect_nothing_left(&ground, &[&one, &two], polls).await;
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_benchmark_that_is_removed_while_somebody_resumes_it() {
    for polls in 1.. {
        let ground = Ground::new();
        let (one, two, name, _) = judged(&ground, 1).await;
        let remove = remove(&one, &name);
        let resume = two.command(&name, BenchmarkCommand::Resume);
        let (_, whole) = Box::pin(interrupted(polls, resume, remove)).await;
        expect_nothing_left(&ground, &[&one, &two], polls).await;
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn a_removal_over_which_a_coordinator_died_is_ended_by_another_one() {
    for polls in 1.. {
        let ground = Ground::new();
        let (one, two, name, _) = judged(&ground, 1).await;
        let whole = pipelines::killed_after(polls, one.remove(&name, true)).await;
        drop((one, two));
        let two = ground.coordinator();
        two.tend().await.unwrap();
        // It is there as it was, or gone, the last documents perhaps not, which nobody can read; and who submits it again
        // has it as a whole.
        let there = left(&ground).await;
        match two.view(&name).await {
            Ok(view) => assert_eq!(view.phase, RunPhase::Active, "after {polls} polls: {there:?}"),
            Err(error) => {
                assert_eq!(error.code, ErrorCode::NotFound, "after {polls} polls: {there:?}");
                assert!(there.iter().all(|name| name.contains(".state")), "after {polls} polls: {there:?}");
            }
        }
        let again = two.submit(pipelines::submission(&["m", "n"])).await.unwrap().run;
        let view = pipelines::finish(&two, &again, &mut Asked::default()).await;
        assert_eq!((view.planned, view.scored), (8, 8), "after {polls} polls");
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn what_is_derived_while_its_benchmark_is_removed_goes_with_it() {
    for polls in (1..).step_by(3) {
        let ground = Ground::new();
        let (one, two, name, _) = judged(&ground, 1).await;
        let remove = async { one.remove(&name, true).await.unwrap() };
        let (_, whole) = interrupted(polls, two.tend(), remove).await;
        one.tend().await.unwrap();
        let left = results::Sink::new(ground.data.path()).runs().await.unwrap();
        assert!(left.is_empty(), "after {polls} polls: {left:?}");
        if whole {
            return;
        }
    }
}
