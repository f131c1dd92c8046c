//! Whether the documentation is about this tree.

use std::fs;
use std::path::Path;

use crate::workspace::{members, root, text_files};

#[test]
fn the_code_map_lists_every_member() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for member in members() {
        let row = format!("| `{}` |", member.folder);
        assert!(text.contains(&row), "ARCHITECTURE.md has no row `{row}` in its code map");
    }
}

#[test]
fn links_lead_somewhere() {
    let root = root();
    let mut links = 0;
    for (path, text) in text_files() {
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let folder = root.join(&path).parent().unwrap().to_owned();
        for target in targets(&text) {
            links += 1;
            let file = target.split('#').next().unwrap_or_default();
            let there = file.is_empty() || folder.join(Path::new(file)).exists();
            assert!(there, "{}: the link to {target} leads nowhere", path.display());
        }
    }
    assert!(links > 20, "links are found");
}

#[test]
fn the_architecture_names_files_and_tests_that_are_there() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let files = text_files();
    let is_file = |name: &str| files.iter().any(|(path, _)| path.ends_with(name));
    let is_test = |name: &str| {
        let declared = format!("fn {name}(");
        let module = format!("mod {name};");
        files.iter().any(|(_, text)| text.contains(&declared) || text.contains(&module))
    };
    let (mut found_files, mut found_tests) = (0, 0);
    // Every other part of a text cut at backticks stood between two of them.
    for name in text.split('`').skip(1).step_by(2) {
        let words = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if name.ends_with(".rs") {
            found_files += 1;
            assert!(is_file(name), "ARCHITECTURE.md names the file `{name}`, which is not there");
        } else if words && name.matches('_').count() >= 3 {
            found_tests += 1;
            assert!(is_test(name), "ARCHITECTURE.md names the test `{name}`, which is not there");
        }
    }
    assert!(found_files > 30 && found_tests > 10, "{found_files} files and {found_tests} tests are named");
}

/// The targets of a page's links within the repository.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let all = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    all.filter(|target| {
        !target.contains("://") && !target.starts_with("mailto:") && !target.contains([' ', '\n'])
    })
}
