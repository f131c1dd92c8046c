//! Whether the limits that documents state are those of the code.
//!
//! A sentence or a row of a table stands here with a `{}` for each number, and beside it where the code says the number. Every
//! row of a table whose first column is `limit` must stand here.

use std::fs;

use crate::workspace::{root, text_files};

/// How a number is written for people.
#[derive(Clone, Copy)]
enum Unit {
    /// Thousands apart, as in `1 000 000`.
    Count,
    /// As a power of two, as in `2²⁸`.
    Power,
    /// Of bytes.
    KiB,
    MiB,
    GiB,
    /// Of milliseconds: all durations are read as such.
    Seconds,
    Minutes,
    Hours,
}

use Unit::{Count, GiB, Hours, KiB, MiB, Minutes, Power, Seconds};

/// A number in the code: the file, the texts that lead to it one after the other, and its unit.
type Number = (&'static str, &'static [&'static str], Unit);

const EXERCISE: &str = "shared/tasks/src/exercise.rs";
const SANDBOX: &str = "worker/src/evaluate/sandbox/mod.rs";
const SCAN: &str = "shared/rdf/src/scan.rs";
const RETRY: &str = "shared/models/src/retry.rs";
const TIME_LIMITS: &str = "shared/domain/src/time_limits.rs";
const ARCHIVE: &str = "shared/results/src/archive.rs";
const PROVIDERS: &str = "shared/domain/src/provider.rs";
const CONNECTIONS: &str = "shared/service-kit/src/http/bounded.rs";
const SIMULATION: &str = "tests/sim/tests/sim/main.rs";

const DEFAULTS: &str = "impl Default for EvaluationLimits";
const POLICY: &str = "impl Default for RetryPolicy";
const QUERY: &str = "const fn query()";

/// What documents say, and the numbers in it.
const CLAIMS: &[(&str, &str, &[Number])] = &[
    (
        "docs/errors-and-logging.md",
        "Keys of fewer than {} bytes are not searched for, in answers those of fewer than {}.",
        &[
            ("shared/models/src/key_search.rs", &["SEARCHED_KEY_BYTES_MIN: usize ="], Count),
            ("shared/models/src/secret.rs", &["ANSWER_KEY_BYTES_MIN: usize ="], Count),
        ],
    ),
    (
        "docs/running.md",
        "place that beats every {} s; whoever is silent for {} s is taken over.",
        &[
            ("shared/results/src/run_lock.rs", &["const BEAT_EVERY: Duration ="], Seconds),
            ("shared/results/src/run_lock.rs", &["const DEAD_AFTER: Duration ="], Seconds),
        ],
    ),
    (
        "docs/running.md",
        "waits for the other answers for {} s at most;",
        &[("cli/src/engine/worker.rs", &["const INTERRUPTED_GRACE: Duration ="], Seconds)],
    ),
    (
        "docs/running.md",
        "| CPU time of one query | {} s |",
        &[(EXERCISE, &[DEFAULTS, "query_time:"], Seconds)],
    ),
    (
        "docs/running.md",
        "| CPU time of one judgement | the query's limit plus {} s, then",
        &[(SANDBOX, &["const BESIDE_QUERY_SECONDS: u64 ="], Count)],
    ),
    (
        "docs/running.md",
        "| address space of a process | {} GiB,",
        &[(SANDBOX, &["fn of(", "memory_bytes:"], GiB)],
    ),
    (
        "docs/running.md",
        "| size of an answer | {} MiB |",
        &[(EXERCISE, &[DEFAULTS, "answer_bytes_max:"], MiB)],
    ),
    (
        "docs/running.md",
        "`max_tokens` is {}, or, where the server tells the model's context, what the prompt leaves of it, at most {}",
        &[
            ("shared/domain/src/chat.rs", &["TOKENS_DEFAULT: u32 ="], Count),
            ("shared/domain/src/chat.rs", &["TOKENS_OF_CONTEXT_MAX: u32 ="], Count),
        ],
    ),
    (
        "docs/running.md",
        "a prompt of {} words or more",
        &[("shared/domain/src/odd_answer.rs", &["const PROMPT_WORDS_MIN: u64 ="], Count)],
    ),
    (
        "docs/running.md",
        "(`openai-compatible` and `simulated`; at most {} KiB)",
        &[("coordinator/src/plan/configuration/request.rs", &["EXTRA_BODY_BYTES_MAX: usize ="], KiB)],
    ),
    ("docs/running.md", "| size of a query | {} MiB |", &[(SCAN, &[QUERY, "bytes_max:"], MiB)]),
    (
        "docs/running.md",
        "| nesting | {} (queries: {} levels of brackets, {} operators and patterns) |",
        &[
            (EXERCISE, &[DEFAULTS, "nesting_max:"], Count),
            (SCAN, &[QUERY, "depth_max:"], Count),
            (SCAN, &[QUERY, "links_max:"], Count),
        ],
    ),
    ("docs/running.md", "| rows of a result | {} |", &[(EXERCISE, &[DEFAULTS, "rows_max:"], Count)]),
    (
        "docs/running.md",
        "{} unknown functions per query, {} steps of backtracking in a regular expression, {} MiB per document, {} MiB parsed \
         to recover one broken document, and {} steps of one text comparison.",
        &[
            ("shared/rdf/src/query/execute.rs", &["const UNKNOWN_FUNCTIONS_MAX: usize ="], Count),
            ("shared/rdf/src/query/rdflib/pattern.rs", &["const PATTERN_STEPS_MAX: usize ="], Count),
            ("shared/rdf/src/graph.rs", &["const DOCUMENT_BYTES_MAX: usize ="], MiB),
            ("shared/rdf/src/tolerant.rs", &["const TOLERANT_BYTES_MAX: usize ="], MiB),
            ("shared/tasks/src/text/difflib.rs", &["const STEPS_MAX: u64 ="], Power),
        ],
    ),
    (
        "docs/running.md",
        "Packs made from published results use the published run's {} s per query.",
        &[(EXERCISE, &["fn compat()", "query_time:"], Seconds)],
    ),
    (
        "docs/running.md",
        "gets less than a hundredth of a CPU for {} s is",
        &[(SANDBOX, &["fn of(", "starved_after:"], Seconds)],
    ),
    (
        "docs/running.md",
        "| one call, from request to last token | {} min, or",
        &[(TIME_LIMITS, &["pub const CALL: Duration ="], Minutes)],
    ),
    (
        "docs/running.md",
        "| one dialogue | three times its calls' limit, at least {} h |",
        &[(TIME_LIMITS, &["pub const DIALOGUE_MIN: Duration ="], Hours)],
    ),
    (
        "docs/running.md",
        "| silence of a stream | {} min before the first token, {} min between tokens, or",
        &[
            (TIME_LIMITS, &["pub const FIRST_TOKEN: Duration ="], Minutes),
            (TIME_LIMITS, &["pub const BETWEEN_TOKENS: Duration ="], Minutes),
        ],
    ),
    (
        "docs/running.md",
        "and as a whole, at most {}h.",
        &[(TIME_LIMITS, &["pub const TIME_LIMIT_MAX: Duration ="], Hours)],
    ),
    (
        "docs/running.md",
        "| attempts after a broken connection, a stall, a 5xx, or an answer of another model | {} |",
        &[(RETRY, &[POLICY, "attempts_max:"], Count)],
    ),
    (
        "docs/running.md",
        "| attempts while the server is full or limits the rate (503, 429) | {} |",
        &[(RETRY, &[POLICY, "busy_attempts_max:"], Count)],
    ),
    (
        "docs/running.md",
        "| attempts while no server answers at the address | {} |",
        &[(RETRY, &[POLICY, "absent_attempts_max:"], Count)],
    ),
    (
        "docs/running.md",
        "| back-off between attempts | from {} s, doubling to {} s; what the server asks for, up to {} s |",
        &[
            (RETRY, &[POLICY, "delay_first:"], Seconds),
            (RETRY, &[POLICY, "delay_max:"], Seconds),
            (RETRY, &[POLICY, "retry_after_max:"], Seconds),
        ],
    ),
    (
        "docs/running.md",
        "| all attempts of one call | none begins later than {} min after the first |",
        &[(RETRY, &[POLICY, "total_max:"], Minutes)],
    ),
    (
        "docs/running.md",
        "| first dialogues of a model refused with the same message | {}; then",
        &[("worker/src/breaker.rs", &["const REFUSALS_MAX: u32 ="], Count)],
    ),
    (
        "docs/running.md",
        "from {} up to {} dialogues in flight for an OpenAI-compatible server, up to {} for hosted providers.",
        &[
            ("worker/src/limiter.rs", &["const START_UNTOLD: u32 ="], Count),
            (PROVIDERS, &["const OWN_SERVER:", "max:"], Count),
            (PROVIDERS, &["const RATE_LIMITED:", "max:"], Count),
        ],
    ),
    (
        "docs/running.md",
        "A server that tells its queue, as vLLM's `/metrics` do, gets up to {},",
        &[(PROVIDERS, &["const OWN_SERVER:", "measured_max:"], Count)],
    ),
    (
        "docs/running.md",
        "An archive may hold {} files and become {} GiB, at most {} times its size.",
        &[
            (ARCHIVE, &["const FILES_MAX: usize ="], Count),
            (ARCHIVE, &["const UNPACKED_BYTES_MAX: u64 ="], GiB),
            (ARCHIVE, &["const RATIO_MAX: u64 ="], Count),
        ],
    ),
    (
        "docs/adding-a-model.md",
        "One request takes at most {} texts or {} pairs, of at most {} MiB each and {} MiB together.",
        &[
            ("shared/models/src/embed.rs", &["const TEXTS_MAX: usize ="], Count),
            ("shared/models/src/classify.rs", &["const PAIRS_MAX: usize ="], Count),
            ("shared/models/src/embed.rs", &["const TEXT_BYTES_MAX: usize ="], MiB),
            ("shared/models/src/embed.rs", &["const REQUEST_BYTES_MAX: usize ="], MiB),
        ],
    ),
    (
        "docs/monitoring.md",
        "A metric has at most {} series",
        &[("shared/service-kit/src/metrics/frame.rs", &["const FAMILY_SERIES_MAX: usize ="], Count)],
    ),
    (
        "docs/security.md",
        "{} streams, {} sessions, {} connections, {} from one address;",
        &[
            ("page/src/site.rs", &["const STREAMS_MAX: usize ="], Count),
            ("page/src/session.rs", &["const SESSIONS_MAX: usize ="], Count),
            (CONNECTIONS, &["const CONNECTIONS_MAX: usize ="], Count),
            (CONNECTIONS, &["const CONNECTIONS_PER_ADDRESS_MAX: usize ="], Count),
        ],
    ),
    (
        "docs/security.md",
        "those of readers and strangers {} KiB. All messages that are being received take {} MiB together",
        &[
            ("proto/src/limits.rs", &["const NAMING_BYTES: usize ="], KiB),
            ("proto/src/limits.rs", &["const RECEIVED_BYTES: usize ="], MiB),
        ],
    ),
    (
        "docs/adr/0003-evaluation-in-child-processes.md",
        "| `RLIMIT_NOFILE` {} |",
        &[("worker/src/evaluate/sandbox/child.rs", &["Resource::Nofile, both("], Count)],
    ),
    ("docs/adr/0003-evaluation-in-child-processes.md", "| `RLIMIT_AS` | address space", &[]),
    ("docs/adr/0003-evaluation-in-child-processes.md", "| `RLIMIT_CPU` | raised before every judgement", &[]),
    (
        "docs/adr/0003-evaluation-in-child-processes.md",
        "| `RLIMIT_CORE` {} |",
        &[("worker/src/evaluate/sandbox/child.rs", &["Resource::Core, both("], Count)],
    ),
    (
        "docs/performance.md",
        "Bytes on this way are bounded once: {} MiB over all workers (`BYTES_IN_FLIGHT_MAX`)",
        &[("coordinator/src/options.rs", &["const BYTES_IN_FLIGHT_MAX: usize ="], MiB)],
    ),
    (
        "docs/performance.md",
        "A frame of the log holds {} records at most (`FRAME_ENTRIES_MAX`",
        &[("shared/results/src/log/writer.rs", &["const FRAME_ENTRIES_MAX: u32 ="], Count)],
    ),
    (
        "docs/reliability.md",
        "`make test` tries {} seeds, `make release-check` {}.",
        &[
            (SIMULATION, &["const SEEDS: u64 ="], Count),
            ("deploy/release-check", &["make simulation PROFILE=release SEEDS=\"${SEEDS:-"], Count),
        ],
    ),
    (
        "docs/conductor.md",
        "told after {} s; on a node for {} minutes: deleted",
        &[
            ("conductor/src/start.rs", &["const TOLD_AFTER: Duration ="], Seconds),
            ("conductor/src/server.rs", &["const START_WAIT_MAX: Duration ="], Minutes),
        ],
    ),
    ("docs/testing.md", "breaks a promise. {} seeds;", &[(SIMULATION, &["const SEEDS: u64 ="], Count)]),
    (
        "docs/kghalubench.md",
        "One of fewer than {} words does not tell",
        &[(
            "shared/benchmarks/src/kinds/kghalubench/draw/question.rs",
            &["const TELLING_WORDS_MIN: usize ="],
            Count,
        )],
    ),
    (
        "docs/kghalubench.md",
        "# a page with the {} worst answers;",
        &[("shared/benchmarks/src/showing.rs", &["const PAGE_ROWS_MAX: usize ="], Count)],
    ),
    (
        "docs/kghalubench.md",
        "| `.jsonld` | JSON-LD, up to {} MiB |",
        &[("shared/rdf/src/graph.rs", &["const DOCUMENT_BYTES_MAX: usize ="], MiB)],
    ),
    (
        "docs/kghalubench.md",
        "A document of up to {} MiB that is not compressed is read into memory.",
        &[("cli/src/verbs/kghalubench/document.rs", &["const IN_MEMORY_BYTES_MAX: u64 ="], MiB)],
    ),
    (
        "docs/kghalubench.md",
        "lists them once, {} by a query;",
        &[(
            "shared/benchmarks/src/kinds/kghalubench/draw/endpoint.rs",
            &["const LISTED_ENTITIES_MAX: u64 ="],
            Count,
        )],
    ),
    (
        "docs/kghalubench.md",
        "Of a text of more than {} characters the first sentences are taken",
        &[(
            "shared/benchmarks/src/kinds/kghalubench/draw/statements.rs",
            &["const DESCRIPTION_CHARS_MAX: usize ="],
            Count,
        )],
    ),
    (
        "docs/kghalubench.md",
        "Objects of more than {} characters are texts that no overview repeats",
        &[(
            "shared/benchmarks/src/kinds/kghalubench/draw/statements.rs",
            &["const OBJECT_CHARS_MAX: usize ="],
            Count,
        )],
    ),
];

/// The value of an expression of the code: whole numbers, products, shifts, and durations, which become milliseconds.
fn value(expression: &str) -> Option<u64> {
    let expression = expression.trim();
    if let Some(rest) = expression.strip_prefix("Duration::from_") {
        let (unit, rest) = rest.split_once('(')?;
        let factor = [("secs", 1_000), ("millis", 1)].iter().find(|(name, _)| *name == unit)?.1;
        return Some(value(rest.strip_suffix(')')?)? * factor);
    }
    if let Some((left, right)) = expression.split_once("<<") {
        return Some(value(left)? << value(right)?);
    }
    if let Some((left, right)) = expression.split_once('*') {
        return Some(value(left)? * value(right)?);
    }
    expression.replace('_', "").parse().ok()
}

/// The expression that a text begins with: up to a comma, a semicolon or a bracket that was not opened in it.
fn expression(text: &str) -> &str {
    let mut open = 0;
    let end = text.find(|c: char| {
        match c {
            '(' => open += 1,
            ')' if open > 0 => open -= 1,
            ',' | ';' | ')' | '}' => return open == 0,
            _ => {}
        }
        false
    });
    text[..end.unwrap_or(text.len())].trim()
}

/// A number of the code, as people write it.
fn written((file, marks, unit): &Number) -> String {
    let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut rest = text.as_str();
    for mark in *marks {
        let at = rest.find(mark).unwrap_or_else(|| panic!("{file}: no `{mark}`"));
        rest = &rest[at + mark.len()..];
    }
    let number =
        value(expression(rest)).unwrap_or_else(|| panic!("{file}: `{}` is no number", expression(rest)));
    let part = |of: u64| {
        let whole = number / of;
        // One digit behind the point is enough for what there is.
        let tenths = number % of * 10 / of;
        assert_eq!(number, whole * of + tenths * of / 10, "{file}: {number} has no short form");
        if tenths == 0 { count(whole) } else { format!("{whole}.{tenths}") }
    };
    match unit {
        Count => count(number),
        Power => {
            assert!(number.is_power_of_two(), "{file}: {number} is no power of two");
            let digits = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
            let raised = number.trailing_zeros().to_string();
            format!("2{}", raised.bytes().map(|digit| digits[usize::from(digit - b'0')]).collect::<String>())
        }
        KiB => part(1 << 10),
        MiB => part(1 << 20),
        GiB => part(1 << 30),
        Seconds => part(1_000),
        Minutes => part(60_000),
        Hours => part(3_600_000),
    }
}

/// With a space between thousands, from five digits on.
fn count(number: u64) -> String {
    let digits = number.to_string();
    if digits.len() < 4 {
        return digits;
    }
    let groups: Vec<&str> = (0..digits.len().div_ceil(3))
        .map(|group| {
            let end = digits.len() - 3 * group;
            &digits[end.saturating_sub(3)..end]
        })
        .collect();
    groups.into_iter().rev().collect::<Vec<_>>().join(" ")
}

/// A claim with its numbers.
fn filled(claim: &str, numbers: &[Number]) -> String {
    let parts: Vec<&str> = claim.split("{}").collect();
    assert_eq!(parts.len(), numbers.len() + 1, "{claim}: as many numbers as places");
    let mut text = parts[0].to_owned();
    for (number, part) in numbers.iter().zip(&parts[1..]) {
        text += &written(number);
        text += part;
    }
    text
}

/// A text on one line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn limits_in_documents_are_those_of_the_code() {
    let mut wrong = Vec::new();
    for (page, claim, numbers) in CLAIMS {
        let text = flat(&fs::read_to_string(root().join(page)).unwrap());
        let claim = filled(claim, numbers);
        if !text.contains(&claim) {
            wrong.push(format!("{page} does not say: {claim}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_row_of_a_table_of_limits_is_compared_with_the_code() {
    let mut rows = 0;
    for (path, text) in text_files() {
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let page = path.to_str().unwrap();
        let claims: Vec<String> = CLAIMS
            .iter()
            .filter(|(of, ..)| *of == page)
            .map(|(_, claim, numbers)| filled(claim, numbers))
            .collect();
        let mut inside = false;
        for line in text.lines() {
            let row = line.starts_with('|');
            if row && inside && !line.starts_with("|---") {
                rows += 1;
                let line = flat(line);
                assert!(
                    claims.iter().any(|claim| line.starts_with(claim.as_str())),
                    "{page}: no constant is known for the row `{line}`, or its number is another"
                );
            }
            inside = row && (inside || line.starts_with("| limit |"));
        }
    }
    assert!(rows > 10, "tables of limits are found");
}

#[test]
fn numbers_are_read_and_written_as_people_write_them() {
    assert_eq!(value("(64 << 20)"), None);
    assert_eq!(
        [value("16 << 20"), value("2 * 3600"), value("1_000")],
        [Some(16 << 20), Some(7_200), Some(1_000)]
    );
    assert_eq!(value("Duration::from_secs(30 * 60)"), Some(1_800_000));
    assert_eq!(expression(" Duration::from_secs(600), dialogue: x"), "Duration::from_secs(600)");
    assert_eq!(
        [count(12), count(1_000), count(200_000), count(1_000_000)],
        ["12", "1 000", "200 000", "1 000 000"]
    );
}
