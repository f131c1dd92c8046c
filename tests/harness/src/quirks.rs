//! What real servers answer where their lists of models are asked for, a row each: [`LISTS`]. What they answer to questions is in
//! `shared/models/tests/it/quirks.jsonl`.

/// The model that is asked for.
pub const MODEL: &str = "tiny";

/// What a server answers where its list of models is asked for.
pub struct ListQuirk {
    /// What is seen, and where.
    pub name: &'static str,
    pub status: u16,
    /// The type of the body.
    pub kind: &'static str,
    pub body: &'static str,
    /// Whether [`MODEL`] can be found in it.
    pub names_it: bool,
}

const LIST: ListQuirk =
    ListQuirk { name: "", status: 200, kind: "application/json", body: "", names_it: false };

/// The table of lists. All of these servers chat with [`MODEL`].
pub const LISTS: &[ListQuirk] = &[
    ListQuirk { name: "bare (Together)", body: r#"[{"id": "tiny"}]"#, names_it: true, ..LIST },
    ListQuirk {
        name: "with a context of -1 (gateways)",
        body: r#"{"data": [{"id": "tiny", "max_model_len": -1}]}"#,
        names_it: true,
        ..LIST
    },
    ListQuirk {
        name: "with tags (Ollama)",
        body: r#"{"models": [{"name": "tiny:latest"}]}"#,
        names_it: true,
        ..LIST
    },
    ListQuirk {
        name: "with paths (Gemini)",
        body: r#"{"data": [{"id": "models/tiny"}]}"#,
        names_it: true,
        ..LIST
    },
    ListQuirk { name: "of another name (gateways)", body: r#"{"data": [{"id": "upstream-large"}]}"#, ..LIST },
    ListQuirk { name: "empty", body: r#"{"data": []}"#, ..LIST },
    ListQuirk { name: "refused to this key", status: 401, body: r#"{"error": {"message": "no"}}"#, ..LIST },
    ListQuirk { name: "not there", status: 404, body: r#"{"detail": "Not Found"}"#, ..LIST },
    ListQuirk { name: "broken (transformers serve)", status: 500, body: "Internal Server Error", ..LIST },
    ListQuirk { name: "of a gateway that is full", status: 503, body: "no healthy upstream", ..LIST },
    ListQuirk { name: "a page for browsers", kind: "text/html", body: "<html>hello</html>", ..LIST },
];
