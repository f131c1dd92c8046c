//! Batches that runs of this machine leave at providers: they are cancelled where nobody needs them any more, and what they
//! left there is deleted.

use std::path::{Path, PathBuf};

use coordinator::configuration::Configuration;
use domain::text::with_causes;
use domain::{Ask, Connector, ModelSpec, RunId};
use models::batch::{AbandonedBatch, BatchFate};
use models::{Batched, Batches};
use worker::Connect;

use crate::engine::connect::LocalConnect;
use crate::kit::output::{explain, note, printable, say};
use crate::place::targets::Targets;
use crate::place::{folders, local, trust};

/// The folder of their documents in a folder of runs.
const FOLDER: &str = "batches";

/// Why the keys of a run are not used that somebody else may have made.
const FOREIGN: &str = "the run is not known as yours as it is now, so that its keys are not used";

/// Why a batch is not asked about that no model of its run can have asked for.
const NO_MODEL: &str = "no model of the run is asked there";

/// The batches of a run, or of the runs of a judged benchmark.
pub struct LeftBatches {
    batches: Batches,
    folder: PathBuf,
    runs: Vec<LeftRun>,
}

/// A run that has batches.
struct LeftRun {
    run: RunId,
    /// How they were asked, or why that is unknown.
    asked: Result<AskedModels, String>,
}

/// The models of a run that are asked in batches, and what the user agreed that it contacts and reads.
struct AskedModels {
    specs: Vec<ModelSpec>,
    agreed: Targets,
}

/// Models that can be asked, and the others with the reasons.
#[derive(Default)]
struct ReachedModels {
    models: Vec<Batched>,
    failed: Vec<(ModelSpec, String)>,
}

/// The batches that runs of this folder have.
pub fn of_folder(data_dir: &Path) -> Batches {
    Batches::in_folder(data_dir.join(FOLDER))
}

impl LeftBatches {
    /// Those of a benchmark of this machine, with the models that its manifests name. Nothing is contacted, and where there are
    /// none, no manifest is read.
    pub async fn of(name: &RunId, data_dir: &Path) -> Self {
        let batches = of_folder(data_dir);
        let mut runs = Vec::new();
        for run in batches.noted().await {
            if run == *name || local::is_run_of(&run, name.as_str()) {
                let asked = asked(&run, data_dir).await;
                runs.push(LeftRun { run, asked });
            }
        }
        Self { batches, folder: data_dir.join(FOLDER), runs }
    }

    /// Cancels them, deletes what they left, and says what goes on or stays. No process may work at the runs.
    pub async fn abandon(self) {
        let mut over = 0;
        for LeftRun { run, asked } in &self.runs {
            let (reached, unknown) = match asked {
                Ok(asked) => (self.reach(asked), NO_MODEL),
                Err(why) => (ReachedModels::default(), why.as_str()),
            };
            for batch in self.batches.abandon(run, &reached.models).await {
                over += usize::from(batch.fate.is_over());
                self.tell(&batch, &reached, unknown);
            }
        }
        if over > 0 {
            note!("batches at their providers cleared away: {over}");
        }
    }

    fn reach(&self, asked: &AskedModels) -> ReachedModels {
        let connect = LocalConnect::new(None, asked.agreed.clone()).asking_in(self.batches.clone());
        let mut reached = ReachedModels::default();
        for spec in &asked.specs {
            match connect.connect(Ask::Chat, spec, None) {
                Ok(connected) => reached.models.extend(connected.batched),
                Err(error) => reached.failed.push((spec.clone(), with_causes(&error))),
            }
        }
        reached
    }

    /// Says what a person may have to do about a batch.
    fn tell(&self, batch: &AbandonedBatch, reached: &ReachedModels, unknown: &str) {
        let AbandonedBatch { id, connector, endpoint, model, fate } = batch;
        let endpoint = endpoint.as_deref().unwrap_or_default();
        let what = match id {
            Some(id) => format!("batch {id} of {model} at {endpoint}"),
            None => format!("a batch of {model} at {endpoint}, whose creation was cut off,"),
        };
        let console = console(connector);
        let is_of = |(spec, _): &&(ModelSpec, String)| {
            spec.connector.as_str() == connector && spec.requested() == model
        };
        let why = match fate {
            BatchFate::Gone | BatchFate::Cleared => return,
            BatchFate::Left(why) => {
                note!("{}", printable(&format!("{what} leaves files, to be deleted at {console}: {why}")));
                return;
            }
            BatchFate::GoesOn(why) => why.as_str(),
            BatchFate::NoModel => reached.failed.iter().find(is_of).map_or(unknown, |(_, why)| why.as_str()),
        };
        say(&printable(&format!(
            "warning: {what} may go on and cost money: {why}. Cancel it at {console}; its document stays in {}",
            self.folder.display()
        )));
    }
}

/// How the batches of a run are asked.
///
/// # Errors
/// Its manifest cannot be read, or somebody else may have written it: it says where keys are sent.
async fn asked(run: &RunId, data_dir: &Path) -> Result<AskedModels, String> {
    let configuration = folders::open_altered(run, data_dir)
        .and_then(|(_, manifest)| folders::configuration(&manifest))
        .map_err(|error| explain(&error))?;
    let agreed = trust::expect_own_run(run, data_dir, false).await.map_err(|_| FOREIGN.to_owned())?;
    let Configuration { models, judges, .. } = configuration;
    let specs = models.into_iter().chain(judges.into_values()).filter(ModelSpec::is_batched);
    Ok(AskedModels { specs: specs.collect(), agreed })
}

/// Where people see the batches of their account.
fn console(connector: &str) -> &'static str {
    if connector == Connector::Anthropic.as_str() {
        "https://platform.claude.com"
    } else {
        "https://platform.openai.com/batches"
    }
}
