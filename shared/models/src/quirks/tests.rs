use serde::Deserialize;

use super::*;

/// What servers say, and what is read from it.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wording {
    /// The context in tokens, and those of the prompt.
    Context(String),
    /// The refused field by its place in the table, and how many steps it goes.
    Field(String),
    MostTokens(String),
    /// Milliseconds.
    Wait(String),
}

#[derive(Deserialize)]
struct Row {
    #[serde(flatten)]
    wording: Wording,
    says: serde_json::Value,
}

#[test]
fn numbers_fields_and_waits_are_read_from_every_known_wording() {
    let now = Timestamp::from_second(1_800_000_000).unwrap();
    for line in include_str!("wordings.jsonl").lines() {
        let Row { wording, says } =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let found = match wording {
            Wording::Context(text) => serde_json::json!(context_numbers(&text.to_lowercase())),
            Wording::Field(text) => serde_json::json!(refused_field(&text.to_lowercase())),
            Wording::MostTokens(text) => {
                let most = most_tokens(&text.to_lowercase()).map(|most| match most {
                    Remedy::AtMost(most) => most,
                    other => panic!("{other:?}: {line}"),
                });
                serde_json::json!(most)
            }
            Wording::Wait(text) => serde_json::json!(wait(&text, now).map(|wait| wait.as_millis() as u64)),
        };
        assert_eq!(found, says, "{line}");
    }
}
