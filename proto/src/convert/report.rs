//! The whole state of a worker.

use std::collections::BTreeMap;

use domain::exchange::{LeaseEnd, LeaseId, Report};
use domain::{InstanceId, WorkerId};

use super::time::{duration_from_wire, duration_to_wire};
use super::{ConversionError, all, every, present, required};
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
            worker: report.worker.to_string(),
            instance: report.instance.to_string(),
            offers: every(report.offers),
            held: every(report.held),
            finished: every(finished),
            released: every(released),
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
        let [finished, released]: [Vec<LeaseId>; 2] = [all(report.finished)?, all(report.released)?];
        let mut ended: BTreeMap<_, _> =
            released.into_iter().map(|lease| (lease, LeaseEnd::Released)).collect();
        ended.extend(finished.into_iter().map(|lease| (lease, LeaseEnd::Finished)));
        Ok(Self {
            worker: WorkerId::new(required("Report.worker", report.worker)?),
            instance: InstanceId::new(report.instance),
            offers: all(report.offers)?,
            held: all(report.held)?,
            ended,
            parked: all(report.parked)?,
            draining: report.draining,
            wait: duration_from_wire("Report.wait", report.wait)?,
            status: present("Report.status", report.status)?.try_into()?,
        })
    }
}
