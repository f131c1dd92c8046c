//! Which models may be asked in batches.

use domain::{Ask, ModelSpec};

/// What is wrong with the mode of a model that is asked so.
pub(super) fn problem(model: &ModelSpec, asks: Ask) -> Option<String> {
    if !model.is_batched() {
        return None;
    }
    if asks != Ask::Chat {
        return Some(format!("is `{}`; batches are for models that are asked to {}", model.mode, Ask::Chat));
    }
    (!model.takes_batches()).then(|| {
        format!(
            "is `{}`, which hosted providers offer: `anthropic`, and `openai-compatible` at https://api.openai.com/",
            model.mode
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_for_chats_with_hosted_models() {
        let of = |connector: &str, asks: Ask| {
            let json = serde_json::json!({"label": "m", "connector": connector, "mode": "batch"});
            problem(&serde_json::from_value(json).unwrap(), asks)
        };
        assert_eq!(of("anthropic", Ask::Chat), None);
        for (connector, asks, says) in [
            ("anthropic", Ask::Classify, "asked to chat"),
            ("gemini", Ask::Chat, "`anthropic`, and `openai-compatible` at"),
            ("openai-compatible", Ask::Chat, "is `batch`, which hosted providers offer"),
        ] {
            let problem = of(connector, asks).unwrap();
            assert!(problem.contains(says), "{problem}");
        }
    }
}
