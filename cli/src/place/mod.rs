//! Where benchmarks are: in a folder of this machine, or in a fleet.
//!
//! `data_dir` and `remote` are the options for both, `names` resolves what people call a run. `folders` reads runs in a folder,
//! `local` asks a coordinator in this process about judged ones, `steer` asks that of a fleet, `fetch` copies from there.
//! `packs` and `identities` open exercises, `disclosure` says what of them may be shown; `targets` are what a configuration
//! contacts, `trust` says whether its user agreed to that.

pub mod data_dir;
pub mod disclosure;
pub mod fetch;
pub mod folders;
pub mod identities;
pub mod local;
pub mod names;
pub mod packs;
pub mod remote;
pub mod steer;
pub mod targets;
pub mod trust;
