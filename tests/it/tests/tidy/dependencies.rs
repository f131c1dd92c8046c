//! Which way dependencies point.

use crate::workspace::members;

/// The members in their order: each may use those before it and no others. Members that are planned and not there yet have
/// their place already.
const ORDER: [&str; 30] = [
    "domain",
    "present",
    "costs",
    "stats",
    "pool",
    "aside",
    "named-files",
    "proto",
    "service-kit",
    "rdf",
    "shacl",
    "tasks",
    "results",
    "packs",
    "task-files",
    "benchmarks",
    "models",
    "queue",
    "audit",
    "report",
    "vllm-sim",
    "worker",
    "coordinator",
    "conductor",
    "page",
    "cli",
    "harness",
    "integration-tests",
    "fuzz-targets",
    "simulation",
];

/// Crates that one member wraps for all others, so that they could be replaced there.
const WRAPPED: [(&str, &[&str]); 4] = [
    (
        "rdf",
        &[
            "oxigraph",
            "oxiri",
            "oxjsonld",
            "oxrdf",
            "oxrdfio",
            "oxrdfxml",
            "oxsdatatypes",
            "oxttl",
            "spareval",
            "spargebra",
            "sparopt",
            "sparesults",
        ],
    ),
    (
        "proto",
        &[
            "prost",
            "prost-build",
            "prost-types",
            "protox",
            "tonic",
            "tonic-build",
            "tonic-health",
            "tonic-prost",
            "tonic-prost-build",
            "tonic-reflection",
        ],
    ),
    ("results", &["object_store"]),
    ("queue", &["redis", "deadpool-redis"]),
];

/// The feature by which a member lends tests what production must not have.
const SUPPORT: &str = "test-support";

/// What tests of several members share.
const HARNESS: &str = "harness";

fn place(name: &str) -> Option<usize> {
    ORDER.iter().position(|member| *member == name)
}

#[test]
fn members_use_only_those_before_them() {
    for member in members() {
        let name = &member.name;
        let own = place(name).unwrap_or_else(|| panic!("{name} has no place in ORDER: give it one"));
        // Tests of every member may use the harness; its library uses most members.
        let lent = |dependency: &String| {
            dependency == name || (dependency == HARNESS && !member.dependencies_of_code.contains(dependency))
        };
        for dependency in member.dependencies.iter().filter(|dependency| !lent(dependency)) {
            if let Some(other) = place(dependency) {
                assert!(other < own, "{name} must not use {dependency}, which comes after it");
            }
        }
    }
}

#[test]
fn wrapped_crates_are_named_by_their_wrapper_only() {
    let members = members();
    for (wrapper, crates) in WRAPPED {
        for member in members.iter().filter(|member| member.name != wrapper) {
            let named = member.dependencies.iter().find(|dependency| crates.contains(&dependency.as_str()));
            assert_eq!(named, None, "{} must reach it through {wrapper}", member.name);
        }
    }
    let rdf = members.iter().find(|member| member.name == "rdf").unwrap();
    assert!(rdf.dependencies.iter().any(|dependency| dependency == "oxrdf"), "the names are those of today");
}

#[test]
fn what_breaks_promises_for_tests_is_in_no_program() {
    // Each of these features has what a test needs to see and to call what nobody else may.
    let mut known = 0;
    for member in members() {
        known += usize::from(member.features.iter().any(|feature| feature == SUPPORT));
        let of_tests = member.folder.starts_with("tests/");
        assert!(
            of_tests || !member.features_of_others.contains(&SUPPORT.to_owned()),
            "{}: the feature `{SUPPORT}` is for [dev-dependencies]",
            member.name
        );
        assert!(!member.features_by_default.contains(&SUPPORT.to_owned()), "{}", member.name);
    }
    assert!(known >= 4, "members have the feature `{SUPPORT}`");
}
