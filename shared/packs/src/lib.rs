//! Packs: the benchmark's tasks, cases, wording and graphs as data, encrypted at rest.
//!
//! A pack is one file, `tar | zstd | age`. Plain test data on the web ends up in training sets, so what a repository
//! holds is sealed. The identity that opens the project's own packs is published beside them: it keeps crawlers out,
//! it is not a secret. Packs are only ever opened in memory, unless a person asks to edit one.
//!
//! Reading order: [`manifest`] says what a pack declares, [`parts`] is a pack laid out as files, [`sealed`] is the
//! container around them, [`Pack`] is an opened pack with its tasks, [`verify`] proves its cases, [`mod@import`] makes a
//! pack from published result files, [`mod@bestiary`] makes the one graph that is too large to store.

pub mod bestiary;
pub mod error;
pub mod identity;
pub mod import;
mod include;
pub mod listing;
pub mod manifest;
mod pack;
pub mod parts;
pub mod sealed;
pub mod verify;

pub use error::PackError;
pub use identity::{Identity, IdentityError};
pub use import::import;
pub use listing::{CaseView, TaskLine};
pub use manifest::{FORMAT_VERSION, GraphSource, GraphSpec, Group, Header, Manifest, PackHash};
pub use pack::Pack;
pub use parts::Parts;
pub use sealed::{seal, seal_file, seal_quickly};
pub use verify::{Finding, PackReport, verify};
