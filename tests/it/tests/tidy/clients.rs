//! Who speaks HTTP to others: two files make all clients, so that none follows redirects or asks for metadata of a cloud.

use crate::workspace::text_files;

/// The files that make them: for whatever a configuration names, and for the coordinators that a user names.
const MAKERS: [&str; 2] = ["shared/models/src/client.rs", "proto/src/client/api.rs"];

/// What makes a client of reqwest, or lets one follow redirects.
const MAKING: [&str; 5] =
    ["Client::new(", "Client::builder(", "ClientBuilder", "reqwest::get(", "Policy::limited("];

/// Whether a text names this, and not as the end of a longer word.
fn names(text: &str, what: &str) -> bool {
    let in_a_word = |before: &str| before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    text.match_indices(what).any(|(at, _)| !in_a_word(&text[..at]))
}

#[test]
fn two_files_make_all_http_clients() {
    let mut seen = 0;
    for (path, text) in text_files() {
        let place = path.to_str().unwrap();
        // Tests and benchmarks ask what they have started themselves.
        let is_code = place.ends_with(".rs") && place.contains("/src/") && !place.starts_with("tests/");
        if !is_code || !text.contains("reqwest") {
            continue;
        }
        let made = MAKING.iter().find(|what| names(&text, what));
        if MAKERS.contains(&place) {
            seen += usize::from(made.is_some());
        } else {
            assert_eq!(made, None, "{place}: clients are made by {MAKERS:?}");
        }
    }
    assert_eq!(seen, MAKERS.len(), "{MAKERS:?} make clients");
}
