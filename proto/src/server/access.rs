//! The role that each call needs: one table; a call without a row is refused.

use domain::caller::CallerRole::{self, Operator, Reader, Worker};

/// Who may make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallRoles {
    /// Every caller, for probes without credentials.
    Open,
    /// Callers with one of these roles.
    Of(&'static [CallerRole]),
}

const READ: CallRoles = CallRoles::Of(&[Reader, Operator]);
/// Calls that change something.
const STEER: CallRoles = CallRoles::Of(&[Operator]);
const WORK: CallRoles = CallRoles::Of(&[Worker]);
/// Packs: workers need them to ask, exports take the metadata of tasks from them.
const PACK: CallRoles = CallRoles::Of(&[Worker, Reader, Operator]);

/// Every call. A call without a row is not served.
const TABLE: &[(&str, CallRoles)] = &[
    ("/kgfleet.v1.ControlService/Submit", STEER),
    ("/kgfleet.v1.ControlService/ExtendRun", STEER),
    ("/kgfleet.v1.ControlService/ListRuns", READ),
    ("/kgfleet.v1.ControlService/GetRun", READ),
    ("/kgfleet.v1.ControlService/WatchRun", READ),
    ("/kgfleet.v1.ControlService/CommandRun", STEER),
    ("/kgfleet.v1.ControlService/RetryRun", STEER),
    ("/kgfleet.v1.ControlService/RemoveRun", STEER),
    // The coordinator redacts texts of protected runs for readers.
    ("/kgfleet.v1.ControlService/ExportRun", READ),
    ("/kgfleet.v1.ControlService/ListWorkers", READ),
    ("/kgfleet.v1.ControlService/DrainWorker", STEER),
    ("/kgfleet.v1.ControlService/ListDeadLetters", READ),
    ("/kgfleet.v1.ControlService/RequeueDeadLetters", STEER),
    ("/kgfleet.v1.ControlService/Check", READ),
    ("/kgfleet.v1.WorkService/Register", WORK),
    ("/kgfleet.v1.WorkService/Exchange", WORK),
    ("/kgfleet.v1.WorkService/DeliverRecords", WORK),
    ("/kgfleet.v1.WorkService/GetRunMaterial", WORK),
    // The coordinator refuses protected ones to readers.
    ("/kgfleet.v1.WorkService/FetchPack", PACK),
    ("/kgfleet.v1.WorkService/TakeRate", WORK),
    ("/kgfleet.v1.WorkService/Deregister", WORK),
    ("/grpc.health.v1.Health/Check", CallRoles::Open),
    ("/grpc.health.v1.Health/Watch", CallRoles::Open),
    ("/grpc.health.v1.Health/List", CallRoles::Open),
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", READ),
];

/// Who may make the call of this path; `None` for an unknown call.
pub(super) fn needed(path: &str) -> Option<CallRoles> {
    TABLE.iter().find(|(call, _)| *call == path).map(|(_, access)| *access)
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
            let access = needed(call).unwrap_or_else(|| panic!("{call} has no row in the table of roles"));
            assert!(
                matches!(access, CallRoles::Of(roles) if !roles.is_empty()),
                "{call} is open to everybody"
            );
        }
        let ours = TABLE.iter().filter(|(call, _)| call.starts_with("/kgfleet.")).count();
        assert_eq!(ours, calls.len(), "a row without a call");
        assert_eq!(needed("/kgfleet.v1.ControlService/Levitate"), None);
    }
}
