//! The whole state of a worker.

use domain::exchange::Report;
use domain::{InstanceId, WorkerId};

use super::time::{duration_from_wire, duration_to_wire};
use super::{ConversionError, all, every, present, required};
use crate::wire;

impl From<Report> for wire::Report {
    fn from(report: Report) -> Self {
        Self {
            worker: report.worker.to_string(),
            instance: report.instance.to_string(),
            offers: every(report.offers),
            held: every(report.held),
            finished: every(report.finished),
            released: every(report.released),
            parked: every(report.parked),
            draining: report.draining,
            wait: Some(duration_to_wire(report.wait)),
            status: Some(report.status.into()),
        }
    }
}

impl TryFrom<wire::Report> for Report {
    type Error = ConversionError;

    fn try_from(report: wire::Report) -> Result<Self, ConversionError> {
        Ok(Self {
            worker: WorkerId::new(required("Report.worker", report.worker)?),
            instance: InstanceId::new(report.instance),
            offers: all(report.offers)?,
            held: all(report.held)?,
            finished: all(report.finished)?,
            released: all(report.released)?,
            parked: all(report.parked)?,
            draining: report.draining,
            wait: duration_from_wire("Report.wait", report.wait)?,
            status: present("Report.status", report.status)?.try_into()?,
        })
    }
}
