//! Whether the tables of limits in `docs/running.md` are those of the code. Each row stands here with a `{}` for each number,
//! and beside it where the code says the number.

use std::fs;

use crate::workspace::root;

/// A number in the code: the file, the texts that lead to it one after the other, and how many of it people count as one.
type Number = (&'static str, &'static [&'static str], u64);

const COUNT: u64 = 1;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Durations are read in milliseconds.
const SECONDS: u64 = 1_000;
const MINUTES: u64 = 60_000;
const HOURS: u64 = 3_600_000;

const EXERCISE: &str = "shared/tasks/src/exercise.rs";
const SANDBOX: &str = "worker/src/evaluate/sandbox/mod.rs";
const SCAN: &str = "shared/rdf/src/scan.rs";
const RETRY: &str = "shared/models/src/retry.rs";
const TIME_LIMITS: &str = "shared/domain/src/time_limits.rs";
const BREAKER: &str = "worker/src/breaker.rs";

const DEFAULTS: &str = "impl Default for EvaluationLimits";
const POLICY: &str = "impl Default for RetryPolicy";
const QUERY: &str = "const fn query()";

/// How each row begins.
const ROWS: &[(&str, &[Number])] = &[
    ("| CPU time of one query | {} s |", &[(EXERCISE, &[DEFAULTS, "query_time:"], SECONDS)]),
    (
        "| CPU time of one judgement | the query's limit plus {} s, then",
        &[(SANDBOX, &["const BESIDE_QUERY_SECONDS: u64 ="], COUNT)],
    ),
    ("| address space of a process | {} GiB,", &[(SANDBOX, &["fn of(", "memory_bytes:"], GIB)]),
    ("| size of an answer | {} MiB |", &[(EXERCISE, &[DEFAULTS, "answer_bytes_max:"], MIB)]),
    ("| size of a query | {} MiB |", &[(SCAN, &[QUERY, "bytes_max:"], MIB)]),
    (
        "| nesting | {} (queries: {} levels of brackets, {} operators and patterns) |",
        &[
            (EXERCISE, &[DEFAULTS, "nesting_max:"], COUNT),
            (SCAN, &[QUERY, "depth_max:"], COUNT),
            (SCAN, &[QUERY, "links_max:"], COUNT),
        ],
    ),
    ("| rows of a result | {} |", &[(EXERCISE, &[DEFAULTS, "rows_max:"], COUNT)]),
    (
        "| one call, from request to last token | {} min, or",
        &[(TIME_LIMITS, &["pub const CALL: Duration ="], MINUTES)],
    ),
    (
        "| one dialogue | three times its calls' limit, at least {} h |",
        &[(TIME_LIMITS, &["pub const DIALOGUE_MIN: Duration ="], HOURS)],
    ),
    (
        "| silence of a stream | {} min before the first token, {} min between tokens, or",
        &[
            (TIME_LIMITS, &["pub const FIRST_TOKEN: Duration ="], MINUTES),
            (TIME_LIMITS, &["pub const BETWEEN_TOKENS: Duration ="], MINUTES),
        ],
    ),
    (
        "| attempts after a broken connection, a stall, a 5xx, or an answer of another model | {} |",
        &[(RETRY, &[POLICY, "attempts_max:"], COUNT)],
    ),
    (
        "| attempts while the server is full or limits the rate (503, 429) | {} |",
        &[(RETRY, &[POLICY, "busy_attempts_max:"], COUNT)],
    ),
    (
        "| attempts while no server answers at the address | {} |",
        &[(RETRY, &[POLICY, "absent_attempts_max:"], COUNT)],
    ),
    (
        "| back-off between attempts | from {} s, doubling to {} s; what the server asks for, up to {} s |",
        &[
            (RETRY, &[POLICY, "delay_first:"], SECONDS),
            (RETRY, &[POLICY, "delay_max:"], SECONDS),
            (RETRY, &[POLICY, "retry_after_max:"], SECONDS),
        ],
    ),
    (
        "| all attempts of one call | none begins later than {} min after the first |",
        &[(RETRY, &[POLICY, "total_max:"], MINUTES)],
    ),
    (
        "| first dialogues of a model refused with the same message | {}; then",
        &[(BREAKER, &["const REFUSALS_MAX: u32 ="], COUNT)],
    ),
];

/// The value of what a text begins with: whole numbers, products, shifts, and durations in milliseconds.
fn value(text: &str) -> Option<u64> {
    let text = text.trim_start();
    for (duration, factor) in [("Duration::from_secs(", 1_000), ("Duration::from_millis(", 1)] {
        if let Some(rest) = text.strip_prefix(duration) {
            return Some(value(rest)? * factor);
        }
    }
    let expression = text.split([',', ';', ')', '}']).next()?;
    if let Some((left, right)) = expression.split_once("<<") {
        return Some(value(left)? << value(right)?);
    }
    if let Some((left, right)) = expression.split_once('*') {
        return Some(value(left)? * value(right)?);
    }
    expression.trim().replace('_', "").parse().ok()
}

/// A number of the code, as people write it: one digit behind the point at most, and a space between thousands.
fn written((file, marks, one): &Number) -> String {
    let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let mut rest = text.as_str();
    for mark in *marks {
        rest = rest.split_once(mark).unwrap_or_else(|| panic!("{file}: no `{mark}`")).1;
    }
    let number = value(rest).unwrap_or_else(|| panic!("{file}: no number behind `{marks:?}`"));
    let (mut whole, tenths) = (number / one, number % one * 10 / one);
    let mut written = if tenths == 0 { String::new() } else { format!(".{tenths}") };
    while whole >= 1_000 {
        written = format!(" {:03}{written}", whole % 1_000);
        whole /= 1_000;
    }
    format!("{whole}{written}")
}

#[test]
fn every_row_of_a_table_of_limits_has_the_numbers_of_the_code() {
    let filled = |(row, numbers): &(&str, &[Number])| {
        numbers.iter().fold((*row).to_owned(), |row, number| row.replacen("{}", &written(number), 1))
    };
    let known: Vec<String> = ROWS.iter().map(filled).collect();
    let text = fs::read_to_string(root().join("docs/running.md")).unwrap();
    let mut found = 0;
    for table in text.split("\n| limit |").skip(1) {
        for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
            found += 1;
            let row = row.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(known.iter().any(|known| row.starts_with(known)), "no number of the code: {row}");
        }
    }
    assert_eq!(found, ROWS.len(), "rows of the tables, and those that stand here");
}
