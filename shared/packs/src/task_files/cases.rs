//! The cases of a task: rows of its data, or written in the file.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::task_files::field_path::{FieldPath, paths_of, plain};
use crate::task_files::mistake::MistakeList;
use crate::task_files::rows;
use crate::task_files::table::{FileSection, json};

/// One case with its fields.
#[derive(Clone, Debug)]
pub(crate) struct DeclaredRow {
    pub(crate) id: String,
    pub(crate) fields: Map<String, Value>,
    /// Where it stands, or where its data are named.
    pub(crate) place: Range<usize>,
}

/// The cases of a task; what is wrong with them goes to the list.
pub(crate) fn of_task(
    task: &FileSection<'_>,
    read_text: &dyn Fn(&str) -> Result<String, String>,
    mistakes: &MistakeList<'_>,
) -> Vec<DeclaredRow> {
    let mut cases: Vec<DeclaredRow> = Vec::new();
    for (number, case) in task.sections("case").iter().enumerate() {
        let mut fields = case.row();
        let id = fields.shift_remove("id").map_or_else(|| (number + 1).to_string(), |id| plain(&id));
        cases.push(DeclaredRow { id, fields, place: case.place.clone() });
    }
    if let Some(data) = task.section("cases") {
        match of_data(&data, read_text) {
            Ok(rows) => cases.extend(rows),
            Err((place, message)) => mistakes.at(&place, message),
        }
    }
    let mut seen = HashMap::new();
    for (number, case) in cases.iter().enumerate() {
        if let Some(earlier) = seen.insert(case.id.clone(), number) {
            let message = format!("the cases {} and {} have the id `{}`", earlier + 1, number + 1, case.id);
            mistakes.at(&case.place, message);
        }
        if !acceptable(&case.id) {
            let message = format!("the id `{}` of a case may have 1 to 200 visible characters", case.id);
            mistakes.at(&case.place, message);
        }
    }
    cases
}

fn acceptable(id: &str) -> bool {
    !id.is_empty() && id.chars().count() <= 200 && !id.chars().any(char::is_control)
}

fn of_data(
    data: &FileSection<'_>,
    read_text: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Vec<DeclaredRow>, (Range<usize>, String)> {
    let file = data.text("file").ok_or_else(|| (data.place.clone(), "`cases` needs `file`".to_owned()))?;
    let parsed =
        |path: &str, place: &Range<usize>| FieldPath::parse(path).map_err(|message| (place.clone(), message));
    let path = |key: &str| {
        let named = data.text(key).map(|text| Ok((parsed(text.value, &text.place)?, text)));
        named.transpose()
    };
    let at_file = |message| (file.place.clone(), message);
    rows::expect_text(file.value).map_err(at_file)?;
    let text = read_text(file.value).map_err(at_file)?;
    let all = rows::read(file.value, &text, path("rows")?.map(|(path, _)| path).as_ref()).map_err(at_file)?;
    let fields = data.texts_by_name("fields").into_iter();
    let fields = fields.map(|(name, path)| Ok((name, parsed(path.value, &path.place)?, path)));
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    let own_id = path("id")?;
    let by_default = FieldPath::parse("id").map_err(at_file)?;
    let wanted = data.by_name("where").into_iter();
    let wanted = wanted.map(|(path, value)| Ok((parsed(path, &value.place)?, plain(&json(value.value)))));
    let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
    let skip = data.whole("skip").map_or(0, |skip| skip.value);
    let take = data.whole("take").map_or(usize::MAX, |take| take.value);
    let fits = |row: &Value| {
        wanted.iter().all(|(path, value)| path.value(row).is_some_and(|found| plain(&found) == *value))
    };
    let chosen = all.into_iter().enumerate().filter(|(_, row)| fits(row)).skip(skip).take(take);
    let mut cases = Vec::new();
    for (number, row) in chosen {
        let missing = |path: &str, place: &Range<usize>| {
            let message =
                format!("row {} has nothing at `{path}`; it has: {}", number + 1, paths_of(&row).join(", "));
            (place.clone(), message)
        };
        let id = match &own_id {
            Some((path, told)) => path.value(&row).ok_or_else(|| missing(told.value, &told.place))?,
            None => by_default.value(&row).unwrap_or_else(|| (number + 1).into()),
        };
        let mut of_case = row.as_object().cloned().unwrap_or_default();
        of_case.shift_remove("id");
        for (name, path, written) in &fields {
            let value = path.value(&row).ok_or_else(|| missing(written.value, &written.place))?;
            of_case.insert((*name).to_owned(), value);
        }
        cases.push(DeclaredRow { id: plain(&id), fields: of_case, place: file.place.clone() });
    }
    if cases.is_empty() {
        return Err((file.place.clone(), format!("no row of `{}` is left", file.value)));
    }
    Ok(cases)
}
