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
use crate::files::judged::{self, FolderReader, KindBenchmarks, KindInputs};
use crate::kit::exit_code::{ExitCode, usage};
use crate::kit::output::{explain, say};
use crate::kit::runtime::block_on;
use crate::place::data_dir::DataDir;
use crate::place::remote::MaybeRemote;
use crate::place::{Place, completing, fetch, names};

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
    pub remote: MaybeRemote,
    #[command(flatten)]
    pub data: DataDir,
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
    /// Reads the names that are judged benchmarks, by kind; returns the other names.
    ///
    /// # Errors
    /// A benchmark cannot be read, or a file that its kind takes into account.
    pub fn judged(
        &self,
        named: &[String],
        inputs: &KindInputs,
    ) -> anyhow::Result<(Vec<KindBenchmarks>, Vec<String>)> {
        let (mut judged, mut others) = (Vec::new(), Vec::new());
        let remote = self.sources.remote.named()?;
        for name in named {
            let is_file = self.sources.is_file(name)?;
            if !is_file && !fetch::is_archive(name) && Path::new(name).exists() {
                say(&format!(
                    "{name} is a run, and a file or folder here: the run is read; ./{name} is the other one"
                ));
            }
            // What was fetched or unpacked is read before it is removed.
            let fetched = match &remote {
                _ if fetch::is_archive(name) => Some(fetch::unpacked(name)?),
                Some(remote) if !is_file => judged::fetched(remote, name)?,
                _ => None,
            };
            let reader = match (&fetched, &remote) {
                _ if is_file => None,
                (Some(fetched), _) => FolderReader::open(fetched.name.as_str(), fetched.data_dir())?,
                (None, Some(_)) => None,
                (None, None) => FolderReader::open(name, self.sources.data.path())?,
            };
            match reader {
                Some(mut reader) => KindBenchmarks::add(&mut judged, &mut reader, inputs)?,
                None => others.push(name.clone()),
            }
        }
        Ok((judged, others))
    }

    /// Reads each name, and selects. Texts go to `details`, if given.
    ///
    /// # Errors
    /// A run cannot be read, or there are no dialogues.
    pub fn read(&self, named: &[String], details: Option<&mut Details>) -> anyhow::Result<Read> {
        let Read { dialogues, problems } = self.sources.read(named, details)?;
        let dialogues = self.select(dialogues)?;
        if dialogues.is_empty() && !named.is_empty() {
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
    /// Reads each name: the run of this name; otherwise an existing file, folder or archive. Texts go to `details`, if
    /// given.
    ///
    /// # Errors
    /// A run cannot be read, or nothing could be.
    pub fn read(&self, named: &[String], mut details: Option<&mut Details>) -> anyhow::Result<Read> {
        let mut all = Dialogues::default();
        let (mut problems, mut paths) = (0, Vec::new());
        for name in named {
            if self.is_file(name)? {
                paths.push(PathBuf::from(name));
            } else {
                self.read_named(name, &mut all, details.as_deref_mut())?;
            }
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

    /// Whether a name means a file: it is written like a path, or something is there that has it and no run has it.
    fn is_file(&self, name: &str) -> anyhow::Result<bool> {
        if fetch::is_archive(name) {
            return Ok(false);
        }
        if name.contains('/') || name.ends_with(".zip") || name.ends_with(".json") {
            return Ok(true);
        }
        if !Path::new(name).exists() {
            return Ok(false);
        }
        let place = Place::of(&self.remote, &self.data)?;
        Ok(!block_on(async { names::is_known(name, &*place.control()?).await })?)
    }

    fn read_named(
        &self,
        name: &str,
        all: &mut Dialogues,
        details: Option<&mut Details>,
    ) -> anyhow::Result<()> {
        // What was fetched or unpacked is read before it is removed.
        let fetched = fetch::from_elsewhere(&self.remote, name)?;
        let (dir, manifest) = match &fetched {
            Some(fetched) => fetched.only().map(|(dir, manifest)| (dir.clone(), manifest.clone()))?,
            None => self.data.open(name)?,
        };
        ExportSource::open(dir, manifest)?.read_into(all, details)
    }
}
