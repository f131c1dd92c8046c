//! What the checks of a plan have found.

use std::io::{self, Write};

use serde::Serialize;

use crate::engine::preflight::Level;
use crate::kit::output::{explain, printable};

/// Something that was found.
#[derive(Debug, Serialize)]
struct PlanFinding {
    level: Level,
    what: String,
    message: String,
}

/// All of it, in the order of the checks.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct PlanFindings(Vec<PlanFinding>);

impl PlanFindings {
    pub fn add(&mut self, level: Level, what: impl Into<String>, message: impl Into<String>) {
        self.0.push(PlanFinding { level, what: what.into(), message: message.into() });
    }

    /// Adds what a check says, or why it failed.
    pub fn of(&mut self, what: &str, result: anyhow::Result<(Level, String)>) {
        match result {
            Ok((level, message)) => self.add(level, what, message),
            Err(error) => self.add(Level::Problem, what, explain(&error)),
        }
    }

    /// Whether nothing would fail.
    pub fn are_fit(&self) -> bool {
        self.0.iter().all(|finding| finding.level != Level::Problem)
    }

    /// Prints them for people.
    pub fn tell(&self, out: &mut dyn Write) -> io::Result<()> {
        for finding in &self.0 {
            let mark = match finding.level {
                Level::Ok => "ok      ",
                Level::Warning => "warning ",
                Level::Problem => "problem ",
            };
            writeln!(out, "{mark} {}: {}", printable(&finding.what), printable(&finding.message))?;
        }
        Ok(())
    }
}
