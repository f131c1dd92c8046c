//! The evaluation sandbox against hostile answers, with real child processes.
//!
//! The test program is its own evaluation process, so it has no test harness of its own: `main` becomes a child where
//! it is started as one, and runs the tests otherwise.

#![allow(clippy::unwrap_used, reason = "a failure of a test may panic wherever it happens")]

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

mod child;
mod hostile;
mod pool;
mod trials;

fn main() -> ExitCode {
    if let Some(code) = child::become_child() {
        return code;
    }
    let trial = |(name, test): (&'static str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let trials = trials::ALL.into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
