//! Packs: the benchmark's tasks, cases, wording and graphs as data, encrypted at rest.
//!
//! A pack is one file, a tar in zstd in a zip archive encrypted with AES-256. Plaintext test data on the web ends up in training sets, so packs in a
//! repository are sealed. The password that opens the project's own packs is published beside them: it keeps out
//! crawlers and is not a secret. Packs are opened in memory only, unless a person edits one.
//!
//! Reading order: [`manifest`] is what a pack declares, [`parts`] a pack as files, [`sealed`] the container around
//! them, [`Pack`] an opened pack with its tasks; [`verify`] proves its cases, [`mod@import`] creates a pack from
//! published result files, [`mod@bestiary`] generates the one graph that is too large to store.

pub mod bestiary;
pub mod configurations;
pub mod error;
pub mod header;
pub mod import;
mod include;
pub mod manifest;
mod pack;
pub mod parts;
pub mod sealed;
mod sealed_file;
pub mod task_files;
pub mod verify;

pub use error::PackError;
pub use header::{GraphSource, GraphSpec, Group, Header};
pub use import::import;
pub use manifest::{FORMAT_VERSION, Manifest, PackHash};
pub use pack::{Pack, TaskLine, bundled, published_password};
pub use parts::Parts;
pub use sealed::{SEALED_BYTES_MAX, seal, seal_quickly};
pub use sealed_file::{manifest_path, seal_file};
pub use verify::{PackFinding, PackReport, verify};
