//! The role that each call of gRPC needs, and what it may send: one table; a call without a row is refused.

use domain::caller::CallerRole::{self, Conductor, Operator, Reader, Worker};

use crate::limits::{MESSAGE_BYTES, NAMING_BYTES, REGISTRATION_BYTES, REPORT_BYTES};

/// Who may look.
pub(super) const READ: &[CallerRole] = &[Reader, Operator];
/// What a conductor goes by.
pub(super) const NEEDS: &[CallerRole] = &[Reader, Operator, Conductor];
/// What a conductor alone may say.
pub(super) const CONDUCT: &[CallerRole] = &[Conductor];
/// Calls that change something.
pub(super) const STEER: &[CallerRole] = &[Operator];
const WORK: &[CallerRole] = &[Worker];

/// The call that stores records.
pub(super) const RECORDS: &str = "/kgfleet.v1.WorkService/DeliverRecords";

/// Every call of gRPC, with who may make it, and the most bytes that its message has. A call without a row is not served. The routes of the API are in [`routes`](super::api::routes).
const TABLE: &[(&str, &[CallerRole], usize)] = &[
    ("/kgfleet.v1.WorkService/Register", WORK, REGISTRATION_BYTES),
    ("/kgfleet.v1.WorkService/Exchange", WORK, REPORT_BYTES),
    (RECORDS, WORK, MESSAGE_BYTES),
    ("/kgfleet.v1.WorkService/GetRunMaterial", WORK, NAMING_BYTES),
    ("/kgfleet.v1.WorkService/FetchPack", WORK, NAMING_BYTES),
    ("/kgfleet.v1.WorkService/TakeRate", WORK, NAMING_BYTES),
    ("/kgfleet.v1.WorkService/Deregister", WORK, NAMING_BYTES),
];

/// Who may make the call of this path, and the most bytes of its message; `None` for an unknown call.
pub(super) fn needed(path: &str) -> Option<(&'static [CallerRole], usize)> {
    TABLE.iter().find(|(call, ..)| *call == path).map(|(_, roles, bytes)| (*roles, *bytes))
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
    fn every_call_of_the_wire_has_a_row_and_is_for_workers() {
        let described = FileDescriptorSet::decode(crate::wire::DESCRIPTORS).unwrap();
        let mut calls = Vec::new();
        for file in &described.file {
            for service in &file.service {
                let path = |call: &str| format!("/{}.{}/{call}", file.package(), service.name());
                calls.extend(service.method.iter().map(|method| path(method.name())));
            }
        }
        assert!(calls.len() > 5, "{calls:?}");
        for call in &calls {
            let (access, _) =
                needed(call).unwrap_or_else(|| panic!("{call} has no row in the table of roles"));
            assert_eq!(access, WORK, "{call}");
        }
        assert_eq!(TABLE.len(), calls.len(), "a row without a call");
        assert_eq!(needed("/kgfleet.v1.WorkService/Levitate"), None);
    }
}
