//! `kgfleet task new`.

use std::path::{Path, PathBuf};

use anyhow::Context;
use packs::task_files::skeleton;

use crate::kit::exit_code::{Exit, ExitCode, usage};
use crate::kit::output::note;
use crate::kit::whole_file;

/// Longest graph that is read, in bytes.
const GRAPH_BYTES_MAX: u64 = 64 << 20;

/// Write a task file that runs as it is, to be changed: with comments, a canary, and cases to replace.
///
/// Exit codes: 0 written; 2 the graph cannot be used, or the file is there already; 3 it cannot be written.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// `text-to-sparql`, with a graph of your own, or `answer-word`.
    #[arg(default_value = "text-to-sparql")]
    preset: String,
    /// The graph that is asked about, in the folder of the new file or below.
    #[arg(long, value_name = "FILE")]
    graph: Option<PathBuf>,
    /// Name of the pack.
    #[arg(long, value_name = "NAME", default_value = "my-tasks")]
    name: String,
    /// The file to write. Default: the name with the ending `.toml`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if arguments.name.is_empty() || !arguments.name.chars().all(good) {
        return Err(usage!("--name: `{}` may have letters, digits and `-_`", arguments.name));
    }
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("{}.toml", arguments.name)));
    let canary = format!("kgfleet-canary-{}", domain::RecordId::random());
    let text = match (arguments.preset.as_str(), &arguments.graph) {
        ("text-to-sparql", Some(graph)) => {
            let document = service_kit::named_files::read_text(graph, GRAPH_BYTES_MAX)
                .with_context(|| graph.display().to_string())
                .map_err(Exit::usage)?;
            let path = beside(graph, &out)?;
            skeleton::text_to_sparql(&arguments.name, &path, &document, &canary)
        }
        ("text-to-sparql", None) => return Err(usage!("--graph names the graph that is asked about")),
        ("answer-word", None) => skeleton::answer_word(&arguments.name, &canary),
        ("answer-word", Some(_)) => return Err(usage!("--graph is for `text-to-sparql`")),
        (other, _) => {
            return Err(usage!(
                "no file can be written for `{other}`; there are: text-to-sparql, answer-word"
            ));
        }
    };
    let text = text.map_err(|message| usage!("{message}"))?;
    whole_file::write_new(&out, &text)?;
    note!("{} is written; try: kgfleet task check {}", out.display(), out.display());
    Ok(ExitCode::Success)
}

/// The path of a graph as seen from the folder of the task file.
fn beside(graph: &Path, out: &Path) -> anyhow::Result<String> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let at =
        |path: &Path| path.canonicalize().with_context(|| path.display().to_string()).map_err(Exit::usage);
    let (folder, graph) = (at(folder)?, at(graph)?);
    let below = graph.strip_prefix(&folder).ok().and_then(Path::to_str);
    below.map(str::to_owned).ok_or_else(|| {
        usage!("{} is not below the folder of the new file; --out names a file beside it", graph.display())
    })
}
