//! What a worker tells people about itself.

use domain::exchange::WorkerStatus;

use crate::wire;

impl From<WorkerStatus> for wire::WorkerStatus {
    fn from(status: WorkerStatus) -> Self {
        let WorkerStatus {
            kgfleet,
            host,
            serves,
            in_flight,
            limit,
            dialogues,
            unacknowledged,
            parked_records,
            trouble,
        } = status;
        Self { kgfleet, host, serves, in_flight, limit, dialogues, unacknowledged, parked_records, trouble }
    }
}

impl From<wire::WorkerStatus> for WorkerStatus {
    fn from(status: wire::WorkerStatus) -> Self {
        let wire::WorkerStatus {
            kgfleet,
            host,
            serves,
            in_flight,
            limit,
            dialogues,
            unacknowledged,
            parked_records,
            trouble,
        } = status;
        Self { kgfleet, host, serves, in_flight, limit, dialogues, unacknowledged, parked_records, trouble }
    }
}
