//! The tables of [`Dialogues`](crate::Dialogues) that are asked for by their names: a file for each or for those that belong
//! together, and their lines in [`ALL`].

pub mod combined;
pub mod configuration;
pub mod costs;
pub mod cut;
pub mod dialogues;
pub mod groups;
pub mod preferences;
pub mod scores;
pub mod statistics;

pub use scores::{Grid, Sort};

use crate::view::View;

/// Every table.
pub static ALL: [&View; 11] = [
    &scores::VIEW,
    &statistics::BY_MODEL,
    &statistics::VIEW,
    &preferences::VIEW,
    &preferences::TESTS,
    &combined::VIEW,
    &groups::VIEW,
    &costs::VIEW,
    &cut::VIEW,
    &configuration::VIEW,
    &dialogues::VIEW,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scheme::{bundled, named};
    use crate::dialogues::testing::matrix;
    use crate::view::{RowOrder, ViewError, ViewOptions};

    #[test]
    fn every_table_can_be_made_and_has_a_name_and_a_title_of_its_own() {
        let all =
            matrix(&["m", "n"], &["RdfFriendCount-turtle-1", "RdfFriendCount-jsonld-1"], 3, |_, _, _| 0.5);
        let scheme = named(&bundled(), "sparql-b").unwrap();
        let options = ViewOptions {
            scheme: &scheme,
            groups: &[],
            score: None,
            order: RowOrder::default(),
            is_wanted: true,
            is_for_programs: false,
        };
        let mut known = Vec::new();
        for view in ALL {
            let table = (view.table)(&all, &options).unwrap();
            let names = (view.name, table.title.clone());
            assert!(known.iter().all(|(name, title)| *name != names.0 && *title != names.1), "{names:?}");
            assert!(
                !view.about.is_empty() && !view.about.ends_with('.'),
                "{}: the help has no full stop",
                view.name
            );
            known.push(names);
            let order = RowOrder { column: Some("no such column"), is_reversed: false };
            let unknown = (view.table)(&all, &ViewOptions { order, ..options }).unwrap_err();
            assert!(matches!(unknown, ViewError::Order(_)), "{}: {unknown}", view.name);
        }
    }
}
