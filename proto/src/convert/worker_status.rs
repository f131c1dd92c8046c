//! What a worker tells people about itself.

use domain::exchange::WorkerStatus;

use crate::wire;

impl From<WorkerStatus> for wire::WorkerStatus {
    fn from(status: WorkerStatus) -> Self {
        Self {
            kgfleet: status.kgfleet,
            host: status.host,
            serves: status.serves,
            in_flight: status.in_flight,
            limit: status.limit,
            dialogues: status.dialogues,
            unacknowledged: status.unacknowledged,
            parked_records: status.parked_records,
            trouble: status.trouble,
            keys_found: status.keys_found,
            keys_missing: status.keys_missing,
        }
    }
}

impl From<wire::WorkerStatus> for WorkerStatus {
    fn from(status: wire::WorkerStatus) -> Self {
        Self {
            kgfleet: status.kgfleet,
            host: status.host,
            serves: status.serves,
            in_flight: status.in_flight,
            limit: status.limit,
            dialogues: status.dialogues,
            unacknowledged: status.unacknowledged,
            parked_records: status.parked_records,
            trouble: status.trouble,
            keys_found: status.keys_found,
            keys_missing: status.keys_missing,
        }
    }
}
