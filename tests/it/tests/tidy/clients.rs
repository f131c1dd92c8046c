//! Who speaks HTTP to others: one file makes all clients, so that none follows redirects or asks for metadata of a cloud.

use std::fs;

use crate::workspace::{members, root, text_files};

/// The file that makes them.
const MAKER: &str = "shared/models/src/client.rs";

/// What makes a client of reqwest, or lets one follow redirects.
const MAKING: [&str; 5] =
    ["Client::new(", "Client::builder(", "ClientBuilder", "reqwest::get(", "Policy::limited("];

/// Libraries that HTTP clients are made of.
const CLIENTS: [&str; 8] = ["reqwest", "hyper", "hyper-util", "ureq", "curl", "isahc", "attohttpc", "awc"];

/// Libraries of others that are built on them, each with the reason why that is well.
const OTHERS: [(&str, &str); 6] = [
    ("reqwest", "what the one client is made of"),
    ("hyper-rustls", "a part of reqwest"),
    ("hyper-util", "a part of reqwest, tonic and axum"),
    ("hyper-timeout", "a part of tonic"),
    ("axum", "a server"),
    ("tonic", "calls the coordinator that was configured; it knows no redirects"),
];

/// Whether a text names this, and not as the end of a longer word.
fn names(text: &str, what: &str) -> bool {
    let in_a_word = |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    text.match_indices(what).any(|(at, _)| !in_a_word(&text[..at]))
}

#[test]
fn one_file_makes_all_http_clients() {
    let mut seen = false;
    for (path, text) in text_files() {
        let place = path.to_str().unwrap();
        // Tests and benchmarks ask what they have started themselves.
        let is_code = place.ends_with(".rs") && place.contains("/src/") && !place.starts_with("tests/");
        if !is_code || !text.contains("reqwest") {
            continue;
        }
        let made = MAKING.iter().find(|what| names(&text, what));
        if place == MAKER {
            seen = made.is_some();
        } else {
            assert_eq!(made, None, "{place}: clients are made by {MAKER}");
        }
    }
    assert!(seen, "{MAKER} makes clients");
}

#[test]
fn libraries_with_clients_of_their_own_are_known() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let members = members();
    let mut found = Vec::new();
    for package in lock.split("[[package]]").skip(1) {
        let words =
            |line: &str| line.split('"').nth(1).map(|text| text.split(' ').next().unwrap().to_owned());
        let name = package.lines().find(|line| line.starts_with("name = ")).and_then(words).unwrap();
        let mut needed = package.lines().filter(|line| line.starts_with(" \"")).filter_map(words);
        let is_ours = members.iter().any(|member| member.name == name);
        if !is_ours && needed.any(|needed| CLIENTS.contains(&needed.as_str())) && !found.contains(&name) {
            found.push(name);
        }
    }
    let mut known: Vec<&str> = OTHERS.iter().map(|(name, _)| *name).collect();
    known.sort_unstable();
    found.sort();
    assert_eq!(
        found, known,
        "a library with clients of its own is added to the list with the reason, or not used"
    );
}
