//! The binary as its users meet it: real processes, real folders, real sockets of the loopback interface.
//!
//! One test binary for all of them, since linking it is what takes longest. A test here drives `kgfleet` and looks at
//! what it leaves behind: exit code, output, files, and what a simulated server was asked. What a crate does inside is
//! tested in that crate.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod archiving;
mod harness;

mod adversary;
mod altered;
mod bad_input;
mod capped;
mod chart;
mod cluster;
mod completing;
mod conducting;
mod conformance;
mod costing;
mod determinism;
mod disk_full;
mod extending;
mod finding;
mod first_question;
mod foreign;
mod golden;
mod halu;
mod interrupting;
mod judged;
mod judging;
mod killing;
mod launching;
mod lists;
mod notifying;
mod options;
mod own_tasks;
mod packing;
mod protected;
mod quick_run;
mod reevaluating;
mod reference;
mod refusing;
mod removing;
mod reporting;
mod resuming;
mod retrying;
mod scoring;
mod slurm;
mod verbs;
mod watching;
mod wrong_inputs;
