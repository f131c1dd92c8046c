//! Kinds of judged benchmarks and lists of things are kept in one place each.

use std::collections::BTreeSet;
use std::fs;

use crate::exceptions::Found;
use crate::source::sources;
use crate::workspace::root;

/// Where the kinds are.
const KINDS: &str = "shared/benchmarks/src/kinds";

/// Other words for kinds.
const ALIASES: [&str; 2] = ["halu", "hallucination"];

/// Where words of kinds belong: the kinds, their command and its line in the list of verbs, what is bundled.
const HOMES: [&str; 4] = [KINDS, "cli/src/verbs/kghalubench/", "cli/src/verbs/mod.rs", "shared/packs/src/"];

/// Questions whether something is a run or a judged benchmark.
const FORKS: [&str; 5] =
    ["Benchmark::Judged(", "RunName::read(", "expect_judged(", "find_judged(", "judging.is_some()"];

/// Where such questions are answered (docs/adr/0010-one-house.md): names say which benchmark a run belongs to, the coordinator's
/// `benchmarks` find what a name means, and of what they found a view is made one way or the other.
const FORKS_HOMES: [&str; 3] =
    ["shared/benchmarks/src/names.rs", "coordinator/src/benchmarks/", "coordinator/src/views/now.rs"];

/// Folders whose files are each on a list: the folder, the file with the list, and the line's mark, in which `{}` is the name
/// of the file and `{C}` the same as a type would have it.
const REGISTRIES: [(&str, &str, &str); 5] = [
    ("cli/src/verbs", "cli/src/verbs/mod.rs", "= {};"),
    (KINDS, "shared/benchmarks/src/kinds/mod.rs", "&{}::KIND"),
    ("shared/models/src/*/", "worker/src/connect.rs", "Connector::{C}"),
    ("shared/report/src/views", "shared/report/src/views/mod.rs", "&{}::"),
    ("shared/report/src/figures", "shared/report/src/figures/mod.rs", "&{}::"),
];

/// The names of the kinds, and other words for them.
fn words() -> BTreeSet<String> {
    let mut words: BTreeSet<String> = ALIASES.map(str::to_owned).into();
    for source in sources().iter().filter(|source| source.path.starts_with(KINDS)) {
        let Some((_, kind)) = source.words.split_once("KIND: Kind") else { continue };
        if kind.contains("judging: None") {
            continue;
        }
        let name = kind.split("name: \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        words.insert(name.to_owned());
        words.insert(name.replace('-', "_"));
    }
    assert!(words.len() >= 7, "the kinds are found: {words:?}");
    words
}

#[test]
fn kinds_are_named_at_home() {
    let words = words();
    let mut found = Found::default();
    for source in sources() {
        if HOMES.iter().any(|home| source.path.starts_with(home)) {
            continue;
        }
        for (number, line) in source.words.lines().enumerate() {
            let line = line.to_lowercase();
            if words.iter().any(|word| line.contains(word.as_str())) {
                found.add(source.path.as_str(), format!("{}:{}", source.path, number + 1));
            }
        }
    }
    found.check(
        "kinds_are_named_at_home",
        "it names a kind of judged benchmark: what differs between kinds is data of the kind, in its folder",
    );
}

#[test]
fn whoever_distinguishes_connectors_names_them_all() {
    // So the compiler lists the places to look at for one more.
    let (mut found, mut matches) = (Vec::new(), 0);
    for source in sources() {
        let mut open: Option<String> = None;
        for (number, line) in source.code.lines().enumerate() {
            let indent = &line[..line.len() - line.trim_start().len()];
            let head = line.split_once("match ").filter(|_| line.ends_with('{'));
            if head.is_some_and(|(_, of)| of.to_lowercase().contains("connector")) {
                matches += 1;
                open = Some(indent.to_owned());
            } else if let Some(of) = &open {
                let arm = line.strip_prefix(of.as_str()).and_then(|rest| rest.strip_prefix("    "));
                if arm.is_some_and(|arm| arm.starts_with("_ ")) {
                    found.push(format!("{}:{}", source.path, number + 1));
                }
                if indent == of && line.trim_start().starts_with('}') {
                    open = None;
                }
            }
        }
    }
    assert!(matches >= 3, "places that distinguish connectors are found: {matches}");
    assert!(found.is_empty(), "name every connector instead of `_`: {found:?}");
}

#[test]
fn benchmarks_have_no_forks() {
    let mut found = Found::default();
    for source in sources() {
        if FORKS_HOMES.iter().any(|home| source.path.starts_with(home)) {
            continue;
        }
        let forks = FORKS.iter().flat_map(|fork| source.code.match_indices(fork));
        let mut asked: Vec<usize> = forks
            .filter(|(at, _)| !source.code[..*at].ends_with("fn "))
            .map(|(at, _)| source.line(at))
            .collect();
        asked.sort_unstable();
        if let Some(first) = asked.first() {
            let place = format!("{}:{first}", source.path);
            found.add(format!("{} {}", source.path, asked.len()), place);
        }
    }
    found.check(
        "benchmarks_have_no_forks",
        "it asks so often whether something is a run or a judged benchmark: call what knows both",
    );
}

#[test]
fn every_family_of_tasks_is_registered() {
    let sources = sources();
    let families = "shared/tasks/src/families/";
    let registry = sources.iter().find(|source| source.path == format!("{families}mod.rs")).unwrap();
    let mut known = 0;
    for source in &sources {
        let Some(family) = source.path.strip_prefix(families).and_then(|path| path.strip_suffix("/mod.rs"))
        else {
            continue;
        };
        if ["CLASS: ClassSpec", "CLASSES: ["].iter().any(|declared| source.code.contains(declared)) {
            let named = registry.code.contains(&format!("{family}::CLASS"));
            assert!(named, "{}: its classes have no line in FAMILIES, so nothing reaches them", source.path);
            known += 1;
        }
    }
    assert!(known > 10, "families are found");
}

/// The name of a file as a type would have it.
fn as_type(name: &str) -> String {
    let word = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(word).collect()
}

#[test]
fn registries_are_complete() {
    let sources = sources();
    let mut found = Found::default();
    for (folder, list, mark) in REGISTRIES {
        let (folder, only_folders) = match folder.strip_suffix("/*/") {
            Some(folder) => (folder, true),
            None => (folder, false),
        };
        let registered = &sources.iter().find(|source| source.path == list).unwrap().code;
        let mut known = 0;
        for entry in fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap()) {
            let name = entry.file_name().into_string().unwrap();
            let stem = name.trim_end_matches(".rs");
            let is_folder = entry.file_type().unwrap().is_dir();
            if stem == "mod" || (only_folders && !is_folder) {
                continue;
            }
            let mark = mark.replace("{}", stem).replace("{C}", &as_type(stem));
            if registered.contains(&mark) {
                known += 1;
            } else {
                found.add(format!("{folder}/{name} {list}"), format!("{folder}/{name}:1"));
            }
        }
        assert!(known > 0, "{list} has a list of what is in {folder}");
    }
    found.check("registries_are_complete", "it is not on the list of its kind, so nothing reaches it");
}
