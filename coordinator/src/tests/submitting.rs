//! One submission that several coordinators are sent: it has one answer, and nothing is asked twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use domain::RunId;
use domain::control::{BenchmarkCommand, Control, RunPhase};

use super::extending;
use super::failing_sink::FailingSink;
use super::ground::*;
use super::pipelines::killed_after;
use super::racing::interrupted;
use super::worker::Worker;

/// Dialogues of `submission(1)`.
const DIALOGUES: usize = 4;

async fn runs_in(ground: &Ground) -> Vec<RunId> {
    let found = results::Sink::new(ground.data.path()).runs().await.unwrap();
    found.into_iter().map(|found| found.dir.run()).collect()
}

#[tokio::test]
async fn a_run_that_two_coordinators_are_sent_at_once_is_one() {
    for polls in 1.. {
        let ground = Ground::new();
        let (one, two) = ground.two_users();
        let mut theirs = None;
        let between = async { theirs = Some(two.submit(submission(1)).await.unwrap().run) };
        let (mine, whole) = interrupted(polls, one.submit(submission(1)), between).await;
        let run = mine.unwrap().run;
        assert_eq!(theirs.as_ref(), Some(&run), "after {polls} polls");
        assert_eq!(runs_in(&ground).await, std::slice::from_ref(&run), "after {polls} polls");
        two.tend().await.unwrap();
        let asked = extending::finish(&one, &run, &mut Worker::new("w")).await;
        assert_eq!(asked.len(), DIALOGUES, "after {polls} polls");
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn who_dies_over_a_submission_leaves_one_run_to_who_is_sent_it_next() {
    for polls in 1.. {
        let ground = Ground::new();
        let (one, two) = ground.two_users();
        let whole = killed_after(polls, one.submit(submission(1))).await;
        drop(one);
        let run = two.submit(submission(1)).await.unwrap().run;
        assert_eq!(runs_in(&ground).await, std::slice::from_ref(&run), "after {polls} polls");
        let asked = extending::finish(&two, &run, &mut Worker::new("w")).await;
        assert_eq!(asked.len(), DIALOGUES, "after {polls} polls");
        if whole {
            return;
        }
    }
}

#[tokio::test]
async fn a_submission_of_what_is_over_or_removed_begins_another_run() {
    let ground = Ground::new();
    let (one, two) = ground.two_users();
    let first = one.submit(submission(1)).await.unwrap().run;
    two.command(&first, BenchmarkCommand::Cancel).await.unwrap();
    let second = one.submit(submission(1)).await.unwrap().run;
    assert_ne!(first, second);
    one.remove(&second, true).await.unwrap();
    let third = two.submit(submission(1)).await.unwrap().run;
    assert!(third != first && third != second, "{third}");
    assert_eq!(one.submit(submission(1)).await.unwrap().run, third, "it is not over");
    assert_eq!(one.view(&third).await.unwrap().phase, RunPhase::Active);
    // A priority is no other question.
    let mut urgent = submission(1);
    urgent.configuration["priority"] = 90.into();
    let joined = two.submit(urgent.clone()).await.unwrap();
    assert_eq!((&joined.run, joined.priority), (&third, 10), "who joins changes nothing");
    // An extension changes it, and keeps it where it names none.
    assert_eq!(two.extend(&third, urgent).await.unwrap().priority, 90);
    assert_eq!(two.extend(&third, submission(1)).await.unwrap().priority, 90);
}

#[tokio::test]
async fn a_submission_passes_over_no_run_that_only_could_not_be_read_just_now() {
    // A submission looks twice before it passes over a run, so that two of the calls fail that read a manifest.
    for first in 1.. {
        for second in first + 1.. {
            let ground = Ground::new();
            let run = ground.coordinator().submit(submission(1)).await.unwrap().run;
            let (folder, sink) = FailingSink::new(ground.data.path());
            let two = Started::of(config(), Arc::clone(&ground.queue), folder);
            let made = Arc::new(AtomicU32::new(0));
            let calls = Arc::clone(&made);
            sink.fail(move |call| {
                call == "existing" && [first, second].contains(&(calls.fetch_add(1, Ordering::Relaxed) + 1))
            });
            // Each of the two may refuse a submission.
            for attempt in 1.. {
                match two.submit(submission(1)).await {
                    Ok(view) => {
                        assert_eq!(view.run, run, "calls {first} and {second} failed");
                        break;
                    }
                    Err(error) => {
                        assert!(error.code.is_transient() && attempt < 3, "calls {first}, {second}: {error}");
                    }
                }
            }
            assert_eq!(runs_in(&ground).await, [run], "calls {first} and {second} failed");
            let made = made.load(Ordering::Relaxed);
            if made < first {
                return;
            }
            if made < second {
                break;
            }
        }
    }
}
