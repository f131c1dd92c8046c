//! Every row of a list of things that there are is told to people, where they look for it.

use std::path::Path;

use benchmarks::kinds;
use domain::{Connector, ModelHome, PROVIDERS};
use report::analysis::scheme::{bundled, named};
use report::draw::Breadth;
use report::{Dialogues, figures, views};
use serde_json::Value;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Each of these words stands in the document as code.
fn are_told<'w>(document_name: &str, words: impl IntoIterator<Item = &'w str>) {
    let text = document(document_name);
    let mut looked_for = 0;
    for word in words {
        assert!(text.contains(&format!("`{word}`")), "docs/{document_name} does not say what `{word}` is");
        looked_for += 1;
    }
    assert!(looked_for > 0, "nothing was looked for in {document_name}");
}

#[test]
fn every_way_to_reach_a_model_is_told() {
    are_told("running.md", PROVIDERS.iter().map(|provider| provider.connector.as_str()));
}

/// The chart names the connectors of workers without a server in several lists.
#[test]
fn the_chart_takes_every_connector_that_the_network_reaches() {
    let schema = document("../helm/kgfleet/values.schema.json");
    let mut lists = Vec::new();
    enumerations(&serde_json::from_str(&schema).unwrap(), &mut lists);
    lists.retain(|list| list.contains(&Connector::Anthropic.as_str().to_owned()));
    assert!(!lists.is_empty(), "the schema has no list of connectors");
    let reached = PROVIDERS.iter().filter(|provider| provider.home != ModelHome::Process);
    let mut wanted: Vec<&str> = reached.map(|provider| provider.connector.as_str()).collect();
    wanted.sort_unstable();
    for mut list in lists {
        list.sort();
        assert_eq!(list, wanted);
    }
}

/// Every list of the words that a value may have.
fn enumerations(schema: &Value, found: &mut Vec<Vec<String>>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Array(words)) = fields.get("enum") {
                found.push(words.iter().filter_map(Value::as_str).map(str::to_owned).collect());
            }
            fields.values().for_each(|value| enumerations(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| enumerations(value, found)),
        _ => {}
    }
}

#[test]
fn every_kind_is_told_with_its_judges() {
    let text = document("stages.md") + &document("kghalubench.md");
    for kind in kinds::judged() {
        assert!(text.contains(kind.name), "{}", kind.name);
        for stage in kind.stages() {
            assert!(text.contains(&format!("`{}`", stage.judge)), "{}: judge `{}`", kind.name, stage.judge);
        }
        for setting in kind.settings() {
            assert!(text.contains(setting.name), "{}: setting `{}`", kind.name, setting.name);
        }
    }
}

/// The reference is printed from the command line, so what stands there can be given.
#[test]
fn every_table_and_every_file_beside_it_can_be_asked_for() {
    let shows = kinds::shows().into_iter().map(|(_, show)| show.name);
    are_told("reference/cli.md", views::ALL.into_iter().map(|view| view.name).chain(shows));
    let reference = document("reference/cli.md");
    for input in kinds::inputs() {
        assert!(reference.contains(&format!("`--{} <FILE>`", input.name)), "--{}", input.name);
    }
}

#[test]
fn every_plot_is_told() {
    let (scheme, none) = (named(&bundled(), "semantic").unwrap(), Dialogues::default());
    let drawn = figures::ALL.iter().flat_map(|plot| (plot.draw)(&none, &scheme, Breadth::Wide));
    let files: Vec<String> = drawn.map(|plot| format!("{}.svg", plot.file)).collect();
    // What would show nothing of no dialogues is left out.
    are_told(
        "analysis.md",
        files.iter().map(String::as_str).chain(["task_LABEL.svg", "compasses.svg", "sizes.svg"]),
    );
}

#[test]
fn every_figure_of_a_kind_is_told() {
    let figures = kinds::shown().filter_map(|kind| kind.showing).flat_map(|showing| showing.figures);
    let files: Vec<String> = figures.map(|figure| format!("PIPELINE_{}.svg", figure.file)).collect();
    are_told("kghalubench.md", files.iter().map(String::as_str));
}
