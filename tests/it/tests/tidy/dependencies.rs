//! What members may depend on. That they form no circle is cargo's to see, and `ARCHITECTURE.md` lists them ([`claims`](crate::claims)).

use crate::workspace::members;

/// Crates that one member wraps for all others, so that they could be replaced there.
const WRAPPED: [(&str, &[&str]); 3] = [
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
    ("proto", &["prost", "prost-types", "tonic", "tonic-prost"]),
    ("queue", &["redis", "deadpool-redis"]),
];

/// The feature by which a member lends tests what production must not have.
const SUPPORT: &str = "test-support";

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
