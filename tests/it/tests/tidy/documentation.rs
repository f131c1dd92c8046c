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

/// The targets of a page's links within the repository.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let all = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    all.filter(|target| {
        !target.contains("://") && !target.starts_with("mailto:") && !target.contains([' ', '\n'])
    })
}
