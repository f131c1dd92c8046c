//! Where runs are: in a folder of this machine, or in a fleet.
//!
//! `data_dir` and `remote` are the options for both, `login` is the fleet that the user has logged in to, `names` resolves
//! abbreviated names of runs. `folders` reads runs in a folder, `local` asks a coordinator in this process about judged
//! benchmarks, `disk` says what records take and whether there is room for more, `live` what is under way in the process that
//! writes them, `steer` sends commands to the coordinator of a fleet, `audit_dir` reads audit logs, `queue_login` is the password of
//! Redis, `fetch` copies runs from there. `packs` opens packs with their `passwords`, `task_files` compiles those of task files,
//! `disclosure` decides how their texts may be written; `targets` lists what a configuration contacts, `trust` checks that its user
//! agreed to that. `kubernetes` is the namespace of a pod. `completing` offers names for the `line` that is typed.

pub mod audit_dir;
pub mod completing;
pub mod data_dir;
pub mod disclosure;
pub mod disk;
pub mod fetch;
pub mod folders;
pub mod kubernetes;
pub mod line;
pub mod live;
pub mod local;
pub mod login;
pub mod names;
pub mod packs;
pub mod passwords;
pub mod queue_login;
pub mod remote;
pub mod steer;
pub mod targets;
pub mod task_files;
pub mod trust;
