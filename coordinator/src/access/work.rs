//! What workers may ask for.

use std::sync::Arc;
use std::time::Duration;

use domain::caller::CallerRole;
use domain::exchange::{
    Delivery, Departure, Orders, RateBudget, Receipt, Registered, Registration, Reply, Report, RunMaterial,
    WorkExchange,
};
use domain::{InstanceId, RunId, WorkerId};

use crate::access::{Access, ITEMS_PER_REPORT_MAX};
use crate::audit::LOOK;
use crate::errors::invalid;

#[async_trait::async_trait]
impl WorkExchange for Access {
    async fn register(&self, registration: Registration) -> Reply<Registered> {
        self.own(&registration.worker)?;
        self.serves()?;
        self.parts.fleet.register(self.identity(), registration).await
    }

    async fn exchange(&self, report: Report) -> Reply<Orders> {
        self.own(&report.worker)?;
        let expects = report.until.as_ref().map_or(0, |until| until.expects.len());
        let lists =
            [report.offers.len(), report.held.len(), report.ended.len(), report.parked.len(), expects];
        if let Some(most) = lists.into_iter().find(|items| *items > ITEMS_PER_REPORT_MAX) {
            return Err(invalid(format!("a report names {most} things; {ITEMS_PER_REPORT_MAX} may be")));
        }
        self.serves()?;
        self.parts.fleet.exchange(self.identity(), report).await
    }

    async fn deliver(&self, deliveries: Vec<Delivery>) -> Reply<Vec<Receipt>> {
        self.serves()?;
        self.parts.runs.logs.deliver(deliveries, &self.caller).await
    }

    async fn run_material(&self, run: &RunId) -> Reply<RunMaterial> {
        self.serves()?;
        Ok(self.parts.loaded.newest(run).await?.material.clone())
    }

    async fn pack(&self, hash: &str) -> Reply<Arc<[u8]>> {
        let reads_all = self.caller.has(CallerRole::Worker) || self.caller.has(CallerRole::Operator);
        if !reads_all && self.parts.packs.of_hash(hash, hash).await?.header().protected {
            return Err(self.denied(&format!("may not read the protected pack {hash}")));
        }
        self.serves()?;
        let about = format!("pack {hash}");
        if self.caller.has(CallerRole::Operator) {
            self.reads(about).await?;
        } else {
            // A disk of the coordinator that is full does not stop the fleet.
            tracing::debug!(who = self.caller.name(), about, "{LOOK}");
        }
        self.parts.packs.sealed(hash).await
    }

    async fn take_rate(&self, budget: &RateBudget, permits: u32) -> Reply<Option<Duration>> {
        self.serves()?;
        self.parts.fleet.take_rate(budget, permits).await
    }

    async fn deregister(
        &self,
        worker: &WorkerId,
        instance: &InstanceId,
        why: Option<Departure>,
    ) -> Reply<()> {
        self.own(worker)?;
        self.serves()?;
        self.parts.fleet.deregister(worker, instance, why).await
    }
}
