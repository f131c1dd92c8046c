//! Whose name a worker has, for every coordinator that it reports to.
//!
//! A registration alone says which processes this one follows; reports do not repeat it. So a coordinator that this process
//! never registered with, on a queue where one of those still has the name, takes it for a second worker.

use domain::ServiceError;
use domain::exchange::{Orders, Registration, Report, WorkExchange};

/// Reports, and registers again where the coordinator says that another process has the name: it may be one that ended.
///
/// # Errors
/// Those of the two calls.
pub async fn report(
    exchange: &dyn WorkExchange,
    registration: Registration,
    report: Report,
) -> Result<Orders, ServiceError> {
    let orders = exchange.exchange(report).await?;
    if orders.superseded.is_none() {
        return Ok(orders);
    }
    let superseded = exchange.register(registration).await?.taken;
    if superseded.is_none() {
        tracing::info!("registered with a coordinator that did not know this process");
    }
    Ok(Orders { superseded, ..orders })
}
