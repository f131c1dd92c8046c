//! Every row of a list of things that there are is told to people, where they look for it.

use std::path::Path;

use benchmarks::kinds;
use domain::PROVIDERS;
use report::analysis::scheme::{bundled, named};
use report::{Dialogues, figures, views};

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
    let drawn = figures::ALL.iter().flat_map(|plot| (plot.draw)(&none, &scheme));
    let files: Vec<String> = drawn.map(|plot| format!("{}.svg", plot.file)).collect();
    // One for each task is none of no tasks.
    are_told("analysis.md", files.iter().map(String::as_str).chain(["task_LABEL.svg"]));
}

#[test]
fn every_figure_of_a_kind_is_told() {
    let figures = kinds::shown().filter_map(|kind| kind.showing).flat_map(|showing| showing.figures);
    let files: Vec<String> = figures.map(|figure| format!("PIPELINE_{}.svg", figure.file)).collect();
    are_told("kghalubench.md", files.iter().map(String::as_str));
}
