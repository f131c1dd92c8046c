//! Examples in prompts: rows of a file of their own, or of the cases, which are then no cases any more.

use std::ops::Range;

use serde_json::Value;

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
    chosen(&few_shot, cases, context).unwrap_or_else(|(place, message)| {
        context.mistakes.at(&place, message);
        Vec::new()
    })
}

fn chosen(
    few_shot: &FileSection<'_>,
    cases: &mut Vec<DeclaredRow>,
    context: &FileContext<'_>,
) -> Result<Vec<Value>, (Range<usize>, String)> {
    let at_all = |message: String| (few_shot.place.clone(), message);
    let count = few_shot.whole("n").map_or(3, |count| count.value);
    if !(1..=SHOTS_MAX).contains(&count) {
        return Err((
            few_shot.place_of("n"),
            format!("`n` is {count}; it must be between 1 and {SHOTS_MAX}"),
        ));
    }
    let file = few_shot.text("file");
    let all: Vec<Value> = match &file {
        Some(file) => {
            let text = rows::expect_text(file.value).and_then(|()| (context.read_text)(file.value));
            let rows = text.and_then(|text| rows::read(file.value, &text, None));
            let rows = rows.map_err(|message| (file.place.clone(), message))?;
            rows.into_iter().filter(Value::is_object).collect()
        }
        None if few_shot.flag("from_cases") => {
            cases.iter().map(|case| Value::Object(case.fields.clone())).collect()
        }
        None => return Err(at_all("`few_shot` needs one of: file, from_cases = true".to_owned())),
    };
    let mut chosen: Vec<(usize, Value)> = all.into_iter().enumerate().collect();
    if few_shot.text("pick").is_some_and(|pick| pick.value == "seeded") {
        chosen.sort_by_key(|(number, row)| drawn(context.seed, &row.to_string(), *number));
    }
    chosen.truncate(count);
    if file.is_none() {
        if chosen.len() >= cases.len() {
            return Err(at_all(format!("with {count} examples from {} cases, no case is left", cases.len())));
        }
        let mut numbers = 0..;
        cases.retain(|_| {
            numbers.next().is_none_or(|number| !chosen.iter().any(|(taken, _)| *taken == number))
        });
    }
    Ok(chosen.into_iter().map(|(_, row)| row).collect())
}

/// A number that depends on the seed and the row, and on nothing else.
fn drawn(seed: u64, row: &str, number: usize) -> (u64, usize) {
    let mixed = row.bytes().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |hash, byte| {
        let hash = (hash ^ u64::from(byte)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash ^ (hash >> 29)
    });
    (mixed, number)
}
