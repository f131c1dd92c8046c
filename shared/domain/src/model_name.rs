//! Whether two names mean the same model: answers and lists of models spell names in their own ways.

use crate::glob::Glob;

/// Names that are asked for where a server has only one model, whatever it is called: TGI, mlx-lm.
const ANY: [&str; 2] = ["tgi", "default_model"];

/// Paths that providers put before the names of models: no organisations. `*` stands for any text.
const PATHS: [&str; 5] = ["accounts/*/models", "publishers/*/models", "models", "@cf/*", "projects/*/models"];

/// Routes and variants of OpenRouter that are no part of a model's name.
const ROUTES: [&str; 8] = ["online", "nitro", "floor", "free", "exacto", "extended", "beta", "thinking"];

/// Ends of names that say in which numbers the weights are stored.
const NUMBERS: [&str; 9] = ["q", "iq", "f16", "bf16", "f32", "fp16", "mxfp4", "gguf", "mlx"];

/// Whether `reported` names the model `asked`, or a dated version of it. Case is ignored, and so are folders or
/// organisations that only one of the two names has, paths and routes of providers, and what is said of the model's file. A
/// server that reports nothing is trusted.
pub fn is_name_of(reported: &str, asked: &str) -> bool {
    let (reported, asked) = (normal(reported), normal(asked));
    if reported.is_empty() || ANY.contains(&asked.as_str()) {
        return true;
    }
    let ((reported_in, reported), (asked_in, asked)) = (split(&reported), split(&asked));
    let asked = without_route(asked, !asked_in.is_empty());
    (is_below(reported_in, asked_in) || is_below(asked_in, reported_in))
        && (is_version_of(reported, asked) || is_version_of(&spelled(reported), &spelled(asked)))
}

/// Whether a name in a server's list, or among what a worker serves, stands for the model that is asked for.
pub fn is_listed_as(listed: &str, asked: &str) -> bool {
    // Fleets compare thousands of names for each unit, of which nearly all differ.
    listed == asked
        || ((ANY.contains(&asked) || may_be_alike(listed, asked))
            && (is_name_of(listed, asked) || is_name_of(asked, listed)))
}

/// Whether two names are perhaps the same, by where they begin to differ; it allocates nothing. Names that are the same differ
/// where one of them ends or goes on with what makes no other model of it, and in how Fireworks spells versions.
fn may_be_alike(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|name| {
        let name = name.trim().trim_end_matches('/');
        name.rsplit('/').next().unwrap_or(name).trim()
    });
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count();
    let is_separator = |byte: u8| b"-@:.".contains(&byte);
    let [here, there] = [one, other].map(|name| name.as_bytes().get(same).copied());
    if same > 0 && [here, there].iter().all(|next| next.is_none_or(is_separator)) {
        return true;
    }
    let may_be_spelled = |byte: u8| !byte.is_ascii() || b"vVpP".contains(&byte);
    if [here, there].into_iter().flatten().any(may_be_spelled) {
        return true;
    }
    // What begins within the end of a name that says nothing of the model: a route, or `-latest`.
    let began = one.as_bytes()[..same].iter().rposition(|byte| is_separator(*byte));
    began.is_some_and(|began| {
        [one, other].iter().any(|name| {
            let rest = &name.as_bytes()[began..];
            rest[0] == b':' || rest.get(..7).is_some_and(|rest| rest.eq_ignore_ascii_case(b"-latest"))
        })
    })
}

/// Whether a name is another one, followed at most by what makes no other model of it.
fn is_version_of(reported: &str, asked: &str) -> bool {
    let is_version = |rest: &str| matches!(rest, "" | ":latest") || is_date(rest) || is_of_numbers(rest);
    reported.strip_prefix(asked).is_some_and(is_version)
}

fn normal(name: &str) -> String {
    let name = name.trim().trim_end_matches('/').to_lowercase();
    name.strip_suffix(".gguf").map(str::to_owned).unwrap_or(name)
}

/// Splits a name into folder or organisation, and name.
fn split(path: &str) -> (&str, &str) {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_path = PATHS.iter().any(|pattern| Glob::new(pattern).matches(folder));
    (if is_path { "" } else { folder }, name)
}

/// The name without what says by which way the model is reached: `-latest`, a route of OpenRouter, or, behind the name of a
/// repository, a provider (Hugging Face's router).
fn without_route(name: &str, is_repository: bool) -> &str {
    let name = name.strip_suffix("-latest").or_else(|| name.strip_suffix(":latest")).unwrap_or(name);
    match name.rsplit_once(':') {
        Some((name, route)) if ROUTES.contains(&route) => name,
        Some((name, route))
            if is_repository
                && route.len() > 1
                && !route.contains(|c: char| c.is_ascii_digit() || c == '_') =>
        {
            name
        }
        _ => name,
    }
}

/// The name as Fireworks spells those of others: `v3p1` for `3.1`.
fn spelled(name: &str) -> String {
    let mut spelled = String::with_capacity(name.len());
    let mut before = '-';
    let mut letters = name.chars().peekable();
    while let Some(c) = letters.next() {
        let next_is_digit = letters.peek().is_some_and(char::is_ascii_digit);
        match c {
            'v' if next_is_digit && !before.is_alphanumeric() => {}
            'p' if next_is_digit && before.is_ascii_digit() => spelled.push('.'),
            c => spelled.push(c),
        }
        before = c;
    }
    spelled
}

/// Whether a folder is the last part of a path.
fn is_below(path: &str, folder: &str) -> bool {
    path.strip_suffix(folder).is_some_and(|rest| rest.is_empty() || folder.is_empty() || rest.ends_with('/'))
}

/// Whether this says after a name in which numbers its weights are stored: `-q4_k_m`, `@q8_0`, `-bf16`.
fn is_of_numbers(rest: &str) -> bool {
    let Some(numbers) = rest.strip_prefix(['-', '@', ':', '.']) else { return false };
    NUMBERS.iter().any(|known| {
        numbers.strip_prefix(known).is_some_and(|rest| match *known {
            "q" | "iq" => rest.starts_with(|c: char| c.is_ascii_digit()),
            _ => rest.is_empty(),
        })
    })
}

/// Whether this is a date or version number after a name: `-2024-08-06`, `-20250219`, `-0613`, `@001`, `-preview-05-20`.
fn is_date(rest: &str) -> bool {
    let rest = ["-preview", "-exp"].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
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
    fn lists_spell_names_in_their_own_ways() {
        for (listed, asked) in [
            ("models/gemini-2.5-flash", "gemini-2.5-flash"),
            ("llama3:latest", "llama3"),
            ("openai/gpt-4o-mini", "openai/gpt-4o-mini:online"),
            ("Org/Model/", "model"),
            ("meta-llama/Llama-3.1-8B-Instruct", "tgi"),
        ] {
            assert!(is_listed_as(listed, asked), "{listed} stands for {asked}");
        }
        for (listed, asked) in [("sim-other", "sim"), ("", "m"), ("a/m", "b/m"), ("n", "m")] {
            assert!(!is_listed_as(listed, asked), "{listed} is not {asked}");
        }
    }

    proptest::proptest! {
        #[test]
        fn names_that_begin_alike_are_compared_wholly(
            stem in "(a/)?[mv][0-9p.]{0,3}",
            ends in proptest::array::uniform2("(|v3p1|3\\.1|P1|-latest|:latest|-2024-08-06|:free|:f16|-q4_k|@001|x|/|\\.gguf| |é)(|:free|-latest)"),
        ) {
            let [one, other] = ends.map(|end| format!("{stem}{end}"));
            let alike = one == other || is_name_of(&one, &other) || is_name_of(&other, &one);
            proptest::prop_assert_eq!(is_listed_as(&one, &other), alike, "{} and {}", one, other);
        }
    }

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
            ("gemini-2.5-flash", "models/gemini-2.5-flash"),
            ("models/gemini-2.5-flash", "gemini-2.5-flash-preview-05-20"),
            ("openai/gpt-4o-mini:online", "openai/gpt-4o-mini"),
            ("deepseek/deepseek-r1:nitro", "deepseek/deepseek-r1"),
            (
                "meta-llama/Llama-3.1-8B-Instruct:fireworks-ai",
                "accounts/fireworks/models/llama-v3p1-8b-instruct",
            ),
            ("meta-llama/Llama-3.1-8B-Instruct:novita", "meta-llama/Llama-3.1-8B-Instruct"),
            ("tgi", "meta-llama/Llama-3.1-8B-Instruct"),
            ("qwen2.5-7b-instruct", "qwen2.5-7b-instruct@q4_k_m"),
            ("qwen2.5-7b-instruct", "/models/Qwen2.5-7B-Instruct-Q4_K_M.gguf"),
            ("grok-3-latest", "grok-3"),
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
            ("hf.co/a/m:q4_k_m", "hf.co/a/m"),
            ("a/llama3:70b", "a/llama3"),
            ("llama-3.1-8b", "accounts/fireworks/models/llama-v3p2-8b"),
            ("conversation.voice", "gpt-4.1-2025-04-14"),
            ("m", "m-quick"),
        ] {
            assert!(!is_name_of(reported, asked), "asked {asked}, reported {reported}");
        }
    }
}
