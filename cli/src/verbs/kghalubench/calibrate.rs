//! `kgfleet halu calibrate`.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use benchmarks::kinds::kghalubench::numbers::calibration::{Observation, calibrate};
use present::table::{Cell, Table};
use serde_json::json;

use super::whose::Whose;
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::say;

/// Learn from judged answers how hard questions are, and write the weights into a file for `--weights`.
///
/// Weights of statistics, types and relations are learnt from seven tenths of each model's answers. The rest says how well
/// they foretell: difficulty and points should be correlated negatively.
///
/// Exit codes: 0 the file is written; 2 a name is no pipeline of KGHaluBench, or too few answers are scored; 3 a file
/// cannot be read or written.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Pipelines of KGHaluBench.
    #[arg(required = true, value_name = "PIPELINE")]
    pipelines: Vec<String>,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Decides which answers weights are learnt from.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Print one JSON object instead of the table.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    whose: Whose,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (mut assessments, mut observations) = (Vec::new(), Vec::new());
    let mut models = std::collections::BTreeSet::new();
    let mut names = Vec::new();
    for name in &arguments.pipelines {
        let found = arguments.whose.place(name)?.read(&mut |_, _, _, _| ())?.found;
        names.push(found.pipeline);
        let before = assessments.len();
        for model in found.models {
            observations.extend(model.answers.iter().map(|answer| Observation {
                model: model.model.clone(),
                assessment: before + answer.assessment,
                question: answer.question,
                fate: answer.fate,
            }));
            models.insert(model.model);
        }
        assessments.extend(found.assessments);
    }
    let source = format!("{} models of {}", models.len(), names.join(", "));
    let learnt = calibrate(&assessments, &observations, source, arguments.seed)
        .map_err(|error| usage!("no weights can be learnt from {}: {error}", names.join(", ")))?;
    let path = &arguments.out;
    std::fs::write(path, learnt.weights.to_toml()?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    say(&format!("wrote weights {} into {}", learnt.weights.fingerprint()?, path.display()));
    let mut out = io::stdout().lock();
    if arguments.json {
        let object = json!({
            "weights": learnt.weights.fingerprint()?,
            "learnt_from": learnt.training,
            "checked_with": learnt.validation,
            "spearman": learnt.spearman,
            "kendall": learnt.kendall,
        });
        writeln!(out, "{object}")?;
    } else {
        let mut table = Table::default().left(["calibration"]).right(["value"]);
        table.row([Cell::from("answers learnt from"), Cell::Count(learnt.training as u64)]);
        table.row([Cell::from("answers checked with"), Cell::Count(learnt.validation as u64)]);
        table.row([Cell::from("Spearman's rho of difficulty and points"), Cell::number(learnt.spearman, 3)]);
        table.row([Cell::from("Kendall's tau-b"), Cell::number(learnt.kendall, 3)]);
        table.write(&mut out)?;
    }
    Ok(ExitCode::Success)
}
