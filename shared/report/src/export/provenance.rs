//! What many dialogues of a run share: versions, pack, scoring rules, model, sampling parameters. Repeated in every row
//! this would be most of a table, so rows have a number, and a list beside the table explains the numbers.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use domain::Provenance;
use results::RunManifest;
use serde_json::{Value, json};

use crate::table::RowColumn;

/// Provenances with their numbers, from 1 in the order of first appearance.
#[derive(Debug, Default)]
pub struct Provenances {
    list: Vec<Provenance>,
    numbers: HashMap<String, usize>,
    last: usize,
}

impl Provenances {
    /// The number of a provenance. Case and seed are ignored, because they differ between dialogues.
    pub fn number(&mut self, provenance: &Provenance) -> usize {
        // Dialogues come in the order of the plan, so most have the provenance of the one before.
        if self
            .last
            .checked_sub(1)
            .and_then(|at| self.list.get(at))
            .is_some_and(|last| same(last, provenance))
        {
            return self.last;
        }
        let mut shared = provenance.clone();
        shared.seed = 0;
        shared.task.case.clear();
        let name = json!(shared).to_string();
        self.last = *self.numbers.entry(name).or_insert_with(|| {
            self.list.push(shared);
            self.list.len()
        });
        self.last
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Provenance> {
        self.list.iter()
    }

    /// Writes the list as JSON, with the run and the meaning of the table's columns.
    pub fn write(&self, mut out: impl Write, run: &RunManifest, columns: &[RowColumn]) -> io::Result<()> {
        let of_dialogues = |provenance: &Provenance| {
            let mut value = json!(provenance);
            // Of one dialogue each, and columns of the tables.
            if let Some(fields) = value.as_object_mut() {
                fields.shift_remove("seed");
            }
            if let Some(task) = value.get_mut("task").and_then(Value::as_object_mut) {
                task.shift_remove("case");
            }
            value
        };
        let list = self
            .list
            .iter()
            .zip(1..)
            .map(|(provenance, number)| json!({ "provenance": number, "of": of_dialogues(provenance) }));
        let columns = columns.iter().map(|column| json!({ "name": column.name, "meaning": column.meaning }));
        let content = json!({
            "run": run.run,
            "created_at": run.created_at,
            "kgfleet": run.kgfleet,
            "configuration_hash": run.configuration_hash,
            "plan_hash": run.plan_hash,
            "seed": run.seed,
            "packs": run.packs,
            "planned_dialogues": run.planned_dialogues,
            "provenance": list.collect::<Vec<_>>(),
            "columns": columns.collect::<Vec<_>>(),
        });
        serde_json::to_writer_pretty(&mut out, &content)?;
        out.write_all(b"\n")?;
        out.flush()
    }
}

fn same(a: &Provenance, b: &Provenance) -> bool {
    a.kgfleet == b.kgfleet
        && a.model == b.model
        && a.sampling == b.sampling
        && a.about == b.about
        && a.task.class == b.task.class
        && a.task.version == b.task.version
        && a.task.pack == b.task.pack
        && a.task.pack_hash == b.task.pack_hash
        && a.task.scorer == b.task.scorer
}

/// The file beside a table that explains its numbers: `RUN.csv` has `RUN.provenance.json`.
pub fn path_beside(table: &Path) -> PathBuf {
    table.with_extension("provenance.json")
}
