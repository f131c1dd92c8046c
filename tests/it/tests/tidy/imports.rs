//! Which way files, folders and verbs import each other within a crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::exceptions::Found;
use crate::source::{Source, sources};

/// The folders below `src`, in their order: each may import those before it. `.` is the files beside them that are not named
/// apart, but for the root of the crate, which may import all.
const FOLDERS: [(&str, &[&str]); 4] = [
    (
        "coordinator",
        &[
            "errors.rs",
            "health.rs",
            "options.rs",
            "metrics",
            "plan",
            "records",
            "queue",
            "runs",
            "benchmarks",
            "fleet",
            "views",
            "access",
            ".",
        ],
    ),
    ("cli", &["kit", "place", "configure", "files", "engine", "reevaluate", "verbs", "."]),
    ("page", &[".", "render", "cache.rs", "site.rs", "admission.rs", "stream.rs", "routes", "page.rs"]),
    (
        "shared/report",
        &[
            "words.rs",
            "names.rs",
            ".",
            "dialogues",
            "analysis",
            "view.rs",
            "plot.rs",
            "figures",
            "views",
            "tables",
            "html",
            "input",
        ],
    ),
];

/// An import of one file from another of its crate.
struct Edge<'a> {
    from: &'a Source,
    to: &'a Source,
    line: usize,
}

impl Edge<'_> {
    fn place(&self) -> String {
        format!("{}:{}", self.from.path, self.line)
    }
}

/// What the files of a crate import from each other.
fn edges<'a>(files: &[&'a Source]) -> Vec<Edge<'a>> {
    let binary = |source: &Source| source.below() == "main.rs";
    let modules: BTreeMap<Vec<String>, &Source> =
        files.iter().filter(|source| !binary(source)).map(|source| (source.module(), *source)).collect();
    let mut edges = Vec::new();
    for from in files {
        for import in from.imports() {
            let longest = (0..=import.path.len()).rev().find_map(|parts| modules.get(&import.path[..parts]));
            if let Some(to) = longest.filter(|to| to.path != from.path) {
                edges.push(Edge { from, to, line: import.line });
            }
        }
    }
    edges
}

fn by_member(sources: &[Source]) -> BTreeMap<&str, Vec<&Source>> {
    let mut members = BTreeMap::<&str, Vec<&Source>>::new();
    for source in sources {
        members.entry(&source.member).or_default().push(source);
    }
    members
}

/// What can be reached from each file, itself only by a circle.
fn reached<'a>(edges: &[Edge<'a>]) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let mut next = BTreeMap::<&str, Vec<&str>>::new();
    for edge in edges {
        next.entry(&edge.from.path).or_default().push(&edge.to.path);
    }
    let from = |start: &'a str| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
        while let Some(file) = open.pop() {
            open.extend(next.get(file).into_iter().flatten().filter(|file| seen.insert(**file)));
        }
        (start, seen)
    };
    next.keys().map(|start| from(start)).collect()
}

#[test]
fn no_import_circles() {
    let sources = sources();
    let mut found = Found::default();
    for files in by_member(&sources).into_values() {
        let edges = edges(&files);
        let reached = reached(&edges);
        let back = |edge: &&Edge<'_>| {
            reached.get(edge.to.path.as_str()).is_some_and(|files| files.contains(edge.from.path.as_str()))
        };
        for edge in edges.iter().filter(back) {
            found.add(format!("{} -> {}", edge.from.path, edge.to.path), edge.place());
        }
    }
    found.check(
        "no_import_circles",
        "this import closes a circle of files: move what both need into a file of its own",
    );
}

#[test]
fn folders_use_only_those_before_them() {
    let sources = sources();
    let mut found = Found::default();
    for (member, order) in FOLDERS {
        let files: Vec<&Source> = sources.iter().filter(|source| source.member == member).collect();
        let at = |name: &str| order.iter().position(|other| *other == name);
        let place = |source: &Source| match source.below().split_once('/') {
            _ if matches!(source.below(), "lib.rs" | "main.rs") => Some(order.len()),
            Some((folder, _)) => at(folder),
            None => at(source.below()).or_else(|| at(".")),
        };
        for file in &files {
            assert!(place(file).is_some(), "{}: its folder has no place in FOLDERS: give it one", file.path);
        }
        for edge in edges(&files).iter().filter(|edge| place(edge.to) > place(edge.from)) {
            found.add(format!("{} -> {}", edge.from.path, edge.to.path), edge.place());
        }
    }
    found.check("folders_use_only_those_before_them", "a folder imports only those before it in FOLDERS");
}

/// The verb that a source belongs to: a file, or the folder where a verb has one.
fn verb(source: &Source) -> Option<&str> {
    let verb = source.below().strip_prefix("verbs/")?.split('/').next()?;
    Some(verb.trim_end_matches(".rs")).filter(|verb| *verb != "mod")
}

#[test]
fn verbs_do_not_use_verbs() {
    let sources = sources();
    let files: Vec<&Source> = sources.iter().filter(|source| source.member == "cli").collect();
    let mut found = Found::default();
    for edge in edges(&files) {
        if let (Some(from), Some(to)) = (verb(edge.from), verb(edge.to))
            && from != to
        {
            found.add(format!("{} -> {to}", edge.from.path), edge.place());
        }
    }
    found.check("verbs_do_not_use_verbs", "what two verbs need lies outside `verbs`");
}
