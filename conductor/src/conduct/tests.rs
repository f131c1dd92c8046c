//! Rounds of the loop, with a played coordinator and a played cluster.

use std::sync::{Mutex, MutexGuard};

use crate::pool::Limits;
use async_trait::async_trait;
use domain::control::{
    BenchmarkCommand, BenchmarkView, DeadLetterView, ExportItem, Feed, ModelNeed, Submission,
};
use domain::exchange::Outlook;
use domain::{ErrorCode, FailureCause, RunId, ServiceError, WorkerId};
use serde_json::{Value, json};

use super::*;
use crate::cluster::ClusterState;
use crate::objects::ClusterEvent;
use crate::template::ESTIMATE;

/// A coordinator and a cluster: what they are told, and why they refuse calls, if they do.
#[derive(Default)]
struct Played(Mutex<Scene>);

#[derive(Default)]
struct Scene {
    coordinator_refuses: Option<ErrorCode>,
    /// With this status.
    cluster_refuses: Option<u16>,
    events_are_refused: bool,
    made: Vec<String>,
    told: Option<PoolStates>,
    asked_for_usage: u32,
}

impl Played {
    fn scene(&self) -> MutexGuard<'_, Scene> {
        self.0.lock().unwrap()
    }

    fn answer<T>(&self, answer: T) -> Reply<T> {
        let refused = self.scene().coordinator_refuses;
        refused.map_or(Ok(answer), |code| Err(ServiceError::new(code, "the token is unknown")))
    }

    fn of_cluster(&self) -> Result<(), ClusterError> {
        let refused = self.scene().cluster_refuses;
        refused.map_or(Ok(()), |status| Err(ClusterError::Refused(format!("the API answers {status}"))))
    }
}

#[async_trait]
impl PoolCluster for Played {
    async fn state(&self) -> Result<ClusterState, ClusterError> {
        self.of_cluster()?;
        let estimate = json!({
            "gpus": 1, "parts": 1, "servers": 1, "load_seconds": 60, "dialogues_per_second": 1.0,
        });
        let worker = json!({"name": "worker", "args": ["worker", "--model", "org/a"]});
        let cron_job = json!({
            "kind": "CronJob",
            "metadata": {
                "name": "bench-a", "uid": "cron-a", "labels": {"kgfleet/pool": "a"},
                "annotations": {ESTIMATE: estimate.to_string()},
            },
            "spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": [worker]}}}}},
        });
        Ok(ClusterState::of_list(json!({"items": [cron_job]})).unwrap())
    }

    async fn warnings(&self) -> Result<Vec<ClusterEvent>, ClusterError> {
        match self.scene().events_are_refused {
            true => Err(ClusterError::Refused("cannot list events: 403".to_owned())),
            false => Ok(Vec::new()),
        }
    }

    async fn create(&self, job: &Value) -> Result<(), ClusterError> {
        self.of_cluster()?;
        self.scene().made.push(job["metadata"]["name"].as_str().unwrap().to_owned());
        Ok(())
    }

    async fn delete(&self, _: &str, _: &str) -> Result<(), ClusterError> {
        self.of_cluster()
    }
}

#[async_trait]
impl Control for Played {
    async fn workers(&self) -> Reply<Vec<WorkerView>> {
        self.answer(Vec::new())
    }

    async fn needs(&self, _: &[String]) -> Reply<Vec<ModelNeed>> {
        let model = "org/a".to_owned();
        let need = ModelNeed { model, outlook: Outlook::Work, dialogues: 100, rate: 0.0, workers: 0 };
        self.answer(vec![need])
    }

    async fn note_pools(&self, states: PoolStates) -> Reply<()> {
        self.answer(())?;
        self.scene().told = Some(states);
        Ok(())
    }

    async fn note_server_usage(&self, _: Vec<ServerUsage>) -> Reply<()> {
        self.answer(())
    }

    async fn server_usage(&self) -> Reply<Vec<ServerUsage>> {
        self.scene().asked_for_usage += 1;
        self.answer(Vec::new())
    }

    async fn submit(&self, _: Submission) -> Reply<BenchmarkView> {
        unreachable!()
    }

    async fn extend(&self, _: &RunId, _: Submission) -> Reply<BenchmarkView> {
        unreachable!()
    }

    async fn list(&self) -> Reply<Vec<BenchmarkView>> {
        unreachable!()
    }

    async fn view(&self, _: &RunId) -> Reply<BenchmarkView> {
        unreachable!()
    }

    fn watch<'a>(&'a self, _: &'a RunId) -> Feed<'a, BenchmarkView> {
        unreachable!()
    }

    async fn command(&self, _: &RunId, _: BenchmarkCommand) -> Reply<BenchmarkView> {
        unreachable!()
    }

    async fn retry(&self, _: &RunId, _: &[FailureCause]) -> Reply<u64> {
        unreachable!()
    }

    async fn remove(&self, _: &RunId, _: bool) -> Reply<()> {
        unreachable!()
    }

    fn records<'a>(&'a self, _: &'a RunId) -> Feed<'a, ExportItem> {
        unreachable!()
    }

    async fn drain_worker(&self, _: &WorkerId) -> Reply<()> {
        unreachable!()
    }

    async fn dead_letters(&self, _: &RunId, _: Option<u64>) -> Reply<Vec<DeadLetterView>> {
        unreachable!()
    }

    async fn requeue(&self, _: &RunId, _: &[u64]) -> Reply<u64> {
        unreachable!()
    }

    async fn check(&self) -> Reply<Vec<String>> {
        unreachable!()
    }
}

/// A conductor of one GPU.
struct Conductor {
    rounds: Rounds,
    desk: NewsDesk,
    memory: LoopMemory,
}

impl Conductor {
    fn new() -> Self {
        let settings = ConductorSettings { limits: Limits::of_gpus(1), gpus_per_node: None };
        let (notices, _) = mpsc::channel(1);
        let desk = NewsDesk { news: PoolNews::new("bench", None), notices };
        Self { rounds: Rounds::new(settings), desk, memory: LoopMemory::default() }
    }

    async fn round(&mut self, played: &Played) -> Result<(), String> {
        round(played, played, &mut self.rounds, &mut self.desk, &mut self.memory).await
    }
}

#[tokio::test]
async fn pools_go_on_by_themselves_when_tokens_that_were_refused_are_mended() {
    let (played, mut conductor) = (Played::default(), Conductor::new());
    for code in [ErrorCode::Denied, ErrorCode::Unavailable] {
        played.scene().coordinator_refuses = Some(code);
        assert_eq!(conductor.round(&played).await.unwrap_err(), "the token is unknown");
    }
    played.scene().coordinator_refuses = None;
    for status in [401, 403] {
        played.scene().cluster_refuses = Some(status);
        assert!(conductor.round(&played).await.unwrap_err().contains(&status.to_string()));
    }
    assert_eq!(played.scene().made, [""; 0]);
    played.scene().cluster_refuses = None;
    conductor.round(&played).await.unwrap();
    let scene = played.scene();
    assert_eq!(scene.made, ["bench-a-1"]);
    assert_eq!(scene.told.as_ref().unwrap().pools[0].left, Some(100));
    assert_eq!(scene.asked_for_usage, 3, "until coordinators have said once what servers left");
}

#[tokio::test]
async fn events_that_may_not_be_read_keep_no_server_from_starting() {
    let (played, mut conductor) = (Played::default(), Conductor::new());
    played.scene().events_are_refused = true;
    assert_eq!(conductor.round(&played).await.unwrap_err(), "cannot list events: 403");
    assert_eq!(played.scene().made, ["bench-a-1"]);
    assert!(played.scene().told.is_some());
}
