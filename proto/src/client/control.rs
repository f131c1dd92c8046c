//! The command line's calls.

use domain::control::{
    BenchmarkCommand, BenchmarkView, Control, DeadLetterView, ExportItem, Feed, ModelNeed, Submission,
    WorkerView,
};
use domain::exchange::Reply;
use domain::pools::{PoolStates, ServerUsage};
use domain::{FailureCause, RunId, WorkerId};
use futures::stream;

use super::Client;
use crate::convert::{all, causes_to_wire, every, refuse_answer};
use crate::limits::{CALL_TIMEOUT, LONG_CALL_TIMEOUT, STREAM_SILENCE};
use crate::wire::{self, submit_part::Part};

/// A submission in parts; `extends` names the run that it extends, if any.
fn parts(submission: Submission, extends: String) -> impl Iterator<Item = wire::SubmitPart> + Send + 'static {
    let head = wire::SubmissionHead { extends, ..(&submission).into() };
    let pack = submission.pack.into_iter().flat_map(crate::pack::chunks).map(Part::Pack);
    std::iter::once(Part::Head(head)).chain(pack).map(|part| wire::SubmitPart { part: Some(part) })
}

#[tonic::async_trait]
impl Control for Client {
    async fn submit(&self, submission: Submission) -> Reply<BenchmarkView> {
        let parts = stream::iter(parts(submission, String::new()));
        let request = self.line.request(LONG_CALL_TIMEOUT, parts);
        let answer = self.line.answer(LONG_CALL_TIMEOUT, self.control.clone().submit(request)).await?;
        answer.try_into().map_err(refuse_answer)
    }

    async fn extend(&self, run: &RunId, submission: Submission) -> Reply<BenchmarkView> {
        let parts = stream::iter(parts(submission, run.to_string()));
        let request = self.line.request(LONG_CALL_TIMEOUT, parts);
        let answer = self.line.answer(LONG_CALL_TIMEOUT, self.control.clone().extend_run(request)).await?;
        answer.try_into().map_err(refuse_answer)
    }

    async fn list(&self) -> Reply<Vec<BenchmarkView>> {
        let request = self.line.request(CALL_TIMEOUT, wire::ListRunsRequest {});
        let answer = self.line.answer(CALL_TIMEOUT, self.control.clone().list_runs(request)).await?;
        all(answer.runs).map_err(refuse_answer)
    }

    async fn view(&self, run: &RunId) -> Reply<BenchmarkView> {
        let request = self.line.request(CALL_TIMEOUT, reference(run));
        let answer = self.line.answer(CALL_TIMEOUT, self.control.clone().get_run(request)).await?;
        answer.try_into().map_err(refuse_answer)
    }

    fn watch<'a>(&'a self, run: &'a RunId) -> Feed<'a, BenchmarkView> {
        let mut control = self.control.clone();
        self.line.clone().feed(STREAM_SILENCE, async move { control.watch_run(reference(run)).await })
    }

    async fn command(&self, run: &RunId, command: BenchmarkCommand) -> Reply<BenchmarkView> {
        let request = self.line.request(LONG_CALL_TIMEOUT, (run, command).into());
        let answer = self.line.answer(LONG_CALL_TIMEOUT, self.control.clone().command_run(request)).await?;
        answer.try_into().map_err(refuse_answer)
    }

    async fn retry(&self, run: &RunId, causes: &[FailureCause]) -> Reply<u64> {
        let message = wire::RetryRequest { run: run.to_string(), causes: causes_to_wire(causes) };
        let request = self.line.request(LONG_CALL_TIMEOUT, message);
        let answer = self.line.answer(LONG_CALL_TIMEOUT, self.control.clone().retry_run(request)).await?;
        Ok(answer.count)
    }

    async fn remove(&self, run: &RunId, force: bool) -> Reply<()> {
        let message = wire::RemoveRequest { run: run.to_string(), force };
        let request = self.line.request(LONG_CALL_TIMEOUT, message);
        let wire::Done {} =
            self.line.answer(LONG_CALL_TIMEOUT, self.control.clone().remove_run(request)).await?;
        Ok(())
    }

    fn records<'a>(&'a self, run: &'a RunId) -> Feed<'a, ExportItem> {
        let mut control = self.control.clone();
        self.line.clone().feed(LONG_CALL_TIMEOUT, async move { control.export_run(reference(run)).await })
    }

    async fn workers(&self) -> Reply<Vec<WorkerView>> {
        let request = self.line.request(CALL_TIMEOUT, wire::ListWorkersRequest {});
        let answer = self.line.answer(CALL_TIMEOUT, self.control.clone().list_workers(request)).await?;
        all(answer.workers).map_err(refuse_answer)
    }

    async fn drain_worker(&self, worker: &WorkerId) -> Reply<()> {
        let reference = wire::WorkerReference { worker: worker.to_string(), ..Default::default() };
        let request = self.line.request(CALL_TIMEOUT, reference);
        let wire::Done {} =
            self.line.answer(CALL_TIMEOUT, self.control.clone().drain_worker(request)).await?;
        Ok(())
    }

    async fn dead_letters(&self, run: &RunId, unit: Option<u64>) -> Reply<Vec<DeadLetterView>> {
        let message = wire::DeadLettersRequest { run: run.to_string(), unit };
        let request = self.line.request(CALL_TIMEOUT, message);
        let mut control = self.control.clone();
        let answer = self.line.answer(CALL_TIMEOUT, control.list_dead_letters(request)).await?;
        all(answer.dead_letters).map_err(refuse_answer)
    }

    async fn requeue(&self, run: &RunId, units: &[u64]) -> Reply<u64> {
        let message = wire::RequeueRequest { run: run.to_string(), units: units.to_vec() };
        let request = self.line.request(LONG_CALL_TIMEOUT, message);
        let mut control = self.control.clone();
        let answer = self.line.answer(LONG_CALL_TIMEOUT, control.requeue_dead_letters(request)).await?;
        Ok(answer.count)
    }

    async fn check(&self) -> Reply<Vec<String>> {
        let request = self.line.request(LONG_CALL_TIMEOUT, wire::CheckRequest {});
        let answer = self.line.answer(LONG_CALL_TIMEOUT, self.control.clone().check(request)).await?;
        Ok(answer.warnings)
    }

    async fn needs(&self, models: &[String]) -> Reply<Vec<ModelNeed>> {
        let request = self.line.request(CALL_TIMEOUT, wire::NeedsRequest { models: models.to_vec() });
        let answer = self.line.answer(CALL_TIMEOUT, self.control.clone().get_needs(request)).await?;
        all(answer.needs).map_err(refuse_answer)
    }

    async fn note_pools(&self, states: PoolStates) -> Reply<()> {
        let request = self.line.request(CALL_TIMEOUT, states.into());
        let wire::Done {} = self.line.answer(CALL_TIMEOUT, self.control.clone().note_pools(request)).await?;
        Ok(())
    }

    async fn note_server_usage(&self, ended: Vec<ServerUsage>) -> Reply<()> {
        let request = self.line.request(CALL_TIMEOUT, wire::ServerUsages { servers: every(ended) });
        let wire::Done {} =
            self.line.answer(CALL_TIMEOUT, self.control.clone().note_server_usage(request)).await?;
        Ok(())
    }

    async fn server_usage(&self) -> Reply<Vec<ServerUsage>> {
        let request = self.line.request(LONG_CALL_TIMEOUT, wire::ListServerUsageRequest {});
        let mut control = self.control.clone();
        let answer = self.line.answer(LONG_CALL_TIMEOUT, control.list_server_usage(request)).await?;
        all(answer.servers).map_err(refuse_answer)
    }
}

fn reference(run: &RunId) -> wire::RunReference {
    wire::RunReference { run: run.to_string() }
}
