//! Whether the things that documents name exist: files, tests, commands, options, environment variables, failure causes,
//! dependencies.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use domain::FailureCause;

use crate::workspace::{members, root, text_files};

/// Top-level folders: a name in backticks that begins with one of them is a path.
const FOLDERS: [&str; 15] = [
    ".ci/",
    "cli/",
    "conductor/",
    "coordinator/",
    "deploy/",
    "docs/",
    "fuzz/",
    "helm/",
    "page/",
    "proto/",
    "shared/",
    "task-data/",
    "tests/",
    "third_party/",
    "worker/",
];

fn is_page(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "md")
}

/// The code of a page: what stands between backticks, and the lines of fenced blocks.
fn code(page: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            found.push(line);
        } else {
            // Every other part of a line cut at backticks stood between two of them.
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

#[test]
fn documents_name_files_and_tests_that_exist() {
    let files = text_files();
    let is_file = |name: &str| files.iter().any(|(path, _)| path.ends_with(name));
    let is_test = |name: &str| {
        let declared = format!("fn {name}(");
        let module = format!("mod {name};");
        // Tests whose cases are rows of data.
        let rows = ["rule", "about"].map(|key| format!("\"{key}\": \"{name}\""));
        let is_in = |text: &String| {
            text.contains(&declared) || text.contains(&module) || rows.iter().any(|row| text.contains(row))
        };
        files.iter().any(|(_, text)| is_in(text))
    };
    let (mut found_files, mut found_tests) = (0, 0);
    for (page, text) in files.iter().filter(|(path, _)| is_page(path)) {
        for name in code(text) {
            let words = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            let is_path = FOLDERS.iter().any(|folder| name.starts_with(folder))
                && !name.contains([' ', '*', '<', '…'])
                && !name.starts_with("docs/reference");
            if is_path {
                found_files += 1;
                // Either from the root, or from the folder of the member that the text is about.
                let within =
                    |(path, _): &(PathBuf, String)| path.to_str().unwrap().contains(&format!("/{name}"));
                let exists = root().join(name).exists() || files.iter().any(within);
                assert!(exists, "{}: `{name}` does not exist", page.display());
            } else if name.ends_with(".rs") && !name.contains([' ', '<']) {
                found_files += 1;
                assert!(is_file(name), "{}: no file `{name}`", page.display());
            } else if words
                && name.matches('_').count() >= 3
                && !name.starts_with("kgfleet_")
                && !name.starts_with("process_")
            {
                found_tests += 1;
                assert!(is_test(name), "{}: no test `{name}`", page.display());
            }
        }
    }
    assert!(found_files > 60 && found_tests > 20, "{found_files} files and {found_tests} tests are named");
}

#[test]
fn documents_name_commands_and_options_that_exist() {
    let options = options_by_command();
    let mut found = 0;
    for (page, text) in text_files().iter().filter(|(path, _)| is_page(path)) {
        if page.starts_with("docs/reference") {
            continue;
        }
        for line in code(text) {
            for call in line.split("kgfleet ").skip(1) {
                // A comment, a pipe or the next command ends it.
                let call = call.split(['#', '|', ';', ')']).next().unwrap_or_default();
                // What follows is the command of another program.
                let call = call.split(" -- ").next().unwrap_or_default();
                let mut words = call.split_whitespace();
                let Some(verb) = words.next().filter(|word| word.chars().all(|c| c.is_ascii_lowercase()))
                else {
                    continue;
                };
                let known = options.get(verb);
                let known =
                    known.unwrap_or_else(|| panic!("{}: no command `kgfleet {verb}`", page.display()));
                for option in words.filter_map(option) {
                    assert!(known.contains(option), "{}: `kgfleet {verb}` has no {option}", page.display());
                }
                found += 1;
            }
        }
    }
    assert!(found > 50, "{found} commands are named");
}

/// The options of every command, those of its subcommands included, from the generated reference.
fn options_by_command() -> BTreeMap<String, BTreeSet<String>> {
    let reference = fs::read_to_string(root().join("docs/reference/cli.md")).unwrap();
    let mut commands: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for section in reference.split("\n## kgfleet ").skip(1) {
        let verb = section.split_whitespace().next().unwrap().to_owned();
        let rows = section.lines().filter_map(|line| option(line.strip_prefix("| `")?));
        commands.insert(verb, rows.map(str::to_owned).collect());
    }
    assert!(commands.len() > 20, "the reference has a section for each command");
    // Every verb that acts in a fleet takes the credentials for it, and few show them.
    for options in commands.values_mut().filter(|options| options.contains("--fleet")) {
        options.extend(["--token-file", "--ca", "--insecure-token"].map(str::to_owned));
    }
    commands
}

/// The option at the beginning of a word, without value and brackets.
fn option(word: &str) -> Option<&str> {
    let word = word.trim_start_matches('[');
    let end = word.find(|c: char| !c.is_ascii_lowercase() && c != '-').unwrap_or(word.len());
    (word.starts_with("--") && end > 2).then_some(&word[..end])
}

#[test]
fn documents_name_variables_and_metrics_that_exist() {
    let files = text_files();
    let source: String =
        files.iter().filter(|(path, _)| !is_page(path)).map(|(_, text)| text.as_str()).collect();
    let mut found = 0;
    for (page, text) in files.iter().filter(|(path, _)| is_page(path)) {
        for prefix in ["KGFLEET_", "kgfleet_"] {
            for (at, _) in text.match_indices(prefix) {
                let rest = &text[at..];
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
                found += 1;
                assert!(source.contains(&rest[..end]), "{}: {} is unknown", page.display(), &rest[..end]);
            }
        }
    }
    assert!(found > 40, "{found} variables and metrics are named");
}

#[test]
fn every_failure_cause_has_a_row_and_no_row_is_stale() {
    let page = fs::read_to_string(root().join("docs/errors-and-logging.md")).unwrap();
    let table = page.split("## Causes").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows: BTreeSet<&str> =
        table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(rows, FailureCause::ALL.map(FailureCause::as_str).into());
}

#[test]
fn every_command_has_documented_exit_codes() {
    let page = fs::read_to_string(root().join("docs/exit-codes.md")).unwrap();
    let table = page.split("| command |").nth(1).unwrap();
    let named: BTreeSet<&str> = code(table).into_iter().filter_map(|name| name.split(' ').next()).collect();
    for verb in options_by_command().keys() {
        assert!(named.contains(verb.as_str()), "docs/exit-codes.md has no row for `{verb}`");
    }
}

#[test]
fn the_architecture_lists_the_dependencies_of_every_member() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let block = text.split("## Dependency order").nth(1).unwrap().split("```").nth(1).unwrap();
    let list =
        |line: &str| line.split([',', ' ']).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let rows: BTreeMap<String, BTreeSet<String>> = block
        .lines()
        .filter_map(|line| line.trim().split_once(' '))
        .filter(|(name, _)| *name != "text")
        .map(|(name, rest)| (name.to_owned(), list(rest)))
        .collect();
    let members = members();
    let names: BTreeSet<&str> = members.iter().map(|member| member.name.as_str()).collect();
    for member in &members {
        let own = rows.get(&member.name);
        let own = own
            .unwrap_or_else(|| panic!("ARCHITECTURE.md does not list the dependencies of {}", member.name));
        let used = member.dependencies_of_code.iter();
        let used: BTreeSet<String> = used.filter(|name| names.contains(name.as_str())).cloned().collect();
        let listed = own.iter().filter(|name| *name != "-").cloned().collect();
        assert_eq!(used, listed, "what {} uses, and what ARCHITECTURE.md lists", member.name);
    }
}
