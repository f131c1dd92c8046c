//! Workers that died: their registration expired, or another process took their name, and they had not signed off.
//!
//! Each coordinator finds that out by itself, from what the queue says from round to round. It is for people, and may be
//! forgotten: a coordinator that starts knows of none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use domain::exchange::WorkerStatus;
use domain::{InstanceId, WorkerId};

use crate::fleet::workers::Member;

/// How the trouble of a lost worker begins.
pub const LOST: &str = "lost:";

/// How long a lost worker is remembered after its last report.
const REMEMBERED_FOR: Duration = Duration::from_secs(3600);

/// Maximum number of lost workers that are remembered; the oldest give way.
const REMEMBERED_MAX: usize = 1_000;

/// A worker as it last reported.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LostWorker {
    pub worker: WorkerId,
    pub instance: InstanceId,
    pub status: Arc<WorkerStatus>,
    /// Time of that report, milliseconds since the Unix epoch by the store's clock.
    pub seen_ms: u64,
}

impl LostWorker {
    /// What it is shown with: what it held, and nothing that somebody might count on.
    pub(crate) fn shown(&self) -> WorkerStatus {
        let WorkerStatus { kgfleet, host, serves, in_flight, dialogues, unacknowledged, .. } = &*self.status;
        let served =
            if serves.is_empty() { String::new() } else { format!(", served {}", serves.join(", ")) };
        let held =
            format!("{in_flight} dialogues in flight, {unacknowledged} records not acknowledged{served}");
        WorkerStatus {
            kgfleet: kgfleet.clone(),
            host: host.clone(),
            dialogues: *dialogues,
            trouble: Some(format!("{LOST} it went away without a word; it had {held}")),
            ..WorkerStatus::default()
        }
    }
}

/// The workers of the round before, and those that were lost.
#[derive(Debug, Default)]
pub(crate) struct LostWorkers {
    known: BTreeMap<WorkerId, LostWorker>,
    /// By the time of their last report.
    lost: Vec<LostWorker>,
}

impl LostWorkers {
    /// A worker signed off.
    pub(crate) fn signed_off(&mut self, worker: &WorkerId, instance: &InstanceId) {
        if self.known.get(worker).is_some_and(|known| known.instance == *instance) {
            self.known.remove(worker);
        }
    }

    /// Compares the workers that are registered at `now_ms`, by the store's clock, with those of the round before. A
    /// registration lasts for `kept` after a report: who is gone sooner has signed off, perhaps at another coordinator.
    pub(crate) fn note(&mut self, members: &[Member], now_ms: u64, kept: Duration) {
        // The store may have looked at its clock a moment later.
        let expired_after = kept * 3 / 4;
        let age = |seen_ms: u64| Duration::from_millis(now_ms.saturating_sub(seen_ms));
        let now = members.iter().map(|member| {
            let known = LostWorker {
                worker: member.worker.clone(),
                instance: member.instance.clone(),
                status: Arc::clone(&member.status),
                seen_ms: member.seen_ms,
            };
            (member.worker.clone(), known)
        });
        let before = std::mem::replace(&mut self.known, now.collect());
        for (name, was) in before {
            let is_lost = match self.known.get(&name) {
                Some(is) => is.instance != was.instance,
                None => age(was.seen_ms) >= expired_after,
            };
            if is_lost {
                tracing::warn!(worker = %name, in_flight = was.status.in_flight, "a worker was lost");
                self.lost.push(was);
            }
        }
        // One that could not reach the queue for a while comes back.
        let is_back = |lost: &LostWorker| {
            self.known.get(&lost.worker).is_some_and(|known| known.instance == lost.instance)
        };
        self.lost.retain(|lost| age(lost.seen_ms) < REMEMBERED_FOR && !is_back(lost));
        self.lost.sort_by_key(|lost| lost.seen_ms);
        let too_many = self.lost.len().saturating_sub(REMEMBERED_MAX);
        self.lost.drain(..too_many);
    }

    /// Those that are remembered, the latest first.
    pub(crate) fn latest(&self) -> Vec<LostWorker> {
        self.lost.iter().rev().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Duration = Duration::from_secs(30);

    fn member(worker: &str, instance: &str, seen_s: u64) -> Member {
        let status = WorkerStatus { in_flight: 3, serves: vec!["m".to_owned()], ..WorkerStatus::default() };
        Member {
            worker: worker.into(),
            instance: instance.into(),
            status: Arc::new(status),
            seen_ms: seen_s * 1000,
            draining: false,
        }
    }

    fn names(lost: &LostWorkers) -> Vec<String> {
        lost.latest().iter().map(|lost| format!("{}/{}", lost.worker, lost.instance)).collect()
    }

    #[test]
    fn who_goes_without_a_word_is_lost_and_remembered_for_an_hour() {
        let mut workers = LostWorkers::default();
        let all = ["dies", "ends-here", "ends-elsewhere", "stays"].map(|name| member(name, "1", 100));
        workers.note(&all, 101_000, KEPT);
        workers.signed_off(&"ends-here".into(), &"1".into());
        let still = [member("dies", "1", 100), member("stays", "1", 105)];
        workers.note(&still, 106_000, KEPT);
        assert_eq!(names(&workers), [""; 0], "two have signed off");
        workers.note(&[member("stays", "1", 130)], 130_000, KEPT);
        assert_eq!(names(&workers), ["dies/1"]);
        let told = workers.latest()[0].shown().trouble.unwrap();
        assert!(
            told.starts_with(LOST) && told.contains("3 dialogues") && told.contains("served m"),
            "{told}"
        );
        workers.note(&[member("stays", "1", 3699)], 3_699_000, KEPT);
        assert_eq!(names(&workers), ["dies/1"]);
        workers.note(&[member("stays", "1", 3700)], 3_700_000, KEPT);
        assert_eq!(names(&workers), [""; 0]);
    }

    #[test]
    fn a_process_that_takes_the_name_of_one_that_did_not_sign_off_tells_that_it_died() {
        let mut workers = LostWorkers::default();
        workers.note(&[member("w", "1", 100)], 100_000, KEPT);
        workers.note(&[member("w", "2", 103)], 103_000, KEPT);
        assert_eq!(names(&workers), ["w/1"]);
    }

    #[test]
    fn one_that_comes_back_was_not_lost() {
        let mut workers = LostWorkers::default();
        workers.note(&[member("w", "1", 100)], 100_000, KEPT);
        workers.note(&[], 140_000, KEPT);
        assert_eq!(names(&workers), ["w/1"]);
        workers.note(&[member("w", "1", 141)], 141_000, KEPT);
        assert_eq!(names(&workers), [""; 0]);
    }

    #[test]
    fn of_very_many_the_latest_are_remembered() {
        let mut workers = LostWorkers::default();
        let many = |range: std::ops::Range<usize>| -> Vec<Member> {
            range.map(|number| member(&format!("w-{number:04}"), "1", 100 + number as u64 / 10)).collect()
        };
        workers.note(&many(0..REMEMBERED_MAX + 10), 200_000, KEPT);
        workers.note(&[], 300_000, KEPT);
        let latest = workers.latest();
        assert_eq!((latest.len(), latest[0].worker.as_str()), (REMEMBERED_MAX, "w-1009"));
    }
}
