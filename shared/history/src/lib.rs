//! The history of units and records, and a checker of it.
//!
//! [`event`] defines what coordinators note, [`observed`] notes the calls of a queue with their answers, and [`file`]
//! stores the events beside the runs. [`check`] compares them with the record log. It is a pure function that finds
//! records that were acknowledged and lost, dialogues that count twice, stale fences that were accepted, units leased
//! to two workers at once, and winners that changed. A further rule is a [`FindingKind`](check::FindingKind) with its
//! check.

pub mod check;
pub mod event;
pub mod file;
pub mod observed;

pub use check::{CheckReport, Finding, FindingKind, Kept, check};
pub use event::{Event, LeaseEnding, LostRecord, Noted, Winners};
pub use file::{EventLog, Events};
pub use observed::Observed;
