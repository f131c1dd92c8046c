//! The properties of a pack that a plan needs.

use packs::Pack;
use serde_json::{Map, Value};
use tasks::families::declared;
use tasks::{TaskClass, TaskData};

use super::TaskOutline;

/// The outlines of a pack's tasks, in its order.
pub fn outlines(pack: &Pack) -> Vec<TaskOutline> {
    let outline = |task: &TaskData| TaskOutline {
        label: task.label.clone(),
        class: task.class.clone(),
        parameters: task.parameters.clone(),
        cases: task.cases.len(),
        repeats: declared::repeats(task),
        weight: weight(task),
        standard: pack.is_default(&task.label),
    };
    pack.tasks().iter().map(outline).collect()
}

/// Expected work of a dialogue in characters: the texts of a case, twice for tasks that repeat a whole document and have
/// follow-ups. Good enough for ordering.
fn weight(task: &TaskData) -> u64 {
    let texts =
        |map: &Map<String, Value>| -> usize { map.values().filter_map(Value::as_str).map(str::len).sum() };
    let case = task.cases.first().map_or(0, |case| {
        texts(&case.data) + texts(&case.prompt) + case.first_prompts.first().map_or(0, String::len)
    });
    let class = TaskClass::resolve(&task.class, &task.version);
    let rounds = class.map_or(1, TaskClass::answers_expected);
    (case * rounds) as u64
}
