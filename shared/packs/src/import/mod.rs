//! Import: creates a pack from published LLM-KG-Bench result files, so that a new model can be asked exactly the
//! published exercises and compared with the published models.
//!
//! Result files contain everything that a dialogue needs, though not in that form: the case beside every record, the
//! first prompt as sent, and follow-ups with the parser's message and the model's query already filled in. The import
//! reads them twice:
//!
//! 1. [`cases`] gathers the tasks with their cases and first prompts, and keeps samples of the follow-ups, from which
//!    [`follow_ups`] learns templates ([`own_wording`] has our own for kinds that were never sent);
//! 2. [`check`] compares every record with the result: the cases must come in turn, and the templates must reproduce
//!    the recorded follow-ups.
//!
//! Differences are [`ImportFinding`]s that name file and record. Findings never quote the texts of an exercise: imported
//! packs are protected.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use rdf::RdfFormat;
use results::llmkgbench::{Document, ResultRecord, discover};
use tasks::graphs::GraphLibraryBuilder;
use tasks::{Compat, EvaluationLimits, GraphLibrary, Task, TaskData};

use crate::error::PackError;
use crate::header::{GraphSource, GraphSpec, Group, Header};
use crate::parts::Parts;

mod cases;
mod check;
mod follow_ups;
mod own_wording;
mod provenance;
mod report;

pub use report::{
    FileLine, Findings, FollowUpLine, ImportFinding, ImportReport, Problem, TaskReport, TemplateOrigin,
};

use cases::Collector;

/// Name of the one group of an imported pack.
const GROUP: &str = "imported";

/// What to import.
#[derive(Clone, Debug)]
pub struct ImportSource<'s> {
    /// Name of the pack.
    pub name: &'s str,
    /// Result files, folders or zip archives, as in [`discover`]. Prompts of the first file are used.
    pub paths: &'s [PathBuf],
    /// Password of encrypted archives.
    pub password: Option<&'s str>,
    /// Graphs that cases refer to by name.
    pub graphs: &'s [GraphDocument],
}

/// A graph that cases refer to and that result files lack.
#[derive(Clone, Debug)]
pub struct GraphDocument {
    /// The name that cases use.
    pub name: String,
    /// Name of its file, for the pack's provenance.
    pub file: String,
    /// Its syntax.
    pub format: RdfFormat,
    /// The document.
    pub content: Arc<[u8]>,
}

/// An imported pack, ready to be sealed.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The pack as files.
    pub parts: Parts,
    pub report: ImportReport,
}

/// Why nothing can be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// No record could be used; the findings say why.
    #[error("no task could be imported{}", .0.first().map(|finding| format!(": {finding}")).unwrap_or_default())]
    Nothing(Box<Findings>),
    /// The tasks are not a valid pack, for example because a label is not a valid file name.
    #[error(transparent)]
    Pack(#[from] PackError),
}

/// Creates a pack from result files. Equal files give equal packs with equal hashes.
///
/// # Errors
/// Nothing could be imported. Files, records and tasks that cannot be used are findings, the rest is imported.
pub fn import(source: &ImportSource<'_>) -> Result<Imported, ImportError> {
    let mut findings = Findings::default();
    let mut documents = Vec::new();
    for found in discover(source.paths, source.password) {
        match found {
            Ok(document) => documents.push(document),
            Err(error) => {
                findings.file(&error.file, Problem::Unreadable { message: error.problem.to_string() });
            }
        }
    }
    let mut collector = Collector::default();
    read(&documents, &mut findings, |record, findings| {
        for problem in collector.add(record.record) {
            findings.record(&record, problem);
        }
    });
    let graphs = library(GraphLibrary::builder(), source.graphs);
    collector.settle_wording();
    collector.keep(|data| match Task::build(data.clone(), &graphs, Compat::PUBLISHED) {
        Ok(_) => true,
        Err(error) => {
            let problem =
                Problem::TaskLeftOut { message: format!("case `{}`: {}", error.case, error.source) };
            findings.task(&error.task, problem);
            false
        }
    });
    if collector.tasks().is_empty() {
        return Err(ImportError::Nothing(Box::new(findings)));
    }
    let mut checker = check::Checker::new(&collector);
    // The first pass reported what cannot be read.
    read(&documents, &mut Findings::default(), |record, _| {
        for problem in checker.check(record.record) {
            findings.record(&record, problem);
        }
    });
    let tasks = checker.finish();
    let files = provenance::files(&documents, source.graphs, &mut findings);
    let parts = lay_out(source, &collector, &files)?;
    Ok(Imported { parts, report: ImportReport { name: source.name.to_owned(), files, tasks, findings } })
}

/// A record with its position.
#[derive(Clone, Copy)]
struct Located<'r> {
    file: &'r str,
    index: usize,
    record: &'r ResultRecord,
}

/// Passes every readable record to `each`, in order. Unreadable ones are findings instead.
fn read(documents: &[Document], findings: &mut Findings, mut each: impl FnMut(Located<'_>, &mut Findings)) {
    for document in documents {
        let file = document.name();
        let outcome = document.read(|read| {
            match read {
                Ok(read) => each(Located { file: &file, index: read.index, record: &read.record }, findings),
                Err(error) => findings.unreadable_record(&file, error.index, error.problem.to_string()),
            }
            ControlFlow::Continue(())
        });
        if let Err(error) = outcome {
            findings.file(&file, Problem::Unreadable { message: error.problem.to_string() });
        }
    }
}

/// A library of these graphs and those of `builder`; these replace graphs of the same name. A graph is parsed when a case
/// first needs it.
pub fn library(mut builder: GraphLibraryBuilder, graphs: &[GraphDocument]) -> GraphLibrary {
    for graph in graphs {
        let content = graph.content.clone();
        builder = builder.with(&graph.name, graph.format, move || Ok(content.to_vec()));
    }
    builder.build()
}

fn lay_out(source: &ImportSource<'_>, collector: &Collector, files: &[FileLine]) -> Result<Parts, PackError> {
    let mut parts = Parts::new(source.name);
    let tasks: Vec<&TaskData> = collector.tasks().iter().map(|task| &task.data).collect();
    for task in &tasks {
        parts.insert_task(task)?;
    }
    let mut graphs = Vec::new();
    for graph in source.graphs {
        let file = format!("graphs/{}.{}", graph.name, extension(graph.format));
        parts.insert(&file, graph.content.clone())?;
        let stored = GraphSource::Stored { file, format: graph.format.to_string() };
        graphs.push(GraphSpec { name: graph.name.clone(), source: stored });
    }
    let cases: usize = tasks.iter().map(|task| task.cases.len()).sum();
    parts.insert_header(&Header {
        name: source.name.to_owned(),
        version: "1".to_owned(),
        // Result files do not say under which licence they are published.
        licence: "NOASSERTION".to_owned(),
        description: format!(
            "Published exercises of LLM-KG-Bench, imported from result files: {} tasks, {cases} cases.",
            tasks.len()
        ),
        provenance: provenance::sentence(files),
        canary: provenance::canary(files),
        protected: true,
        compat: Compat::PUBLISHED,
        limits: EvaluationLimits::compat(),
        groups: vec![Group {
            name: GROUP.to_owned(),
            default: true,
            tasks: tasks.iter().map(|task| task.label.clone()).collect(),
        }],
        graphs,
    })?;
    Ok(parts)
}

fn extension(format: RdfFormat) -> &'static str {
    match format {
        RdfFormat::Turtle => "ttl",
        RdfFormat::NTriples => "nt",
        RdfFormat::JsonLd => "jsonld",
        RdfFormat::RdfXml => "rdf",
    }
}
