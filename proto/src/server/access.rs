//! The role that each call needs, and what it may send: one table; a call without a row is refused.

use domain::caller::CallerRole::{self, Conductor, Operator, Reader, Worker};

use crate::limits::{
    LIST_BYTES, MESSAGE_BYTES, NAMING_BYTES, REGISTRATION_BYTES, REPORT_BYTES, SUBMISSION_BYTES,
};

/// Who may make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallRoles {
    /// Every caller, for probes without credentials.
    Open,
    /// Callers with one of these roles.
    Of(&'static [CallerRole]),
}

const READ: CallRoles = CallRoles::Of(&[Reader, Operator]);
/// What a conductor goes by.
const NEEDS: CallRoles = CallRoles::Of(&[Reader, Operator, Conductor]);
/// What a conductor alone may say.
const CONDUCT: CallRoles = CallRoles::Of(&[Conductor]);
/// Calls that change something.
const STEER: CallRoles = CallRoles::Of(&[Operator]);
const WORK: CallRoles = CallRoles::Of(&[Worker]);
/// Packs: workers need them to ask, exports take the metadata of tasks from them.
const PACK: CallRoles = CallRoles::Of(&[Worker, Reader, Operator]);

/// What the caller of a call sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sends {
    /// One message, of at most so many bytes.
    One(usize),
    /// A stream of messages, of at most so many bytes each.
    Many(usize),
}

impl Sends {
    /// Maximum size of a message in bytes.
    pub(super) fn message_bytes(self) -> usize {
        match self {
            Self::One(bytes) | Self::Many(bytes) => bytes,
        }
    }
}

/// The name of a run, a worker or a pack, and options.
const NAMING: Sends = Sends::One(NAMING_BYTES);
const SUBMISSION: Sends = Sends::Many(SUBMISSION_BYTES);

/// Every call. A call without a row is not served.
const TABLE: &[(&str, CallRoles, Sends)] = &[
    ("/kgfleet.v1.ControlService/Submit", STEER, SUBMISSION),
    ("/kgfleet.v1.ControlService/ExtendRun", STEER, SUBMISSION),
    ("/kgfleet.v1.ControlService/ListRuns", READ, NAMING),
    ("/kgfleet.v1.ControlService/GetRun", READ, NAMING),
    ("/kgfleet.v1.ControlService/WatchRun", READ, NAMING),
    ("/kgfleet.v1.ControlService/CommandRun", STEER, NAMING),
    ("/kgfleet.v1.ControlService/RetryRun", STEER, NAMING),
    ("/kgfleet.v1.ControlService/RemoveRun", STEER, NAMING),
    // The coordinator redacts texts of protected runs for readers.
    ("/kgfleet.v1.ControlService/ExportRun", READ, NAMING),
    ("/kgfleet.v1.ControlService/ListWorkers", NEEDS, NAMING),
    ("/kgfleet.v1.ControlService/DrainWorker", STEER, NAMING),
    ("/kgfleet.v1.ControlService/ListDeadLetters", READ, NAMING),
    ("/kgfleet.v1.ControlService/RequeueDeadLetters", STEER, Sends::One(LIST_BYTES)),
    ("/kgfleet.v1.ControlService/Check", READ, NAMING),
    ("/kgfleet.v1.ControlService/GetNeeds", NEEDS, NAMING),
    ("/kgfleet.v1.ControlService/NotePools", CONDUCT, Sends::One(LIST_BYTES)),
    ("/kgfleet.v1.ControlService/NoteServerUsage", CONDUCT, Sends::One(LIST_BYTES)),
    ("/kgfleet.v1.ControlService/ListServerUsage", NEEDS, NAMING),
    ("/kgfleet.v1.WorkService/Register", WORK, Sends::One(REGISTRATION_BYTES)),
    ("/kgfleet.v1.WorkService/Exchange", WORK, Sends::One(REPORT_BYTES)),
    ("/kgfleet.v1.WorkService/DeliverRecords", WORK, Sends::Many(MESSAGE_BYTES)),
    ("/kgfleet.v1.WorkService/GetRunMaterial", WORK, NAMING),
    // The coordinator refuses protected ones to readers.
    ("/kgfleet.v1.WorkService/FetchPack", PACK, NAMING),
    ("/kgfleet.v1.WorkService/TakeRate", WORK, NAMING),
    ("/kgfleet.v1.WorkService/Deregister", WORK, NAMING),
    ("/grpc.health.v1.Health/Check", CallRoles::Open, NAMING),
    ("/grpc.health.v1.Health/Watch", CallRoles::Open, NAMING),
    ("/grpc.health.v1.Health/List", CallRoles::Open, NAMING),
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", READ, Sends::Many(NAMING_BYTES)),
];

/// Who may make the call of this path, and what it sends; `None` for an unknown call.
pub(super) fn needed(path: &str) -> Option<(CallRoles, Sends)> {
    TABLE.iter().find(|(call, ..)| *call == path).map(|(_, roles, sends)| (*roles, *sends))
}

pub(super) fn words(roles: &[CallerRole]) -> String {
    let names: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    names.join(" or ")
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_types::FileDescriptorSet;

    use super::*;

    #[test]
    fn what_a_reader_or_a_stranger_may_send_has_kilobytes() {
        for (call, roles, sends) in TABLE {
            let workers_or_operators_only = matches!(roles, CallRoles::Of(roles) if !roles.contains(&Reader));
            assert!(
                workers_or_operators_only || sends.message_bytes() <= NAMING_BYTES,
                "{call} takes {} bytes from a reader",
                sends.message_bytes()
            );
        }
    }

    #[test]
    fn every_call_of_the_wire_has_a_row_and_none_but_probes_is_open() {
        let described = FileDescriptorSet::decode(crate::wire::DESCRIPTORS).unwrap();
        let mut calls = Vec::new();
        for file in &described.file {
            for service in &file.service {
                let path = |call: &str| format!("/{}.{}/{call}", file.package(), service.name());
                calls.extend(service.method.iter().map(|method| path(method.name())));
            }
        }
        assert!(calls.len() > 15, "{calls:?}");
        for call in &calls {
            let (access, _) =
                needed(call).unwrap_or_else(|| panic!("{call} has no row in the table of roles"));
            assert!(
                matches!(access, CallRoles::Of(roles) if !roles.is_empty()),
                "{call} is open to everybody"
            );
        }
        let ours = TABLE.iter().filter(|(call, ..)| call.starts_with("/kgfleet.")).count();
        assert_eq!(ours, calls.len(), "a row without a call");
        assert_eq!(needed("/kgfleet.v1.ControlService/Levitate"), None);
    }
}
