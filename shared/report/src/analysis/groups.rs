//! Groups of tasks compared on one score, as table 4 of Meyer et al. (2024) does: all values of the tasks of one aspect
//! against all of another, by Welch's test.

use domain::glob::Glob;

use crate::dialogues::{ColumnId, Dialogues};
use crate::stats::{TTest, effect, welch};

/// What came out.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupComparison {
    pub n: (usize, usize),
    pub means: (Option<f64>, Option<f64>),
    pub test: Option<TTest>,
    /// Hedges' g, positive for the first group.
    pub g: Option<f64>,
}

/// Compares the tasks of two globs on one score, over these columns together.
pub fn compare(all: &Dialogues, columns: &[ColumnId], a: &str, b: &str, score: &str) -> GroupComparison {
    let values = |glob: &str| -> Vec<f64> {
        let glob = Glob::new(glob);
        all.iter()
            .filter(|dialogue| {
                columns.contains(&dialogue.column) && glob.matches(&all.tasks[dialogue.task].label)
            })
            .filter_map(|dialogue| all.score(dialogue, score))
            .collect()
    };
    let (a, b) = (values(a), values(b));
    let mean = crate::stats::describe::mean;
    GroupComparison {
        n: (a.len(), b.len()),
        means: (mean(&a), mean(&b)),
        test: welch(&a, &b),
        g: effect::hedges_g(&a, &b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn tasks_of_two_aspects_are_pooled_over_models() {
        let all = matrix(&["a", "b"], &["X-schema", "Y-schema", "X-subgraph"], 10, |model, task, n| {
            f64::from(n % 2) / 10.0 + model as f64 / 100.0 + if task == 2 { 0.5 } else { 0.0 }
        });
        let found = compare(&all, &[0, 1], "*-subgraph", "*-schema", "f1");
        assert_eq!(found.n, (20, 40));
        assert!(found.test.unwrap().p < 1e-9 && found.g.unwrap() > 5.0);
        assert_eq!(compare(&all, &[0], "none", "*", "f1").test, None);
    }
}
