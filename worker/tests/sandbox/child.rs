//! What this program is when it is started as a child.

use std::fs::File;
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;

use packs::Pack;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tasks::{Compat, GraphLibrary, Task, TaskData};
use worker::evaluate::sandbox::child;

/// First argument of an evaluation process; the second, if any, is a name by which a test finds it.
pub const EVALUATE: &str = "evaluation-process";

/// First argument of a process that locks itself down and reports what it can still do; the second is the address of
/// a listener.
pub const PROBE: &str = "probe";

/// Bytes of memory that a probe leaves itself.
pub const PROBE_MEMORY_BYTES: u64 = 256 << 20;

/// Label of the task of [`xml_task`].
pub const XML: &str = "own-xml";

/// What a probe found: each is the error, or nothing where it succeeded.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    pub connect: Option<String>,
    pub listen: Option<String>,
    pub open: Option<String>,
    pub allocate: Option<String>,
}

/// Does a child's work if the arguments say so.
pub fn become_child() -> Option<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match (arguments.first()?.as_str(), arguments.get(1)) {
        (EVALUATE, _) => child::serve(load),
        (PROBE, Some(address)) => probe(address),
        _ => return None,
    };
    match done {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("{error}");
            Some(ExitCode::FAILURE)
        }
    }
}

/// Loads the tasks of these labels from the built-in pack, and the ones made here.
pub fn load(labels: &serde_json::Value) -> Result<Vec<Arc<Task>>, String> {
    let labels: Vec<String> = Vec::deserialize(labels).map_err(|error| error.to_string())?;
    let pack = Pack::shared_builtin().map_err(|error| error.to_string())?;
    build(&labels, &pack, &pack.graphs().map_err(|error| error.to_string())?.build())
}

/// The same tasks for the asking side, which needs no large graph.
pub fn load_to_ask(labels: &[&str]) -> Vec<Arc<Task>> {
    let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
    let pack = Pack::shared_builtin().unwrap();
    build(&labels, &pack, &pack.graphs().unwrap().build_deferred()).unwrap()
}

fn build(labels: &[String], pack: &Pack, graphs: &GraphLibrary) -> Result<Vec<Arc<Task>>, String> {
    let one = |label: &String| {
        if label == XML {
            let task = Task::build(xml_task(), graphs, Compat::default());
            return task.map(Arc::new).map_err(|error| error.to_string());
        }
        let found = pack.build_selected(graphs, |task| task.label.as_str() == label);
        let task = found.map_err(|error| error.to_string())?.pop();
        task.map(Arc::new).ok_or_else(|| format!("no task `{label}`"))
    };
    labels.iter().map(one).collect()
}

/// A document of RDF/XML to repair; the pack has none.
fn xml_task() -> TaskData {
    let document = |end: &str| {
        format!(
            "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\" xmlns:e=\"http://example.org/\">\
             <rdf:Description rdf:about=\"http://example.org/a\"><e:p>one{end}</rdf:Description></rdf:RDF>"
        )
    };
    serde_json::from_value(json!({
        "label": XML, "class": "RdfSyntaxFixList", "version": tasks::TaskClass::version_of("RdfSyntaxFixList"),
        "wording": { "first": "Mend this {{graphFormat}}: {{document}}" },
        "cases": [{ "uid": "xml-1", "data": {
            "taskUid": "xml-1", "graphFormat": "xml", "task": document("</e:q>"), "optimal": document("</e:p>"),
        }}],
    }))
    .expect("task data")
}

fn probe(address: &str) -> io::Result<()> {
    child::lock_down(PROBE_MEMORY_BYTES)?;
    let report = Report {
        connect: refusal(TcpStream::connect(address)),
        listen: refusal(TcpListener::bind("127.0.0.1:0")),
        open: refusal(File::open("/proc/self/status")),
        allocate: Vec::<u8>::new()
            .try_reserve_exact(PROBE_MEMORY_BYTES as usize)
            .err()
            .map(|error| error.to_string()),
    };
    serde_json::to_writer(io::stdout(), &report)?;
    io::stdout().flush()
}

fn refusal<T>(tried: io::Result<T>) -> Option<String> {
    tried.err().map(|error| error.to_string())
}
