//! The plots of dialogues, those of the articles on LLM-KG-Bench.
//!
//! Every plot is a function of dialogues. Its title says what it shows, and a legend below explains its marks. Every
//! mark has its value in a tooltip.

mod boxes;
mod compass;
mod sizes;

use crate::analysis::scheme::Scheme;
use crate::dialogues::{Dialogues, TaskId};
use crate::draw::{Breadth, PALETTE, Svg};

/// Every plot, in the order of a page.
pub static ALL: [&Plot; 3] = [&compass::PLOT, &sizes::PLOT, &boxes::PLOT];

/// The colour of every column: one per family, in the order of their first appearance. They repeat from the eighth
/// family on, so colour is never the only distinction.
fn colours(all: &Dialogues) -> Vec<&'static str> {
    let mut families: Vec<&str> = Vec::new();
    all.columns
        .iter()
        .map(|column| {
            let known = families.iter().position(|family| *family == column.family);
            let place = known.unwrap_or_else(|| {
                families.push(&column.family);
                families.len() - 1
            });
            PALETTE[place % PALETTE.len()]
        })
        .collect()
}

/// A note for plots that mix exercises.
fn mixed(all: &Dialogues) -> Option<&'static str> {
    (all.exercise_sets().len() > 1)
        .then_some("Models on different exercises cannot be compared with each other.")
}

/// A plot of dialogues, or one for each of their tasks.
pub struct Plot {
    /// What a page calls it; a plot of one task is called like the task.
    pub heading: &'static str,
    /// Whether a page shows it to everybody, not only to those who open it.
    pub is_open: bool,
    /// Draws it; `scheme` has the categories of compasses. What would show nothing is left out.
    pub draw: fn(&Dialogues, &Scheme, Breadth) -> Vec<DrawnPlot>,
}

/// A plot as a file or as a part of a page.
pub struct DrawnPlot {
    /// Its file's name without what comes after the dot. Labels of tasks in it are as they are.
    pub file: String,
    /// The task that it is about, if it is about one.
    pub task: Option<TaskId>,
    pub svg: Svg,
}

impl DrawnPlot {
    /// The only one of its kind.
    pub(crate) fn one(file: &str, svg: Svg) -> Vec<Self> {
        vec![Self { file: file.to_owned(), task: None, svg }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scheme::{bundled, named};
    use crate::dialogues::testing::matrix;
    use crate::draw::Breadth;

    #[test]
    fn every_plot_can_be_drawn_and_has_a_file_of_its_own() {
        let scheme = named(&bundled(), "semantic").unwrap();
        let all = matrix(&["m-1B", "n-2B"], &["RdfFriendCount-nt-1", "t"], 3, |_, _, _| 0.5);
        let drawn: Vec<_> = ALL.iter().flat_map(|plot| (plot.draw)(&all, &scheme, Breadth::Wide)).collect();
        let files: std::collections::BTreeSet<&str> = drawn.iter().map(|plot| plot.file.as_str()).collect();
        assert_eq!(files.len(), drawn.len(), "{files:?}");
        assert!(
            drawn.iter().all(|plot| plot.svg.document().starts_with("<svg") && !plot.svg.title().is_empty())
        );
        assert_eq!(drawn.iter().filter(|plot| plot.task.is_some()).count(), all.tasks.len());
        // Of no dialogues they are empty, and no fault.
        ALL.iter().for_each(|plot| drop((plot.draw)(&Dialogues::default(), &scheme, Breadth::Narrow)));
    }
}
