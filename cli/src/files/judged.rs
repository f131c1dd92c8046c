//! Reads judged benchmarks, of this machine or of a fleet, for what their kinds show of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use benchmarks::kinds;
use benchmarks::reading::{BenchmarkFacts, BenchmarkReader, ModelReading};
use benchmarks::showing::{Extras, Input, Showing, ShowingError, ShownBenchmark};
use clap::{Arg, ArgMatches, Command};
use coordinator::BenchmarkReading;
use coordinator::access::Access;
use domain::{ModelLabel, RunId, ServiceError, TaskLabel};
use tasks::TaskData;
use tokio::runtime::Runtime;

use crate::kit::exit_code::{explained, usage};
use crate::kit::whole_file;
use crate::place::local;
use crate::place::opened::OpenedBenchmark;

/// The files that kinds take into account beside records: an option for each.
#[derive(Clone, Debug, Default)]
pub struct KindInputs(Vec<(&'static Input, PathBuf)>);

impl clap::Args for KindInputs {
    fn augment_args(command: Command) -> Command {
        kinds::inputs().into_iter().fold(command, |command, input| {
            let file = clap::value_parser!(PathBuf);
            let option = Arg::new(input.name).long(input.name).value_name("FILE").value_parser(file);
            command.arg(option.help(input.about))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for KindInputs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |input: &'static Input| Some((input, matches.get_one::<PathBuf>(input.name)?.clone()));
        Ok(Self(kinds::inputs().into_iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl KindInputs {
    /// Reads the files.
    ///
    /// # Errors
    /// One cannot be read.
    fn extras(&self) -> anyhow::Result<Extras> {
        let mut extras = Extras::default();
        for (input, path) in &self.0 {
            extras.insert(input, whole_file::read_text(path)?);
        }
        Ok(extras)
    }

    /// An error of numbers with its exit code; what is wrong with a file names the file.
    fn explained(&self, error: ShowingError) -> anyhow::Error {
        let path_of = |name: &str| self.0.iter().find(|(input, _)| input.name == name).map(|(_, path)| path);
        match &error {
            ShowingError::Input { input, message } => match path_of(input) {
                Some(path) => usage!("{}: {message}", path.display()),
                None => usage!("{error}"),
            },
            _ => of_showing(error),
        }
    }
}

/// An error of numbers with its exit code.
pub fn of_showing(error: ShowingError) -> anyhow::Error {
    match error {
        ShowingError::Records(error) => explained(error),
        error => usage!("{error}"),
    }
}

/// A benchmark in a data folder, whose records are read when they are asked for.
pub struct FolderReader {
    access: Arc<Access>,
    reading: BenchmarkReading,
    runtime: Runtime,
}

impl FolderReader {
    /// The judged benchmark of this name in a data folder; `None` if there is none.
    ///
    /// # Errors
    /// Its documents cannot be read.
    pub fn open(name: &RunId, data_dir: &Path) -> anyhow::Result<Option<Self>> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let opened = runtime.block_on(async {
            let access = local::beside(data_dir)?;
            let reading = access.read_judged(name).await.map_err(explained)?;
            anyhow::Ok(reading.map(|reading| (access, reading)))
        })?;
        Ok(opened.map(|(access, reading)| Self { access, reading, runtime }))
    }

    /// The same of an opened benchmark.
    ///
    /// # Errors
    /// Its documents cannot be read, or a coordinator replaced the texts that verdicts are about.
    pub fn of(opened: &OpenedBenchmark) -> anyhow::Result<Option<Self>> {
        if !opened.is_judged {
            return Ok(None);
        }
        opened.refuse_redacted()?;
        Self::open(&opened.name, opened.data_dir())
    }
}

impl BenchmarkReader for FolderReader {
    fn facts(&self) -> &BenchmarkFacts {
        &self.reading.facts
    }

    fn task(&self, label: &TaskLabel) -> Option<&TaskData> {
        self.reading.pack.tasks().iter().find(|task| task.label == *label)
    }

    fn model(&mut self, model: &ModelLabel) -> Result<ModelReading, ServiceError> {
        self.runtime.block_on(self.access.read_about(&self.reading, model))
    }
}

/// What the kind of a benchmark shows.
///
/// # Errors
/// It has no tables of its own.
fn shown(name: &str, kind: &str) -> anyhow::Result<&'static Showing> {
    let showing = kinds::find(Some(kind)).and_then(|kind| kind.showing);
    showing.ok_or_else(|| {
        let shown: Vec<&str> = kinds::shown().map(|kind| kind.name).collect();
        usage!(
            "pipeline {name} is of kind {}; only those of {} have tables and reports of their own. `kgfleet status` and the end \
             of `kgfleet run` show the numbers of any kind",
            kind,
            shown.join(" and ")
        )
    })
}

/// Some benchmarks of one kind, with their numbers.
pub struct KindBenchmarks {
    /// The name of the kind.
    pub kind: String,
    pub showing: &'static Showing,
    pub shown: Vec<ShownBenchmark>,
}

impl KindBenchmarks {
    /// Adds a benchmark to those of its kind.
    ///
    /// # Errors
    /// Its records cannot be read, or a file that is taken into account is invalid.
    pub fn add(
        all: &mut Vec<Self>,
        reader: &mut dyn BenchmarkReader,
        inputs: &KindInputs,
    ) -> anyhow::Result<()> {
        let BenchmarkFacts { name, kind, models, .. } = reader.facts().clone();
        let showing = shown(&name, &kind)?;
        let numbers =
            (showing.numbers)(reader, &inputs.extras()?).map_err(|error| inputs.explained(error))?;
        let shown = ShownBenchmark { name, models: models.len(), numbers };
        match all.iter_mut().find(|known| known.kind == kind) {
            Some(known) => {
                known.shown.push(shown);
                showing.relate(&mut known.shown);
            }
            None => all.push(Self { kind, showing, shown: vec![shown] }),
        }
        Ok(())
    }
}
