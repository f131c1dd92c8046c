//! Keeps a worker registered with every coordinator that it reports to.
//!
//! Only a registration lists the predecessors of a process; reports do not repeat them. So a coordinator that this
//! process never registered with, on a queue where a predecessor still has the name, takes it for a second worker.

use domain::ServiceError;
use domain::exchange::{Orders, Registration, Report, WorkExchange};

/// Sends a report, and registers again if the coordinator says that another process has the name, because that may be
/// a predecessor.
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
