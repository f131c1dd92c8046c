//! Whether the documentation is about this tree.

use std::fs;
use std::path::Path;

use crate::workspace::{Member, members, root, text_files};

/// The members whose folders the code map names one by one.
const MAPPED: [&str; 4] = ["cli", "coordinator", "page", "shared/report"];

#[test]
fn the_map_is_true() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for Member { folder, .. } in members() {
        let head = format!("| `{folder}` |");
        let row = text.lines().find(|line| line.starts_with(&head));
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row `{head}` in its code map"));
        let named: Vec<&str> =
            row.split('`').skip(1).step_by(2).filter(|name| name.starts_with("src/")).collect();
        for name in &named {
            assert!(root().join(&folder).join(name).exists(), "ARCHITECTURE.md: {folder} has no `{name}`");
        }
        if MAPPED.contains(&folder.as_str()) {
            for entry in fs::read_dir(root().join(&folder).join("src")).unwrap().map(|entry| entry.unwrap()) {
                let below = format!("src/{}/", entry.file_name().to_string_lossy());
                let is_told = named.iter().any(|name| name.starts_with(&below));
                let is_code = entry.file_type().unwrap().is_dir() && below != "src/assets/";
                let is_shown = is_code && below != "src/tests/";
                assert!(is_told || !is_shown, "ARCHITECTURE.md does not say what {folder}/{below} is for");
            }
        }
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
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let page = if file.is_empty() { root.join(&path) } else { folder.join(Path::new(file)) };
            assert!(page.exists(), "{}: the link to {target} leads nowhere", path.display());
            if !anchor.is_empty() {
                let linked = fs::read_to_string(&page).unwrap();
                let there = linked.lines().any(|line| line.starts_with('#') && slug(line) == anchor);
                assert!(there, "{}: the link to {target} leads to no heading", path.display());
            }
        }
    }
    assert!(links > 20, "links are found");
}

#[test]
fn every_document_is_in_the_index() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    let pages = text_files().into_iter().filter_map(|(path, _)| {
        let page = path.strip_prefix("docs").ok()?.to_str()?.to_owned();
        (page.ends_with(".md") && page != "README.md" && page != "adr/0000-template.md").then_some(page)
    });
    for page in pages {
        assert!(index.contains(&format!("]({page})")), "docs/README.md does not list {page}");
    }
}

/// The targets of a page's links within the repository.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    let all = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    all.filter(|target| {
        !target.contains("://") && !target.starts_with("mailto:") && !target.contains([' ', '\n'])
    })
}

/// The anchor that GitHub gives a heading.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
