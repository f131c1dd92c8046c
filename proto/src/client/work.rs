//! The worker's calls.

use std::sync::Arc;
use std::time::Duration;

use domain::exchange::{
    Delivery, Departure, Orders, RateBudget, Receipt, Registered, Registration, Reply, Report, RunMaterial,
    WorkExchange,
};
use domain::{InstanceId, RunId, WorkerId};

use super::{Client, records};
use crate::convert::{refuse_answer, wait_from_wire};
use crate::limits::{CALL_TIMEOUT, LONG_CALL_TIMEOUT, LONG_POLL, LONG_POLL_MARGIN};
use crate::pack::Assembly;
use crate::wire;

#[tonic::async_trait]
impl WorkExchange for Client {
    async fn register(&self, registration: Registration) -> Reply<Registered> {
        let request = self.line.request(CALL_TIMEOUT, registration.into());
        let answer = self.line.answer(CALL_TIMEOUT, self.work.clone().register(request)).await?;
        answer.try_into().map_err(refuse_answer)
    }

    async fn exchange(&self, report: Report) -> Reply<Orders> {
        let deadline = report.wait.min(LONG_POLL) + LONG_POLL_MARGIN;
        let request = self.line.request(deadline, report.into());
        let answer = self.line.answer(deadline, self.work.clone().exchange(request)).await?;
        answer.try_into().map_err(refuse_answer)
    }

    async fn deliver(&self, deliveries: Vec<Delivery>) -> Reply<Vec<Receipt>> {
        records::deliver(self, deliveries).await
    }

    async fn run_material(&self, run: &RunId) -> Reply<RunMaterial> {
        let request = self.line.request(CALL_TIMEOUT, wire::RunReference { run: run.to_string() });
        let answer = self.line.answer(CALL_TIMEOUT, self.work.clone().get_run_material(request)).await?;
        answer.try_into().map_err(refuse_answer)
    }

    async fn pack(&self, hash: &str) -> Reply<Arc<[u8]>> {
        let fetch = async {
            let request = self.line.request(LONG_CALL_TIMEOUT, wire::PackReference { hash: hash.to_owned() });
            let mut work = self.work.clone();
            let mut chunks = self.line.answer(CALL_TIMEOUT, work.fetch_pack(request)).await?;
            let mut pack = Assembly::default();
            while let Some(chunk) = self.line.next(CALL_TIMEOUT, &mut chunks).await? {
                pack.push(&chunk)?;
            }
            pack.finish()
        };
        let late = |_| Err(self.line.silent(LONG_CALL_TIMEOUT));
        tokio::time::timeout(LONG_CALL_TIMEOUT, fetch).await.unwrap_or_else(late)
    }

    async fn take_rate(&self, budget: &RateBudget, permits: u32) -> Reply<Option<Duration>> {
        let request = self.line.request(CALL_TIMEOUT, (budget, permits).into());
        let answer = self.line.answer(CALL_TIMEOUT, self.work.clone().take_rate(request)).await?;
        wait_from_wire(answer).map_err(refuse_answer)
    }

    async fn deregister(
        &self,
        worker: &WorkerId,
        instance: &InstanceId,
        why: Option<Departure>,
    ) -> Reply<()> {
        let why = why.map_or_else(String::new, |why| why.to_string());
        let reference =
            wire::WorkerReference { worker: worker.to_string(), instance: instance.to_string(), why };
        let request = self.line.request(CALL_TIMEOUT, reference);
        let wire::Done {} = self.line.answer(CALL_TIMEOUT, self.work.clone().deregister(request)).await?;
        Ok(())
    }
}
