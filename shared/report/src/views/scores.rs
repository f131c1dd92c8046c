//! Mean headline scores by task and model: the table at the end of a run.

use std::cmp::Ordering;

use domain::control::{BenchmarkView, Better, CellView, ModelView, RowKind};
use domain::ranking::Contender;
use domain::spelling;
use domain::{Mean, TaskLabel};

use crate::analysis::placing;
use crate::dialogues::Dialogues;
use crate::table::{Cell, Table};
use crate::views::{View, ViewError};

/// With more models than this, models become rows, because terminals have no room for more columns.
pub const COLUMNS_MAX: usize = 6;

/// Digits of a mean behind the point, for people.
const DIGITS: usize = 3;

const TITLE: &str = "Mean scores";

/// See [`Grid`].
pub static VIEW: View = View {
    name: "scores",
    about: "Mean headline score of every model on every task",
    table: |all, options| {
        let sort = match options.order.column {
            None => Sort::Given,
            Some("mean") => Sort::Mean,
            Some("name") => Sort::Name,
            Some(task) => Sort::Task(task.to_owned()),
        };
        let grid = Grid::of(all).sorted(&sort, options.order.is_reversed).map_err(ViewError::Order)?;
        Ok(if options.is_for_programs { grid.long() } else { grid.table() })
    },
};

/// Means by task and model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    tasks: Vec<TaskRow>,
    models: Vec<ModelColumn>,
    /// By task, then model.
    cells: Vec<Vec<Score>>,
    /// Whether rows are tasks: a mean of stages and results says nothing.
    has_mean: bool,
    /// Below the table.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct TaskRow {
    label: String,
    /// Its headline score, if known.
    score: Option<String>,
}

/// A model on a task.
#[derive(Clone, Debug, Default, PartialEq)]
struct Score {
    mean: Mean,
    scored: u64,
    failed: u64,
    planned: u64,
    /// The mean for people, with what it covers.
    shown: String,
}

impl Score {
    fn of(cell: &CellView) -> Self {
        let CellView { scored, failed, planned, .. } = *cell;
        Self { mean: cell.covered_mean(), scored, failed, planned, shown: mean_of_cell(cell) }
    }

    /// Empty if nothing was planned and there are no dialogues.
    fn cell(&self) -> Cell {
        if self.planned == 0 { Cell::Empty } else { Cell::Told(self.shown.clone(), self.mean.value) }
    }
}

#[derive(Clone, Debug, PartialEq)]
struct ModelColumn {
    name: String,
    /// Index of its set of exercises: models on different sets are not ranked together.
    set: usize,
    total: Cell,
}

/// The order of models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// As in the input.
    #[default]
    Given,
    /// The best mean first, of the models that can be ranked.
    Mean,
    Name,
    /// The best on a task first, of the models that can be ranked.
    Task(String),
}

impl Grid {
    /// The means of a run. `score_of` returns the headline of a task, if known.
    pub fn of_view(view: &BenchmarkView, score_of: impl Fn(&TaskLabel) -> Option<String>) -> Self {
        // Cells come in the order of the plan, task by task.
        let tasks: Vec<&[CellView]> = view.cells.chunk_by(|a, b| a.task == b.task).collect();
        let column = |model: &ModelView| ModelColumn {
            name: model.model.to_string(),
            set: 0,
            total: Cell::Told(mean_of_model(model), model.mean.value),
        };
        let row = |cells: &&[CellView]| {
            let of_model = |model: &ModelView| {
                let cell = cells.iter().find(|cell| cell.model == model.model);
                cell.map(Score::of).unwrap_or_default()
            };
            view.models.iter().map(of_model).collect()
        };
        let task = |cells: &&[CellView]| TaskRow {
            label: cells[0].task.to_string(),
            score: score_of(&cells[0].task),
        };
        Self {
            tasks: tasks.iter().map(task).collect(),
            models: view.models.iter().map(column).collect(),
            cells: tasks.iter().map(row).collect(),
            has_mean: view.rows.iter().all(|row| row.kind == RowKind::Task),
            notes: Vec::new(),
        }
    }

    /// The means of dialogues.
    pub fn of(all: &Dialogues) -> Self {
        let (by_cell, headings, sets) = (all.cells(), all.headings(), all.exercise_sets());
        let (tasks, columns) = (0..all.tasks.len(), 0..all.columns.len());
        let cell = |column: usize, task: usize| {
            let dialogues = by_cell.get(&(column, task)).map_or(&[][..], Vec::as_slice);
            let scored = dialogues.iter().filter(|dialogue| dialogue.is_scored()).count() as u64;
            let mean = Mean::of(dialogues.iter().map(|dialogue| dialogue.headline));
            CellView {
                task: all.tasks[task].label.as_str().into(),
                model: headings[column].as_str().into(),
                scored,
                failed: dialogues.len() as u64 - scored,
                planned: all.planned(column, task).max(dialogues.len() as u64),
                mean: mean.value,
                missing: scored.saturating_sub(mean.covered),
                ..CellView::default()
            }
        };
        let model = |column: usize| {
            // A task that a model was never to be asked is no gap.
            let is_asked =
                |task: &usize| all.planned(column, *task) > 0 || by_cell.contains_key(&(column, *task));
            let asked: Vec<CellView> =
                tasks.clone().filter(is_asked).map(|task| cell(column, task)).collect();
            ModelView {
                model: headings[column].as_str().into(),
                scored: asked.iter().map(|cell| cell.scored).sum(),
                planned: asked.iter().map(|cell| cell.planned).sum(),
                mean: Mean::of(asked.iter().map(|cell| cell.mean)),
                ..ModelView::default()
            }
        };
        let of_task = |task: usize| columns.clone().map(move |column| (column, task));
        let view = BenchmarkView {
            models: columns.clone().map(model).collect(),
            cells: tasks.clone().flat_map(of_task).map(|(column, task)| cell(column, task)).collect(),
            ..BenchmarkView::default()
        };
        let mut grid = Self::of_view(&view, |label| {
            let task = all.tasks.iter().find(|task| task.label == label.as_str())?;
            Some(task.headline.clone()).filter(|score| !score.is_empty())
        });
        for (set, (_, columns)) in sets.iter().enumerate() {
            columns.iter().for_each(|&column| grid.models[column].set = set);
        }
        if sets.len() > 1 {
            grid.notes.push("Columns on different exercises cannot be compared with each other.".to_owned());
        }
        grid.notes
            .extend(sets.first().filter(|_| sets.len() == 1).map(|(set, _)| format!("Exercises: {set}.")));
        grid.notes.extend(
            all.unscored()
                .into_iter()
                .map(|(reason, count)| format!("not scored: {count} dialogues ({reason})")),
        );
        grid
    }

    /// Sorts the models, with `reversed` in reverse. By scores, those come last that have too few to be ranked, and those without
    /// any; ties keep their order. Models on different exercises stay apart, unless they are sorted by name.
    ///
    /// # Errors
    /// There is no such task; the message lists some tasks.
    pub fn sorted(mut self, sort: &Sort, reversed: bool) -> Result<Self, String> {
        let mut order: Vec<usize> = (0..self.models.len()).collect();
        let turned = |order: Ordering| if reversed { order.reverse() } else { order };
        let mut unranked = None;
        let mut best = |order: &mut Vec<usize>, contender: &dyn Fn(usize) -> Contender| {
            let better = if reversed { Better::Lower } else { Better::Higher };
            order.sort_by_key(|&at| self.models[at].set);
            let sets = order.chunk_by(|&a, &b| self.models[a].set == self.models[b].set);
            let placed: Vec<_> = sets.flat_map(|set| placing::among(set, contender, better)).collect();
            let names: Vec<String> = self.models.iter().map(|model| model.name.clone()).collect();
            unranked = placing::unranked(&placed, &names);
            *order = placed.iter().map(|place| place.column).collect();
        };
        match sort {
            Sort::Given if reversed => order.reverse(),
            Sort::Given => {}
            Sort::Name => order.sort_by(|&a, &b| turned(self.models[a].name.cmp(&self.models[b].name))),
            Sort::Mean => {
                best(&mut order, &|at| Contender::of_tasks(self.cells.iter().map(|row| row[at].mean)));
            }
            Sort::Task(task) => {
                let Some(row) = self.tasks.iter().position(|row| row.label == *task) else {
                    let offered = spelling::offer(task, self.tasks.iter().map(|row| row.label.as_str()));
                    return Err(format!("there is no task `{task}`; {offered}"));
                };
                best(&mut order, &|at| Contender::of(self.cells[row][at].mean, 0.0, 1.0));
            }
        }
        self.notes.extend(unranked);
        self.models = order.iter().map(|&at| self.models[at].clone()).collect();
        for row in &mut self.cells {
            *row = order.iter().map(|&at| row[at].clone()).collect();
        }
        Ok(self)
    }

    /// The table: tasks as rows or, with many models, models as rows.
    pub fn table(&self) -> Table {
        let mut table = if self.models.len() > COLUMNS_MAX { self.turned() } else { self.upright() };
        table.title = TITLE.to_owned();
        table.notes.clone_from(&self.notes);
        table
    }

    /// The table for programs: one row for each model on each task, in one shape for any number of models.
    pub fn long(&self) -> Table {
        let mut table =
            Table::default().left(["model", "task", "score"]).right(["mean", "scored", "failed", "planned"]);
        table.title = TITLE.to_owned();
        table.notes.clone_from(&self.notes);
        for (at, model) in self.models.iter().enumerate() {
            for (task, scores) in self.tasks.iter().zip(&self.cells) {
                let Score { mean, scored, failed, planned, .. } = scores[at];
                let score = task.score.as_deref().map_or(Cell::Empty, Cell::from);
                let mean = Cell::number(mean.value, DIGITS);
                let counts = [scored, failed, planned].map(Cell::Count);
                let names = [model.name.as_str(), task.label.as_str()].map(Cell::from);
                table.row(names.into_iter().chain([score, mean]).chain(counts));
            }
        }
        table
    }

    fn upright(&self) -> Table {
        let named = self.tasks.iter().any(|task| task.score.is_some());
        let models = self.models.iter().map(|model| &model.name);
        let mut table = Table::default().left(["task"]).left(named.then_some("score")).right(models);
        let score = |text: Option<&String>| named.then(|| Cell::from(text.cloned().unwrap_or_default()));
        for (task, cells) in self.tasks.iter().zip(&self.cells) {
            let head = [Some(Cell::from(task.label.as_str())), score(task.score.as_ref())];
            table.row(head.into_iter().flatten().chain(cells.iter().map(Score::cell)));
        }
        if !self.has_mean {
            return table;
        }
        let head = [Some(Cell::from("mean of tasks")), score(None)];
        table.total(head.into_iter().flatten().chain(self.models.iter().map(|model| model.total.clone())));
        table
    }

    fn turned(&self) -> Table {
        let has_mean = self.has_mean;
        let mut table = Table::default().left(["model"]).right(has_mean.then_some("mean of tasks"));
        for (number, task) in self.tasks.iter().enumerate() {
            let score = task.score.as_ref().map(|score| format!(" ({score})")).unwrap_or_default();
            table.shortened(format!("{}{score}", task.label), (number + 1).to_string());
        }
        for (at, model) in self.models.iter().enumerate() {
            let cells = self.cells.iter().map(|row| row[at].cell());
            let total = has_mean.then(|| model.total.clone());
            table.row([Cell::from(model.name.as_str())].into_iter().chain(total).chain(cells));
        }
        table
    }
}

/// The mean of a model on a task, with its coverage and failures.
fn mean_of_cell(cell: &CellView) -> String {
    let mean = cell.covered_mean();
    match cell.failed {
        // What has no headline is counted.
        0 if mean.value.is_none() && cell.scored > 0 => format!("{}/{}", cell.scored, cell.planned),
        0 => mean.to_string(),
        // If all missing ones failed, the number of failures says enough.
        failed if cell.scored + failed >= cell.planned => match mean.value {
            Some(value) => format!("{value:.3} ({}/{}, {failed} failed)", mean.covered, mean.planned),
            None if cell.scored > 0 => format!("{}/{} ({failed} without)", cell.scored, cell.planned),
            None => format!("- ({failed} failed)"),
        },
        failed => format!("{mean} ({failed} failed)"),
    }
}

/// The mean of a model over its tasks, with its coverage: tasks, or dialogues if every task has some.
fn mean_of_model(model: &ModelView) -> String {
    covered(model.mean, model.scored, model.planned)
}

fn covered(mean: Mean, scored: u64, planned: u64) -> String {
    match mean.value {
        Some(value) if mean.is_whole() && scored < planned => {
            format!("{value:.3} ({scored}/{planned} dialogues)")
        }
        _ => mean.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use domain::control::RowView;

    use super::*;
    use crate::dialogues::testing::matrix;

    fn text(table: &Table) -> String {
        let mut out = Vec::new();
        table.write(None, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn many_models_become_rows_and_the_best_stands_first() {
        let names: Vec<String> = (0..7).map(|n| format!("m{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let all = matrix(&names, &["s", "t"], 2, |model, task, _| (model + 3 * task) as f64 / 10.0);
        let grid = Grid::of(&all).sorted(&Sort::Mean, false).unwrap();
        let shown = text(&grid.table());
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(
            lines[0].split_whitespace().collect::<Vec<_>>(),
            ["model", "mean", "of", "tasks", "1", "2"]
        );
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["m6", "0.750", "0.600", "0.900"]);
        assert!(shown.contains("1  s (f1)"), "{shown}");
        assert!(Grid::of(&all).sorted(&Sort::Task("x".into()), false).unwrap_err().contains("s, t"));
        let by_name = Grid::of(&all).sorted(&Sort::Name, false).unwrap();
        assert_eq!(by_name, Grid::of(&all));
        assert_eq!(Grid::of(&all).sorted(&Sort::Mean, true).unwrap(), by_name, "the worst first");
    }

    #[test]
    fn programs_get_one_shape_for_any_number_of_models() {
        for models in [1, 7] {
            let names: Vec<String> = (0..models).map(|n| format!("m{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut all = matrix(&names, &["s"], 2, |_, _, _| 0.5);
            all.plan(0, 0, 4);
            all.task("t", "RdfFriendCount", &["f1"]);
            let mut out = Vec::new();
            Grid::of(&all).long().write_csv(&mut out).unwrap();
            let lines = String::from_utf8(out).unwrap();
            let lines: Vec<&str> = lines.lines().take(3).collect();
            assert_eq!(
                lines,
                ["model,task,score,mean,scored,failed,planned", "m0,s,f1,0.5,2,0,4", "m0,t,f1,,0,0,0"]
            );
        }
    }

    #[test]
    fn the_best_from_three_of_twenty_stands_last_and_is_no_best() {
        let mut all = matrix(&["early", "a", "b"], &["s"], 3, |model, _, _| [1.0, 0.5, 0.4][model]);
        all.plan(0, 0, 20);
        for sort in [Sort::Mean, Sort::Task("s".to_owned())] {
            let grid = Grid::of(&all).sorted(&sort, false).unwrap();
            let names: Vec<&str> = grid.models.iter().map(|model| model.name.as_str()).collect();
            assert_eq!(names, ["a", "b", "early"]);
            assert!(
                grid.notes.iter().any(|note| note.contains("early (3 of 20 scores)")),
                "{:?}",
                grid.notes
            );
            let worst = Grid::of(&all).sorted(&sort, true).unwrap();
            assert_eq!(
                worst.models.iter().map(|model| model.name.as_str()).collect::<Vec<_>>(),
                ["b", "a", "early"]
            );
        }
        assert!(
            !Grid::of(&all).notes.iter().any(|note| note.contains("ranked")),
            "as given, nobody is ranked"
        );
    }

    #[test]
    fn stages_and_results_of_a_pipeline_have_no_mean() {
        for models in [2, 7] {
            let names: Vec<String> = (0..models).map(|n| format!("m{n}")).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let model = |name: &&str| ModelView { model: (*name).into(), ..ModelView::default() };
            let rows = [("ask", RowKind::Stage), ("= accuracy", RowKind::Result)];
            let cell = |row: &str, model: &str| CellView {
                task: row.into(),
                model: model.into(),
                scored: 2,
                planned: 2,
                mean: Some(0.5),
                ..CellView::default()
            };
            let view = BenchmarkView {
                models: names.iter().map(model).collect(),
                rows: rows
                    .map(|(name, kind)| RowView { name: name.into(), kind, ..RowView::default() })
                    .into(),
                cells: rows.iter().flat_map(|(row, _)| names.iter().map(|name| cell(row, name))).collect(),
                ..BenchmarkView::default()
            };
            let shown = text(&Grid::of_view(&view, |_| None).table());
            assert!(shown.contains("= accuracy") && !shown.contains("mean of tasks"), "{shown}");
        }
    }

    #[test]
    fn gaps_are_told_and_an_empty_table_is_one() {
        let mut all = matrix(&["m"], &["s"], 2, |_, _, _| 0.5);
        all.plan(0, 0, 4);
        all.task("t", "RdfFriendCount", &["f1"]);
        let shown = text(&Grid::of(&all).table());
        let lines: Vec<String> =
            shown.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for line in ["s f1 0.500 (2/4)", "t f1 -", "mean of tasks 0.500 (2/4 dialogues)"] {
            assert!(lines.iter().any(|found| found == line), "{line}: {shown}");
        }
        assert!(text(&Grid::of(&Dialogues::default()).table()).starts_with("task"));
    }

    #[test]
    fn means_say_what_they_cover() {
        let model = |scored: u64, planned: u64| ModelView {
            model: "m".into(),
            planned,
            scored,
            failed: 0,
            units_pending: 0,
            units_leased: 0,
            units_dead: 0,
            units_suspect: 0,
            workers: 1,
            parked: None,
            pace: domain::control::Pace::default(),
            blocked: None,
            mean: Mean::of((0..26).map(|task| (task < scored).then_some(0.148))),
            ..ModelView::default()
        };
        assert_eq!(mean_of_model(&model(26, 52)), "0.148 (26/52 dialogues)");
        assert_eq!(mean_of_model(&model(9, 26)), "0.148 (9/26)");
        let cell = |scored, failed| {
            let mean = (scored > 0).then_some(0.5);
            let (task, model) = ("t".into(), "m".into());
            mean_of_cell(&CellView {
                task,
                model,
                scored,
                failed,
                planned: 20,
                mean,
                missing: 0,
                odd: Vec::new(),
            })
        };
        assert_eq!(cell(20, 0), "0.500");
        assert_eq!(cell(7, 0), "0.500 (7/20)");
        assert_eq!(cell(18, 2), "0.500 (18/20, 2 failed)");
        assert_eq!(cell(5, 2), "0.500 (5/20) (2 failed)");
        assert_eq!(cell(0, 20), "- (20 failed)");
    }
}
