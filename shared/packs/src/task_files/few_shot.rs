//! Examples in prompts: rows of a file of their own, or of the cases, which are then no cases any more.

use serde_json::{Map, Value};

use crate::task_files::cases::DeclaredRow;
use crate::task_files::context::FileContext;
use crate::task_files::rows;
use crate::task_files::table::FileSection;

/// Most examples of a prompt.
const SHOTS_MAX: usize = 50;

/// Takes the examples of a task; those from its cases are taken out of them.
pub(crate) fn of_task(
    task: &FileSection<'_>,
    cases: &mut Vec<DeclaredRow>,
    context: &FileContext<'_>,
) -> Vec<Value> {
    let Some(few_shot) = task.section("few_shot") else { return Vec::new() };
    let mistakes = context.mistakes;
    let count = few_shot.whole("n").map_or(3, |count| count.value);
    if !(1..=SHOTS_MAX).contains(&count) {
        mistakes.at(&few_shot.place_of("n"), format!("`n` is {count}; it must be between 1 and {SHOTS_MAX}"));
        return Vec::new();
    }
    let seeded = few_shot.text("pick").is_some_and(|pick| pick.value == "seeded");
    let mut chosen: Vec<(usize, Map<String, Value>)> = match few_shot.text("file") {
        Some(file) => {
            let read = rows::expect_text(file.value)
                .and_then(|()| (context.read_text)(file.value))
                .and_then(|text| rows::read(file.value, &text, None));
            match read {
                Ok(rows) => rows.into_iter().filter_map(|row| row.as_object().cloned()).enumerate().collect(),
                Err(message) => {
                    mistakes.at(&file.place, message);
                    return Vec::new();
                }
            }
        }
        None if few_shot.flag("from_cases") => {
            cases.iter().enumerate().map(|(number, case)| (number, case.fields.clone())).collect()
        }
        None => {
            mistakes.at(&few_shot.place, "`few_shot` needs one of: file, from_cases = true");
            return Vec::new();
        }
    };
    if seeded {
        chosen.sort_by_key(|(number, row)| {
            drawn(context.seed, &Value::Object(row.clone()).to_string(), *number)
        });
    }
    chosen.truncate(count);
    if few_shot.text("file").is_none() {
        if chosen.len() >= cases.len() {
            let message = format!("with {count} examples from {} cases, no case is left", cases.len());
            mistakes.at(&few_shot.place, message);
            return Vec::new();
        }
        let mut number = 0;
        cases.retain(|_| {
            number += 1;
            !chosen.iter().any(|(taken, _)| *taken == number - 1)
        });
    }
    chosen.into_iter().map(|(_, row)| Value::Object(row)).collect()
}

/// A number that depends on the seed and the row, and on nothing else.
fn drawn(seed: u64, row: &str, number: usize) -> (u64, usize) {
    let mixed = row.bytes().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |hash, byte| {
        let hash = (hash ^ u64::from(byte)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^ (hash >> 29)
    });
    (mixed, number)
}
