//! How each model was asked: sampling, server, and what else its records know of it.

use crate::dialogues::Dialogues;
use crate::setups::SetupFact;
use crate::table::{Cell, Table};
use crate::view::View;

/// See [`table`].
pub static VIEW: View = View {
    name: "configuration",
    about: "How each model was asked: sampling, server, and what else its records know of it",
    is_summary: true,
    table: |all, options| options.order.of(table(all)),
};

/// One row per model.
pub fn table(all: &Dialogues) -> Table {
    let columns = Table::default().left(["model"]).left(SetupFact::ALL.map(SetupFact::name));
    let mut table = columns.titled("Configuration of models");
    for (column, heading) in all.headings().iter().enumerate() {
        let known = SetupFact::ALL.map(|fact| all.setup(column).and_then(|setup| setup.told(fact)));
        let cells = known.map(|told| told.map_or(Cell::Empty, Cell::from));
        table.row([Cell::from(heading.as_str())].into_iter().chain(cells));
    }
    table.notes.push(
        "As records say it: what they do not say is not known. Result files of LLM-KG-Bench name no sampling; its runs left it to \
         the servers."
            .to_owned(),
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn what_is_not_known_is_empty() {
        let mut all = matrix(&["a", "b"], &["t"], 1, |_, _, _| 1.0);
        all.note(1, SetupFact::Sampling, "temperature 0");
        let table = table(&all);
        assert_eq!(table.rows()[0][6], Cell::Empty);
        assert_eq!(table.rows()[1][6].shown(), "temperature 0");
        let kept = all.select(|column| column.name == "b", |_| true);
        assert!(kept.setup(0).is_some(), "a selection keeps what is known");
    }
}
