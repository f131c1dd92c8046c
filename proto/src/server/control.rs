//! The calls of people and tools: converts each call, passes it to the coordinator's [`Control`], and converts the
//! answer.
//!
//! The guard has established the caller before, and the coordinator decides what the caller may do. An invalid message
//! is answered with [`ErrorCode::Invalid`]. A call that the `.proto` file adds gets its handler here, and its row in
//! `access`.

use std::sync::Arc;

use domain::control::{BenchmarkCommand, Control, Submission};
use domain::{ErrorCode, RunId, ServiceError, WorkerId};
use tokio::sync::mpsc;
use tonic::{Request, Status, Streaming};

use super::closing::Closing;
use super::feed::{Messages, messages, pump, until_cut, until_draining};
use super::guard::caller;
use super::{Answer, Serve, answer};
use crate::convert::{all, causes_from_wire, configuration_from_wire, every, refuse_request, required};
use crate::limits::{CONFIGURATION_BYTES, ITEMS_AHEAD};
use crate::pack::Assembly;
use crate::status::{from_status, to_status};
use crate::version;
use crate::wire::control_service_server::ControlService;
use crate::wire::{self, submit_part::Part};

/// Serves people and tools.
pub(super) struct ControlHandlers {
    pub services: Arc<dyn Serve>,
    pub closing: Closing,
}

impl ControlHandlers {
    /// The coordinator as the caller may use it.
    fn control<T>(&self, request: &Request<T>) -> Result<Arc<dyn Control>, Status> {
        Ok(self.services.control(&caller(request)?))
    }
}

/// A name in a request.
fn run_id(field: &'static str, run: String) -> Result<RunId, ServiceError> {
    required(field, run).map(RunId::new).map_err(refuse_request)
}

#[tonic::async_trait]
impl ControlService for ControlHandlers {
    async fn submit(&self, request: Request<Streaming<wire::SubmitPart>>) -> Answer<wire::RunView> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            let (_, submission) = submission(request.into_inner()).await?;
            control.submit(submission).await
        })
        .await
    }

    async fn extend_run(&self, request: Request<Streaming<wire::SubmitPart>>) -> Answer<wire::RunView> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            let (extends, submission) = submission(request.into_inner()).await?;
            control.extend(&run_id("SubmissionHead.extends", extends)?, submission).await
        })
        .await
    }

    async fn list_runs(&self, request: Request<wire::ListRunsRequest>) -> Answer<wire::RunList> {
        let control = self.control(&request)?;
        answer(&self.closing, async { Ok(wire::RunList { runs: every(control.list().await?) }) }).await
    }

    async fn get_run(&self, request: Request<wire::RunReference>) -> Answer<wire::RunView> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            let run = run_id("RunReference.run", request.into_inner().run)?;
            control.view(&run).await
        })
        .await
    }

    type WatchRunStream = Messages<wire::RunView>;

    async fn watch_run(&self, request: Request<wire::RunReference>) -> Answer<Messages<wire::RunView>> {
        let (control, caller) = (self.control(&request)?, caller(&request)?);
        let run = run_id("RunReference.run", request.into_inner().run).map_err(to_status)?;
        // One view is buffered: a slow watcher sees fewer of them, not older ones.
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move { pump(control.watch(&run), &caller, &sender).await });
        Ok(version::answer(Box::pin(until_draining(messages(receiver), self.closing.clone()))))
    }

    async fn command_run(&self, request: Request<wire::CommandRequest>) -> Answer<wire::RunView> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            let (run, command): (RunId, BenchmarkCommand) =
                request.into_inner().try_into().map_err(refuse_request)?;
            control.command(&run, command).await
        })
        .await
    }

    async fn retry_run(&self, request: Request<wire::RetryRequest>) -> Answer<wire::Count> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            let wire::RetryRequest { run, causes } = request.into_inner();
            let run = run_id("RetryRequest.run", run)?;
            let causes = causes_from_wire(causes).map_err(refuse_request)?;
            Ok(wire::Count { count: control.retry(&run, &causes).await? })
        })
        .await
    }

    async fn remove_run(&self, request: Request<wire::RemoveRequest>) -> Answer<wire::Done> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            let wire::RemoveRequest { run, force } = request.into_inner();
            control.remove(&run_id("RemoveRequest.run", run)?, force).await?;
            Ok(wire::Done {})
        })
        .await
    }

    type ExportRunStream = Messages<wire::ExportItem>;

    async fn export_run(&self, request: Request<wire::RunReference>) -> Answer<Messages<wire::ExportItem>> {
        let (control, caller) = (self.control(&request)?, caller(&request)?);
        let run = run_id("RunReference.run", request.into_inner().run).map_err(to_status)?;
        let (sender, receiver) = mpsc::channel(ITEMS_AHEAD);
        tokio::spawn(async move { pump(control.records(&run), &caller, &sender).await });
        Ok(version::answer(Box::pin(until_cut(messages(receiver), self.closing.clone()))))
    }

    async fn list_workers(&self, request: Request<wire::ListWorkersRequest>) -> Answer<wire::WorkerList> {
        let control = self.control(&request)?;
        answer(&self.closing, async { Ok(wire::WorkerList { workers: every(control.workers().await?) }) })
            .await
    }

    async fn drain_worker(&self, request: Request<wire::WorkerReference>) -> Answer<wire::Done> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            let worker =
                required("WorkerReference.worker", request.into_inner().worker).map_err(refuse_request)?;
            control.drain_worker(&WorkerId::new(worker)).await?;
            Ok(wire::Done {})
        })
        .await
    }

    async fn list_dead_letters(
        &self,
        request: Request<wire::DeadLettersRequest>,
    ) -> Answer<wire::DeadLetterList> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            let wire::DeadLettersRequest { run, unit } = request.into_inner();
            let run = run_id("DeadLettersRequest.run", run)?;
            Ok(wire::DeadLetterList { dead_letters: every(control.dead_letters(&run, unit).await?) })
        })
        .await
    }

    async fn requeue_dead_letters(&self, request: Request<wire::RequeueRequest>) -> Answer<wire::Count> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            let wire::RequeueRequest { run, units } = request.into_inner();
            let run = run_id("RequeueRequest.run", run)?;
            Ok(wire::Count { count: control.requeue(&run, &units).await? })
        })
        .await
    }

    async fn check(&self, request: Request<wire::CheckRequest>) -> Answer<wire::CheckReport> {
        let control = self.control(&request)?;
        answer(&self.closing, async { Ok(wire::CheckReport { warnings: control.check().await? }) }).await
    }

    async fn get_needs(&self, request: Request<wire::NeedsRequest>) -> Answer<wire::Needs> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            Ok(wire::Needs { needs: every(control.needs(&request.into_inner().models).await?) })
        })
        .await
    }

    async fn note_pools(&self, request: Request<wire::PoolStates>) -> Answer<wire::Done> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            control.note_pools(request.into_inner().try_into().map_err(refuse_request)?).await?;
            Ok(wire::Done {})
        })
        .await
    }

    async fn note_server_usage(&self, request: Request<wire::ServerUsages>) -> Answer<wire::Done> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            control.note_server_usage(all(request.into_inner().servers).map_err(refuse_request)?).await?;
            Ok(wire::Done {})
        })
        .await
    }

    async fn list_server_usage(
        &self,
        request: Request<wire::ListServerUsageRequest>,
    ) -> Answer<wire::ServerUsages> {
        let control = self.control(&request)?;
        answer(&self.closing, async {
            Ok(wire::ServerUsages { servers: every(control.server_usage().await?) })
        })
        .await
    }
}

/// Assembles a submission, with the name of the run that it extends.
async fn submission(mut parts: Streaming<wire::SubmitPart>) -> Result<(String, Submission), ServiceError> {
    let invalid = |message: &str| ServiceError::new(ErrorCode::Invalid, message);
    let Some(Part::Head(head)) = next(&mut parts).await? else {
        return Err(invalid("a submission begins with its head"));
    };
    if head.configuration_json.len() > CONFIGURATION_BYTES {
        let bytes = head.configuration_json.len();
        return Err(invalid(&format!(
            "the configuration has {bytes} bytes; the limit is {CONFIGURATION_BYTES}"
        )));
    }
    let configuration = configuration_from_wire(&head).map_err(refuse_request)?;
    let mut pack = head.with_pack.then(Assembly::default);
    while let Some(part) = next(&mut parts).await? {
        match (part, &mut pack) {
            (Part::Pack(chunk), Some(pack)) => pack.push(&chunk)?,
            (Part::Pack(_), None) => return Err(invalid("the head announced no pack, but one follows")),
            (Part::Head(_), _) => return Err(invalid("a submission has only one head")),
        }
    }
    Ok((head.extends, Submission { configuration, pack: pack.map(Assembly::finish).transpose()? }))
}

/// The next part; `None` at the end.
async fn next(parts: &mut Streaming<wire::SubmitPart>) -> Result<Option<Part>, ServiceError> {
    let Some(part) = parts.message().await.map_err(|status| from_status(&status, "the caller"))? else {
        return Ok(None);
    };
    let missing = || ServiceError::new(ErrorCode::Invalid, "SubmitPart.part is missing");
    part.part.ok_or_else(missing).map(Some)
}
