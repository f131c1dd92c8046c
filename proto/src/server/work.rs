//! The worker's calls.

use std::sync::Arc;

use domain::exchange::{Departure, RateBudget, Registration, Report, WorkExchange};
use domain::{ErrorCode, InstanceId, RunId, ServiceError, WorkerId};
use futures::{StreamExt as _, stream};
use tonic::{Request, Status};

use super::closing::Closing;
use super::feed::{Messages, until_cut};
use super::guard::caller;
use super::records::store;
use super::{Answer, Serve, answer};
use crate::convert::{receipts_to_wire, refuse_answer, refuse_request, required, wait_to_wire};
use crate::limits::LONG_POLL;
use crate::status::to_status;
use crate::version;
use crate::wire::{self, work_service_server::WorkService};

/// Serves workers.
pub(super) struct WorkHandlers {
    pub services: Arc<dyn Serve>,
    pub closing: Closing,
}

impl WorkHandlers {
    /// The coordinator as the caller may use it.
    fn exchange<T>(&self, request: &Request<T>) -> Result<Arc<dyn WorkExchange>, Status> {
        Ok(self.services.exchange(&caller(request)?))
    }
}

#[tonic::async_trait]
impl WorkService for WorkHandlers {
    async fn register(&self, request: Request<wire::Registration>) -> Answer<wire::Registered> {
        let exchange = Self::exchange(self, &request)?;
        answer(&self.closing, async {
            let registration = Registration::try_from(request.into_inner()).map_err(refuse_request)?;
            exchange.register(registration).await
        })
        .await
    }

    async fn exchange(&self, request: Request<wire::Report>) -> Answer<wire::Orders> {
        let exchange = Self::exchange(self, &request)?;
        answer(&self.closing, async {
            let mut report = Report::try_from(request.into_inner()).map_err(refuse_request)?;
            report.wait = report.wait.min(LONG_POLL);
            exchange.exchange(report).await
        })
        .await
    }

    async fn deliver_records(&self, request: Request<wire::DeliveryBatch>) -> Answer<wire::Receipts> {
        let exchange = Self::exchange(self, &request)?;
        // A task of its own: if the caller goes away, the batch is still stored completely.
        let stored = tokio::spawn(store(exchange, request.into_inner().deliveries));
        answer(&self.closing, async {
            let failed =
                |error| ServiceError::new(ErrorCode::Internal, format!("storing records failed: {error}"));
            stored.await.map_err(failed)?.map(receipts_to_wire)
        })
        .await
    }

    async fn get_run_material(&self, request: Request<wire::RunReference>) -> Answer<wire::RunMaterial> {
        let exchange = Self::exchange(self, &request)?;
        answer(&self.closing, async {
            let run = required("RunReference.run", request.into_inner().run).map_err(refuse_request)?;
            let material = exchange.run_material(&RunId::new(run)).await?;
            wire::RunMaterial::try_from(material).map_err(refuse_answer)
        })
        .await
    }

    type FetchPackStream = Messages<wire::PackChunk>;

    async fn fetch_pack(&self, request: Request<wire::PackReference>) -> Answer<Messages<wire::PackChunk>> {
        let exchange = Self::exchange(self, &request)?;
        let hash = required("PackReference.hash", request.into_inner().hash)
            .map_err(|e| to_status(refuse_request(e)))?;
        let pack = tokio::select! {
            pack = exchange.pack(&hash) => pack.map_err(to_status)?,
            () = self.closing.cut() => return Err(to_status(super::closing::leaving())),
        };
        let chunks = stream::iter(crate::pack::chunks(pack)).map(Ok);
        Ok(version::answer(Box::pin(until_cut(chunks, self.closing.clone()))))
    }

    async fn take_rate(&self, request: Request<wire::RateRequest>) -> Answer<wire::RateAnswer> {
        let exchange = Self::exchange(self, &request)?;
        answer(&self.closing, async {
            let (budget, permits): (RateBudget, u32) =
                request.into_inner().try_into().map_err(refuse_request)?;
            exchange.take_rate(&budget, permits).await.map(wait_to_wire)
        })
        .await
    }

    async fn deregister(&self, request: Request<wire::WorkerReference>) -> Answer<wire::Done> {
        let exchange = Self::exchange(self, &request)?;
        answer(&self.closing, async {
            let wire::WorkerReference { worker, instance, why } = request.into_inner();
            let worker = required("WorkerReference.worker", worker).map_err(refuse_request)?;
            let (worker, instance) = (WorkerId::new(worker), InstanceId::new(instance));
            exchange.deregister(&worker, &instance, Departure::named(&why)).await?;
            Ok(wire::Done {})
        })
        .await
    }
}
