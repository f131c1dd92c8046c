//! The whole state of a worker.

use std::collections::BTreeMap;

use domain::exchange::{LeaseEnd, LeaseId, Report};

use super::ConversionError;
use super::on_wire::OnWire;
use crate::wire;

impl From<Report> for wire::Report {
    fn from(report: Report) -> Self {
        let (mut finished, mut released) = (Vec::new(), Vec::new());
        for (lease, end) in report.ended {
            match end {
                LeaseEnd::Finished => finished.push(lease),
                LeaseEnd::Released => released.push(lease),
            }
        }
        Self {
            worker: report.worker.to_wire(),
            instance: report.instance.to_wire(),
            offers: report.offers.to_wire(),
            held: report.held.to_wire(),
            finished: finished.to_wire(),
            released: released.to_wire(),
            parked: report.parked.to_wire(),
            draining: report.draining,
            wait: report.wait.to_wire(),
            status: report.status.to_wire(),
            until: report.until.to_wire(),
        }
    }
}

impl TryFrom<wire::Report> for Report {
    type Error = ConversionError;

    fn try_from(report: wire::Report) -> Result<Self, ConversionError> {
        let finished: Vec<LeaseId> = OnWire::from_wire("Report.finished", report.finished)?;
        let released: Vec<LeaseId> = OnWire::from_wire("Report.released", report.released)?;
        let mut ended: BTreeMap<_, _> =
            released.into_iter().map(|lease| (lease, LeaseEnd::Released)).collect();
        ended.extend(finished.into_iter().map(|lease| (lease, LeaseEnd::Finished)));
        Ok(Self {
            worker: OnWire::from_wire("Report.worker", report.worker)?,
            instance: OnWire::from_wire("Report.instance", report.instance)?,
            offers: OnWire::from_wire("Report.offers", report.offers)?,
            held: OnWire::from_wire("Report.held", report.held)?,
            ended,
            parked: OnWire::from_wire("Report.parked", report.parked)?,
            draining: report.draining,
            wait: OnWire::from_wire("Report.wait", report.wait)?,
            status: OnWire::from_wire("Report.status", report.status)?,
            until: OnWire::from_wire("Report.until", report.until)?,
        })
    }
}
