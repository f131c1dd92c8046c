//! Tables as JSON: an object with title, notes, and one object per row.

use serde_json::{Map, Value, json};

use super::{Cell, Table};

impl Table {
    /// The table as JSON: numbers with all digits, `null` for unknown values, no total.
    pub fn to_json(&self) -> Value {
        let row = |cells: &Vec<Cell>| -> Map<String, Value> {
            let cells = self.headings.iter().zip(cells);
            cells
                .map(|(heading, cell)| {
                    let value = match cell {
                        Cell::Empty => Value::Null,
                        Cell::Text(text) => json!(text),
                        Cell::Flag(flag) => json!(flag),
                        Cell::Count(count) => json!(count),
                        Cell::Number(..) | Cell::Placed(..) | Cell::Told(..) => json!(cell.value()),
                        Cell::Time(time) => json!(time.to_string()),
                    };
                    (heading.name.clone(), value)
                })
                .collect()
        };
        json!({ "title": self.title, "notes": self.notes, "rows": self.body().iter().map(row).collect::<Vec<_>>() })
    }
}

#[cfg(test)]
mod tests {
    use crate::table::tests::example;

    #[test]
    fn rows_are_objects() {
        let json = example().to_json();
        assert_eq!(json["rows"][0]["mean"], 0.123_456);
        assert_eq!(json["rows"][1]["n"], serde_json::Value::Null);
        assert_eq!(json["rows"].as_array().unwrap().len(), 2);
        assert_eq!(json["notes"][0], "Read with care.");
    }
}
