//! `kgfleet halu calibrate`.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use benchmarks::kinds::kghalubench::numbers::calibration::{Observation, calibrate};
use report::table::{Cell, Table};
use serde_json::json;

use super::read;
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{note, say};
use crate::kit::screen::Screen;
use crate::place::{PlaceOptions, completing};

/// Learn from judged answers how hard questions are, and write the weights into a file for `--weights`.
///
/// Weights of statistics, types and relations are learnt from the answers about seven tenths of the entities. The answers about the
/// others say how well they foretell: difficulty and points should be correlated negatively, and more so than under weights that know
/// nothing and under those that come with the program.
///
/// Exit codes: 0 the file is written; 2 a name is no pipeline of KGHaluBench, or too few answers are scored; 3 a file
/// cannot be read or written.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Pipelines of KGHaluBench.
    #[arg(required = true, value_name = "PIPELINE", add = completing::runs())]
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
    place: PlaceOptions,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (mut assessments, mut observations) = (Vec::new(), Vec::new());
    let mut models = std::collections::BTreeSet::new();
    let mut names = Vec::new();
    let place = arguments.place.place()?;
    for name in &arguments.pipelines {
        let found = read(&place.open(name)?, &mut |_, _, _, _| ())?.found;
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
    note!("wrote weights {} into {}", learnt.weights.fingerprint()?, path.display());
    let rows = [
        ("these weights", learnt.learnt),
        ("weights that know nothing", learnt.untaught),
        ("those that come with the program", learnt.shipped),
    ];
    for (name, other) in &rows[1..] {
        if !learnt.learnt.is_better_than(other) {
            say(&format!(
                "on answers about new entities {name} foretell as well or better: learn from more answers, or order by accuracy"
            ));
        }
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        let [of_learnt, untaught, shipped] = rows.map(
            |(_, foretelling)| json!({ "spearman": foretelling.spearman, "kendall": foretelling.kendall }),
        );
        let object = json!({
            "weights": learnt.weights.fingerprint()?,
            "learnt_from": learnt.training,
            "checked_with": learnt.validation,
            "spearman": of_learnt["spearman"],
            "kendall": of_learnt["kendall"],
            "untaught": untaught,
            "shipped": shipped,
        });
        writeln!(out, "{object}")?;
    } else {
        let mut table = Table::default()
            .left(["on answers about new entities"])
            .right(["Spearman's rho", "Kendall's tau-b"])
            .titled("Difficulty and points");
        for (name, foretelling) in rows {
            table.row([
                Cell::from(name),
                Cell::number(foretelling.spearman, 3),
                Cell::number(foretelling.kendall, 3),
            ]);
        }
        table.notes.push(format!(
            "Learnt from {} answers, checked with {}. The more negative, the better; weights that know nothing were learnt from points dealt \
             out at random.",
            learnt.training, learnt.validation
        ));
        Screen::here().table(&table, &mut out)?;
    }
    Ok(ExitCode::Success)
}
