//! What files look like.

use std::fs;

use crate::workspace::{members, root, text_files};

/// Lines of a Rust file at most. A longer one has more than one reason to change.
const RUST_LINES_MAX: usize = 600;

/// Texts that belong to somebody's machine and to nobody else's, in halves so that this file may hold them.
const FOREIGN: [(&str, &str); 4] = [(" /wo", "rk/"), ("`/wo", "rk/"), ("\"/wo", "rk/"), ("/ro", "ot/")];

#[test]
fn rust_files_are_short() {
    for (path, text) in text_files() {
        let lines = text.lines().count();
        // What a tool writes is read by nobody.
        let is_generated = path.iter().any(|folder| folder == "generated");
        if path.extension().is_some_and(|extension| extension == "rs") && !is_generated {
            assert!(lines <= RUST_LINES_MAX, "{} has {lines} lines", path.display());
        }
    }
}

#[test]
fn files_name_nobodys_machine() {
    for (path, text) in text_files() {
        for (number, line) in text.lines().enumerate() {
            // At the start of a line there is nothing before it.
            let line = format!(" {line}");
            for (left, right) in FOREIGN {
                let foreign = [left, right].concat();
                assert!(!line.contains(&foreign), "{}:{}: `{}`", path.display(), number + 1, foreign.trim());
            }
        }
    }
}

#[test]
fn files_point_at_nothing_beside_the_repository() {
    // Published dialogues may lie there; tests look for them and say so when they do not.
    const BESIDE: &str = "conformance";
    let up = ["../sh", "ared/"].concat();
    for (path, text) in text_files() {
        for (at, _) in text.match_indices(&up) {
            let below = &text[at + up.len()..];
            let end = below.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(below.len());
            let name = &below[..end];
            let inside = root().join("shared").join(name).is_dir() && !name.is_empty();
            assert!(inside || name == BESIDE, "{}: `{up}{name}`", path.display());
        }
    }
}

#[test]
fn every_crate_says_what_it_is() {
    for member in members() {
        for file in &member.roots {
            let text = fs::read_to_string(file).unwrap();
            assert!(text.starts_with("//! "), "{} does not begin with a doc comment", file.display());
        }
        let manifest = fs::read_to_string(root().join(&member.folder).join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{} has lints of its own", member.name);
        let published =
            ["publish = false", "publish.workspace = true"].iter().any(|line| manifest.contains(line));
        assert!(published, "{} could be published by accident", member.name);
    }
}
