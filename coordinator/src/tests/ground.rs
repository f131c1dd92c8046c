//! The ground that a coordinator stands on: a queue whose time the test owns, and a folder. The coordinator does nothing by
//! itself; its rounds are the test's. This lies here because it looks at parts that no other crate sees.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use domain::caller::Caller;
use domain::control::{BenchmarkView, Control, ExportItem, Submission};
use domain::{DialogueKey, Record, RunId, ServiceError};
use futures::StreamExt;
use queue::{ManualClock, MemoryStore, QueueStore};
use results::Sink;
use serde_json::json;

use crate::access::{Access, CoordinatorParts};
use crate::audit::AuditLog;
use crate::records::dialogues::{DialogueRow, DialogueTable};
use crate::{Adopt, Coordinator, CoordinatorOptions};

/// The start of time in these tests, in milliseconds since 1970.
pub const START_MS: u64 = 1_700_000_000_000;

/// A coordinator's world: a queue whose time the test owns, and a folder.
pub struct Ground {
    pub clock: Arc<ManualClock>,
    pub queue: Arc<dyn QueueStore>,
    pub data: tempfile::TempDir,
}

impl Ground {
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::at(START_MS));
        let queue = Arc::new(MemoryStore::checked(clock.clone()));
        Self { clock, queue, data: tempfile::tempdir().unwrap() }
    }

    /// Takes everything from the queue, as a Redis without persistence does when it restarts.
    pub fn lose_queue(&mut self) {
        self.clock.advance_ms(10_000);
        self.queue = Arc::new(MemoryStore::checked(self.clock.clone()));
    }

    /// A coordinator that does nothing by itself and looks at the queue whenever it is asked.
    pub fn coordinator(&self) -> Arc<Started> {
        self.coordinator_with(config())
    }

    /// A coordinator with two who use it at the same time.
    pub fn two_users(&self) -> (Arc<Started>, Arc<Started>) {
        let one = self.coordinator();
        (Arc::clone(&one), one)
    }

    pub fn coordinator_with(&self, config: CoordinatorOptions) -> Arc<Started> {
        start(config, Arc::clone(&self.queue), self.data.path())
    }

    /// Lets every lease expire that is not renewed.
    pub fn expire_leases(&self) {
        self.clock.advance_ms(config().lease_for.as_millis() as u64 + 1);
    }
}

/// A coordinator, and the access of who started it.
pub struct Started {
    coordinator: Arc<Coordinator>,
    access: Arc<Access>,
}

impl Started {
    pub fn of(options: CoordinatorOptions, queue: Arc<dyn QueueStore>, sink: Sink) -> Arc<Self> {
        Self::noting(options, queue, sink, AuditLog::none())
    }

    /// One that notes there who does what.
    pub fn noting(
        options: CoordinatorOptions,
        queue: Arc<dyn QueueStore>,
        sink: Sink,
        audit: AuditLog,
    ) -> Arc<Self> {
        let coordinator = Coordinator::start_noting(options, queue, sink, audit);
        let access = coordinator.unnamed();
        Arc::new(Self { coordinator, access })
    }

    /// The access of somebody else.
    pub fn access(&self, caller: &Caller) -> Arc<Access> {
        self.coordinator.access(caller)
    }

    pub fn parts(&self) -> &CoordinatorParts {
        self.coordinator.parts()
    }

    pub async fn tend(&self) -> Result<(), ServiceError> {
        self.coordinator.tend().await
    }

    pub async fn bind(&self, adopt: Adopt) -> Result<(), ServiceError> {
        self.coordinator.bind(adopt).await
    }

    pub fn ready(&self) -> Result<(), ServiceError> {
        self.coordinator.ready()
    }

    pub fn close(&self) {
        self.coordinator.close();
    }

    pub async fn close_logs(&self) {
        self.coordinator.close_logs().await;
    }
}

impl std::ops::Deref for Started {
    type Target = Access;

    fn deref(&self) -> &Access {
        &self.access
    }
}

pub fn start(config: CoordinatorOptions, queue: Arc<dyn QueueStore>, data: &Path) -> Arc<Started> {
    Started::of(config, queue, Sink::new(data))
}

pub fn config() -> CoordinatorOptions {
    CoordinatorOptions {
        tends: false,
        backlog_for: Duration::ZERO,
        grace: Some(Duration::ZERO),
        ..CoordinatorOptions::fleet()
    }
}

/// Two models on two tasks of the built-in pack.
pub fn submission(iterations: u32) -> Submission {
    Submission {
        configuration: json!({
            "name": "two by two",
            "seed": 7,
            "iterations": iterations,
            "tasks": ["RdfFriendCount-turtle-1", "RdfFriendCount-nt-1"],
            "models": [
                {"label": "a", "connector": "openai-compatible", "model": "org/a"},
                {"label": "b", "connector": "simulated", "skill": 0.5},
            ],
        }),
        pack: None,
    }
}

/// The records that count, by dialogue.
pub async fn winners(coordinator: &Started, run: &RunId) -> BTreeMap<DialogueKey, Record> {
    let mut items = coordinator.records(run);
    let Some(Ok(ExportItem::Manifest(_))) = items.next().await else { panic!("the manifest comes first") };
    let mut winners = BTreeMap::new();
    let mut order = Vec::new();
    while let Some(item) = items.next().await {
        let ExportItem::Record(json) = item.unwrap() else { panic!("one manifest only") };
        let record: Record = serde_json::from_str(&json).unwrap();
        order.push(record.key.clone());
        assert!(winners.insert(record.key.clone(), record).is_none(), "one winner per dialogue");
    }
    let planned = coordinator.parts().loaded.known(run).await.unwrap();
    let slots: Vec<usize> = order.iter().map(|key| planned.layout.slot_of(key).unwrap()).collect();
    assert!(slots.is_sorted(), "records come in the order of the plan");
    winners
}

/// The view as it follows from the log alone, read whole.
pub async fn recomputed(coordinator: &Started, view: &BenchmarkView) -> BenchmarkView {
    let run = coordinator.parts().loaded.known(&view.run).await.unwrap();
    let folder = coordinator.parts().store.sink.run_dir(&view.run).unwrap().log();
    let mut table = DialogueTable::new(run.layout.slots());
    let index = results::log::WinnerIndex::build(&folder, None, 0, |damage| panic!("{damage}")).unwrap();
    for record in index.records(&folder, None).unwrap() {
        let record = record.unwrap();
        let slot = run.layout.slot_of(&record.key).unwrap();
        let outcome = match &record.outcome {
            domain::Outcome::Scored { scores, .. } => Ok(scores["f1"].as_f64().unwrap()),
            domain::Outcome::Unscored { cause, .. } | domain::Outcome::Failed { cause, .. } => Err(*cause),
        };
        let location = index.get(&record.key).unwrap().location();
        table.fold(slot, DialogueRow { location, outcome: outcome.map(Some) });
    }
    BenchmarkView {
        scored: table.scored(),
        failed: table.failed(),
        failures: table.failures(),
        cells: table.cells(&run.plan, &run.layout),
        ..view.clone()
    }
}

/// A pack with the tasks of the built-in one under another header, sealed.
pub fn another_pack(change: impl FnOnce(&mut packs::Header)) -> Arc<[u8]> {
    let pack = packs::Pack::shared_builtin().unwrap();
    let mut parts = packs::Parts::new("another");
    for (path, content) in pack.parts().iter().filter(|(path, _)| *path != packs::manifest::HEADER_PATH) {
        parts.insert(path, content.to_vec()).unwrap();
    }
    let mut header = pack.header().clone();
    change(&mut header);
    parts.insert_header(&header).unwrap();
    packs::seal_quickly(&parts, &packs::published_password()).unwrap().into()
}
