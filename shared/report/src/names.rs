//! Names of models for people, with their families. Everything is read from the name.

/// Names of published models as in the published tables.
const PUBLISHED: [(&str, &str); 10] = [
    ("claude-3-5-haiku-20241022", "Claude 3.5 Haiku"),
    ("claude-3-5-sonnet-20241022", "Claude 3.5 Sonnet"),
    ("gemini-1.5-flash-002", "Gemini 1.5 Flash"),
    ("gemini-1.5-pro-002", "Gemini 1.5 Pro"),
    ("gemini-2.0-flash-exp", "Gemini 2.0 Flash Exp"),
    ("gpt-3.5-turbo-0125", "GPT3.5 2024/01"),
    ("gpt-4o-2024-11-20", "GPT4o 2024/11"),
    ("gpt-4o-mini-2024-07-18", "GPT4o-mini 2024/07"),
    ("o1-mini-2024-09-12", "GPTo1-mini 2024/09"),
    ("o1-preview-2024-09-12", "GPTo1-pre 2024/09"),
];

/// The name of a published model as in the published tables; of any other model, its name without folders.
pub fn published(requested: &str) -> String {
    let bare = requested.rsplit('/').next().unwrap_or(requested);
    let known = PUBLISHED.iter().find(|(id, _)| *id == bare);
    known.map_or_else(|| bare.to_owned(), |(_, name)| (*name).to_owned())
}

/// The family of a model: the letters at the beginning of its name, without folders and `Meta-`.
pub fn family(name: &str) -> String {
    // A slash may also stand in a date.
    let bare = name.rsplit('/').find(|part| part.starts_with(char::is_alphabetic)).unwrap_or(name);
    let bare = bare.strip_prefix("Meta-").or_else(|| bare.strip_prefix("meta-")).unwrap_or(bare);
    let letters: String = bare.chars().take_while(|c| c.is_alphabetic()).collect();
    match letters.as_str() {
        "" => bare.to_owned(),
        // The published tables write both.
        "GPTo" | "o" | "gpt" => "GPT".to_owned(),
        "claude" => "Claude".to_owned(),
        "gemini" => "Gemini".to_owned(),
        _ => letters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_families() {
        let families = [
            ("Meta-Llama-3-8B", "Llama"),
            ("Qwen2.5-Coder-32B", "Qwen"),
            ("GPT4o 2024/11", "GPT"),
            ("GPTo1-mini 2024/09", "GPT"),
            ("Claude 3.5 Haiku", "Claude"),
            ("7b", "7b"),
        ];
        for (name, expected) in families {
            assert_eq!(family(name), expected, "{name}");
        }
        assert_eq!(published("models/gemini-1.5-flash-002"), "Gemini 1.5 Flash");
        assert_eq!(published("org/Model-8B"), "Model-8B");
    }
}
