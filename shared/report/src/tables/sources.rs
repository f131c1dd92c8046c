//! Where numbers come from: the runs and files that were read, and how each model was asked.

use crate::dialogues::{Dialogues, SetupFact};
use crate::table::{Cell, Table};
use crate::views::View;

/// One row per run or result file, with notes below.
pub fn table(all: &Dialogues) -> Table {
    let mut table = Table::default()
        .left(["source", "exercises"])
        .right(["dialogues", "planned"])
        .left(["started", "scored by", "configuration", "protected"])
        .titled("Summary");
    for source in &all.sources {
        table.row([
            Cell::from(source.name.as_str()),
            Cell::from(source.exercises.to_string()),
            Cell::Count(source.dialogues),
            Cell::count(source.planned),
            source.started.map_or(Cell::Empty, Cell::Time),
            Cell::from(source.scorers.join("; ")),
            Cell::from(source.configuration.clone().unwrap_or_default()),
            Cell::from(if source.protected { "yes" } else { "no" }),
        ]);
    }
    table.notes.push(format!(
        "{} dialogues, {} models, {} tasks. Times are UTC.",
        all.len(),
        all.columns.len(),
        all.tasks.len()
    ));
    table.notes.extend(remarks(all));
    table
}

/// What has to be known about the numbers.
pub fn remarks(all: &Dialogues) -> Vec<String> {
    let mut remarks = Vec::new();
    if all.exercise_sets().len() > 1 {
        remarks.push("Several sets of exercises: compare models only within one of them.".to_owned());
    }
    let share = |count: u64| 100.0 * count as f64 / all.len().max(1) as f64;
    remarks.extend(
        all.unscored().into_iter().map(|(reason, count)| {
            format!("{count} dialogues have no score ({:.1} %): {reason}", share(count))
        }),
    );
    let again = all.iter().filter(|dialogue| dialogue.attempt > 1).count();
    if again > 0 {
        remarks.push(format!("{again} dialogues were asked again after a worker was lost."));
    }
    remarks.extend(all.warnings.iter().cloned());
    remarks
}

/// See [`configuration`].
pub static VIEW: View = View {
    name: "configuration",
    about: "How each model was asked: sampling, server, and what else its records know of it",
    table: |all, options| options.order.of(configuration(all)),
};

/// One row per model.
pub fn configuration(all: &Dialogues) -> Table {
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
    use crate::dialogues::{Exercises, SourceInfo};

    #[test]
    fn sources_and_warnings_are_told() {
        let mut all = matrix(&["m"], &["t"], 2, |_, _, _| 0.5);
        all.sources.push(SourceInfo {
            name: "run r".into(),
            exercises: Exercises::Published,
            dialogues: 2,
            planned: Some(3),
            scorers: vec!["1".into()],
            started: Some("2026-11-22T10:00:00Z".parse().unwrap()),
            configuration: None,
            protected: true,
        });
        all.warnings.push("run r has 2 of 3 dialogues".into());
        let table = table(&all);
        assert_eq!(table.rows()[0][4].shown(), "2026-11-22 10:00:00");
        assert_eq!(table.rows()[0][7].shown(), "yes");
        assert_eq!(table.notes.last().unwrap(), "run r has 2 of 3 dialogues");
    }

    #[test]
    fn what_is_not_known_is_empty() {
        let mut all = matrix(&["a", "b"], &["t"], 1, |_, _, _| 1.0);
        all.setup_of(1).note(SetupFact::Sampling, "temperature 0");
        let table = configuration(&all);
        assert_eq!(table.rows()[0][6], Cell::Empty);
        assert_eq!(table.rows()[1][6].shown(), "temperature 0");
        let kept = all.select(|column| column.name == "b", |_| true);
        assert!(kept.setup(0).is_some(), "a selection keeps what is known");
    }
}
