//! Whether an answer comes from the requested model.

use reqwest::Url;

/// Hosts (with subdomains) whose answers may name another model than the requested one, because that is an alias or a
/// deployment.
const PROVIDERS: [&str; 2] = ["openai.com", "azure.com"];

/// Whether the server at this address belongs to such a provider.
pub(super) fn are_the_providers(base: &Url) -> bool {
    let Some(host) = base.host_str() else { return false };
    PROVIDERS.iter().any(|provider| {
        host.strip_suffix(provider).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// Whether `reported` names the model `asked`, or a dated version of it. Case is ignored, and so are folders or
/// organisations that only one of the two names has, and the extension of a model file. A server that reports nothing
/// is trusted.
pub(super) fn is_name_of(reported: &str, asked: &str) -> bool {
    let (reported, asked) = (normal(reported), normal(asked));
    let ((reported_in, reported), (asked_in, asked)) = (split(&reported), split(&asked));
    let asked = asked.strip_suffix("-latest").or_else(|| asked.strip_suffix(":latest")).unwrap_or(asked);
    let version = reported.strip_prefix(asked);
    (is_below(reported_in, asked_in) || is_below(asked_in, reported_in))
        && (reported.is_empty()
            || version.is_some_and(|rest| matches!(rest, "" | ":latest") || is_date(rest)))
}

fn normal(name: &str) -> String {
    let name = name.trim().trim_end_matches('/').to_lowercase();
    name.strip_suffix(".gguf").map(str::to_owned).unwrap_or(name)
}

/// Splits a name into folder or organisation, and name.
fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Whether a folder is the last part of a path.
fn is_below(path: &str, folder: &str) -> bool {
    path.strip_suffix(folder).is_some_and(|rest| rest.is_empty() || folder.is_empty() || rest.ends_with('/'))
}

/// Whether this is a date or version number after a name: `-2024-08-06`, `-20250219`, `-0613`, `@001`.
fn is_date(rest: &str) -> bool {
    let Some(date) = rest.strip_prefix(['-', '@']) else { return false };
    let digits = date.bytes().filter(u8::is_ascii_digit).count();
    (3..=8).contains(&digits)
        && date
            .split('-')
            .all(|part| (2..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_asked_model_is_known_by_its_usual_names() {
        for (asked, reported) in [
            ("llama-3.1-8b", "llama-3.1-8b"),
            ("Llama-3.1-8B", "llama-3.1-8b "),
            ("gpt-4o", "gpt-4o-2024-08-06"),
            ("gpt-4", "gpt-4-0613"),
            ("claude-3-7-sonnet", "claude-3-7-sonnet-20250219"),
            ("mistral-large-latest", "mistral-large-2411"),
            ("gemini-1.5-flash", "gemini-1.5-flash-002"),
            ("gemini-1.5-flash", "google/gemini-1.5-flash@002"),
            ("meta-llama/Llama-3.1-8B", "Llama-3.1-8B"),
            ("Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
            ("meta-llama/Llama-3.1-8B", "/models/meta-llama/Llama-3.1-8B/"),
            ("openai/gpt-4o", "gpt-4o-2024-08-06"),
            ("openai/gpt-4o", "openai/gpt-4o-2024-08-06"),
            ("qwen2.5-7b-q4", "/models/qwen2.5-7b-q4.gguf"),
            ("llama3", "llama3:latest"),
            ("llama3:latest", "llama3"),
            ("my-lora", "my-lora"),
            ("anything", ""),
        ] {
            assert!(is_name_of(reported, asked), "asked {asked}, reported {reported}");
        }
    }

    #[test]
    fn another_model_is_another() {
        for (asked, reported) in [
            ("llama-3.1-8b", "llama-3.1-70b"),
            ("gpt-4", "gpt-4o"),
            ("gpt-4o", "gpt-4o-mini"),
            ("gpt-4o", "gpt-4o-mini-2024-07-18"),
            ("gpt-4", "gpt-4-32k-0613"),
            ("gpt-4o-2024-08-06", "gpt-4o-2024-05-13"),
            ("gpt-4o-2024-08-06", "gpt-4o"),
            ("llama3:70b", "llama3"),
            ("llama3", "llama3:70b"),
            ("qwen2", "qwen2-72"),
            ("qwen2", "qwen2-7b"),
            ("a/m", "b/m"),
            ("m-v1", "m-v2"),
            ("m", "xm"),
        ] {
            assert!(!is_name_of(reported, asked), "asked {asked}, reported {reported}");
        }
    }

    #[test]
    fn providers_are_known_by_their_hosts() {
        let provider = |url: &str| are_the_providers(&Url::parse(url).unwrap());
        assert!(provider("https://api.openai.com/v1") && provider("https://x.openai.azure.com/openai"));
        assert!(!provider("http://127.0.0.1:8000/v1") && !provider("https://notopenai.com/v1"));
    }
}
