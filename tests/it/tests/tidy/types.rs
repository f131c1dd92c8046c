//! Where types are defined and implemented, and how they and limits are named.

use std::collections::{BTreeMap, BTreeSet};

use crate::exceptions::Found;
use crate::source::sources;

/// Names that every module may give to a type of its own.
const MAY_REPEAT: [&str; 4] = ["Arguments", "Error", "Options", "Result"];

/// The type that lets callers into a coordinator, and its folder.
const ACCESS: (&str, &str) = ("Access", "coordinator/src/access/");

/// The members in which an interface of a coordinator is implemented for callers elsewhere and for tests.
const CLIENTS: [&str; 2] = ["proto", "tests/harness"];

#[test]
fn types_are_implemented_at_home() {
    let sources = sources();
    let mut homes = BTreeMap::<(&str, String), Vec<(String, String)>>::new();
    for source in &sources {
        for found in source.types(false) {
            let home = (source.path.clone(), format!("{}/", source.home()));
            homes.entry((&source.member, found.name)).or_default().push(home);
        }
    }
    let mut found = Found::default();
    for source in &sources {
        for implemented in source.implements() {
            let homes = homes.get(&(source.member.as_str(), implemented.name.clone()));
            let is_home = |(file, folder): &(String, String)| {
                *file == source.path || source.path.starts_with(folder.as_str())
            };
            if !homes.is_some_and(|homes| homes.iter().any(is_home)) {
                let place = format!("{}:{}", source.path, implemented.line);
                found.add(format!("{} impl {}", source.path, implemented.name), place);
            }
        }
    }
    found.check(
        "types_are_implemented_at_home",
        "implement a type in its own file or below its folder; elsewhere use a function, or a type of your own",
    );
}

#[test]
fn type_names_are_unique() {
    let sources = sources();
    let mut places = BTreeMap::<String, BTreeSet<String>>::new();
    for source in &sources {
        for named in source.types(true) {
            places.entry(named.name).or_default().insert(format!("{}:{}", source.path, named.line));
        }
    }
    let mut found = Found::default();
    for (name, places) in places.iter().filter(|(name, _)| !MAY_REPEAT.contains(&name.as_str())) {
        if places.len() > 1 {
            let all = places.iter().cloned().collect::<Vec<_>>().join(", ");
            found.add(format!("{name} {}", places.len()), all);
        }
    }
    found.check(
        "type_names_are_unique",
        "a name that other files see means one type: say whose it is, or of what",
    );
}

#[test]
fn only_access_is_control() {
    let (mut found, mut lets_in) = (Found::default(), 0);
    for source in sources().iter().filter(|source| !CLIENTS.contains(&source.member.as_str())) {
        for interface in ["Control", "WorkExchange"] {
            for implemented in source.implements_trait(interface) {
                if implemented.name == ACCESS.0 && source.path.starts_with(ACCESS.1) {
                    lets_in += 1;
                    continue;
                }
                let place = format!("{}:{}", source.path, implemented.line);
                found.add(format!("{} {interface} for {}", source.path, implemented.name), place);
            }
        }
    }
    assert_eq!(lets_in, 2, "each interface is implemented once");
    found.check(
        "only_access_is_control",
        "one type lets callers in, so that no check is passed by; use it instead of another implementation",
    );
}

#[test]
fn limits_end_in_max() {
    let mut found = Found::default();
    let mut right = 0;
    for source in sources() {
        for (number, line) in source.code.lines().enumerate() {
            let Some((_, rest)) = line.split_once("const ") else { continue };
            let name = rest.split(':').next().unwrap_or_default().trim();
            let words: Vec<&str> = name.split('_').collect();
            if words.last() == Some(&"MAX") {
                right += 1;
            } else if words.contains(&"MAX") {
                found.add(format!("{} {name}", source.path), format!("{}:{}", source.path, number + 1));
            }
        }
    }
    assert!(right > 100, "limits are found");
    found.check("limits_end_in_max", "the name of a limit ends in `_MAX`");
}
