//! Reads the inputs of tables and reports: runs and result files, mixed.

use std::path::{Path, PathBuf};

use anyhow::bail;
use domain::glob::Glob;
use report::Dialogues;
use report::details::Details;
use report::input::read_documents;
use results::llmkgbench::{ResultRecord, discover};
use tasks::{Compat, GraphLibrary};

use crate::files::compared::{compare_published, on_large_stack};
use crate::files::exercises::BuiltExercises;
use crate::files::export::ExportSource;
use crate::files::judged::{FolderReader, KindBenchmarks, KindInputs};
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{explain, say};
use crate::kit::runtime::block_on;
use crate::place::opened::{OpenedBenchmark, is_archive};
use crate::place::{Place, PlaceOptions, completing, names};

/// Maximum number of problems that are printed; the rest is counted.
const PROBLEMS_TOLD_MAX: usize = 10;

/// Where dialogues come from.
#[derive(Debug, clap::Args)]
pub struct Inputs {
    #[command(flatten)]
    sources: Sources,
    /// Only these tasks; repeatable. `*` matches any text, `?` one character.
    #[arg(long = "task", value_name = "GLOB", add = completing::tasks())]
    tasks: Vec<String>,
    /// Only these models, by label or by the name that is shown; repeatable.
    #[arg(long = "model", value_name = "GLOB", add = completing::models())]
    models: Vec<String>,
}

/// How runs and files are opened.
#[derive(Debug, clap::Args)]
pub struct Sources {
    /// Password of encrypted result files.
    #[arg(long, value_name = "P", env = "KGFLEET_PASSWORD", hide_env_values = true)]
    password: Option<String>,
    #[command(flatten)]
    pub place: PlaceOptions,
}

/// What a name means.
pub struct Input {
    pub name: String,
    /// `None`: result files of this path.
    benchmark: Option<OpenedBenchmark>,
}

/// The dialogues that were read.
pub struct Read {
    pub dialogues: Dialogues,
    /// Files and records that could not be used.
    pub problems: usize,
}

impl Read {
    /// Success, or [`ExitCode::BadInput`] if there were problems.
    pub fn exit_code(&self) -> ExitCode {
        if self.problems == 0 { ExitCode::Success } else { ExitCode::BadInput }
    }
}

impl Inputs {
    /// Opens what is named: judged benchmarks by kind, and the rest.
    ///
    /// # Errors
    /// A benchmark cannot be opened, or a file that its kind takes into account.
    pub fn judged(
        &self,
        named: &[String],
        inputs: &KindInputs,
    ) -> anyhow::Result<(Vec<KindBenchmarks>, Vec<Input>)> {
        let (mut judged, mut others) = (Vec::new(), Vec::new());
        for input in self.sources.open(named)? {
            match input.benchmark.as_ref().map(FolderReader::of).transpose()?.flatten() {
                Some(mut reader) => KindBenchmarks::add(&mut judged, &mut reader, inputs)?,
                None => others.push(input),
            }
        }
        Ok((judged, others))
    }

    /// Reads what is named, and selects.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_named(&self, named: &[String]) -> anyhow::Result<Read> {
        self.read(&self.sources.open(named)?, None)
    }

    /// Reads each input, and selects. Texts go to `details`, if given.
    ///
    /// # Errors
    /// A run cannot be read, or there are no dialogues.
    pub fn read(&self, inputs: &[Input], details: Option<&mut Details>) -> anyhow::Result<Read> {
        let Read { dialogues, problems } = self.sources.read(inputs, details)?;
        let dialogues = self.select(dialogues)?;
        if dialogues.is_empty() && !inputs.is_empty() {
            say("there are no dialogues in what was read");
        }
        for warning in &dialogues.warnings {
            say(&format!("warning: {warning}"));
        }
        Ok(Read { dialogues, problems })
    }

    fn select(&self, all: Dialogues) -> anyhow::Result<Dialogues> {
        let globs = |texts: &[String]| texts.iter().map(|text| Glob::new(text)).collect::<Vec<_>>();
        let (tasks, models) = (globs(&self.tasks), globs(&self.models));
        let chosen = |globs: &[Glob], text: &str| globs.iter().any(|glob| glob.matches(text));
        let was_empty = all.is_empty();
        let some = all.select(
            |column| models.is_empty() || chosen(&models, &column.model) || chosen(&models, &column.name),
            |task| tasks.is_empty() || chosen(&tasks, &task.label),
        );
        if some.is_empty() && !was_empty {
            bail!(usage!("no dialogue fits --task and --model"));
        }
        Ok(some)
    }
}

impl Sources {
    /// Opens each name: the run of this name; otherwise it is a file or a folder with result files.
    ///
    /// # Errors
    /// A benchmark cannot be opened.
    pub fn open(&self, named: &[String]) -> anyhow::Result<Vec<Input>> {
        let place = self.place.place()?;
        let open = |name: &String| {
            if is_file(&place, name)? {
                return Ok(Input { name: name.clone(), benchmark: None });
            }
            if !is_archive(name) && Path::new(name).exists() {
                say(&format!(
                    "{name} is a run, and a file or folder here: the run is read; ./{name} is the other one"
                ));
            }
            Ok(Input { name: name.clone(), benchmark: Some(place.open(name)?) })
        };
        named.iter().map(open).collect()
    }

    /// Reads each input. Texts go to `details`, if given.
    ///
    /// # Errors
    /// A run cannot be read, or nothing could be.
    pub fn read(&self, inputs: &[Input], mut details: Option<&mut Details>) -> anyhow::Result<Read> {
        let mut all = Dialogues::default();
        let (mut problems, mut paths) = (0, Vec::new());
        for Input { name, benchmark } in inputs {
            let Some(benchmark) = benchmark else {
                paths.push(PathBuf::from(name));
                continue;
            };
            let (dir, manifest) = benchmark.only()?;
            ExportSource::open(dir, manifest)?.read_into(&mut all, details.as_deref_mut())?;
        }
        // Files last: a model under test stands before those that it is compared with.
        let mut documents = Vec::new();
        let mut tell = |problem: String| {
            problems += 1;
            if problems <= PROBLEMS_TOLD_MAX {
                say(&problem);
            }
        };
        for found in discover(&paths, self.password.as_deref()) {
            match found {
                Ok(document) => documents.push(document),
                Err(error) => tell(error.to_string()),
            }
        }
        let in_clear = documents.iter().filter(|document| !document.is_protected()).count();
        if details.is_some() && in_clear > 0 {
            say(&format!(
                "warning: the texts of {in_clear} result files will stand in the report as they are. Whoever publishes benchmarks \
                 asks that exercises be not spread in the clear, where crawlers find them; --no-texts leaves texts out"
            ));
        }
        let exercises = BuiltExercises::new(GraphLibrary::absent(), Compat::PUBLISHED);
        let compare =
            |record: &ResultRecord| compare_published(&exercises, record).map_err(|error| explain(&error));
        let shows = details.is_some();
        let read = || read_documents(&mut all, &documents, details, &compare);
        let reading = if shows { on_large_stack(read)? } else { read() };
        reading.file_errors.into_iter().chain(reading.record_errors).for_each(&mut tell);
        problems += reading.untold_errors;
        if problems > PROBLEMS_TOLD_MAX {
            say(&format!("{} more files and records could not be used", problems - PROBLEMS_TOLD_MAX));
        }
        if all.is_empty() && problems > 0 {
            bail!("nothing could be read (see above); encrypted files need --password");
        }
        Ok(Read { dialogues: all, problems })
    }
}

/// Whether a name means a file: it is written like a path, or something is there that has it and no run has it.
fn is_file(place: &Place, name: &str) -> anyhow::Result<bool> {
    if is_archive(name) {
        return Ok(false);
    }
    if name.contains('/') || name.ends_with(".zip") || name.ends_with(".json") {
        return Ok(true);
    }
    if !Path::new(name).exists() {
        return Ok(false);
    }
    Ok(!block_on(async { names::is_known(name, &*place.control()?).await })?)
}
