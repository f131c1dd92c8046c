//! Two models, or one model in two runs, dialogue by dialogue.
//!
//! Dialogues with the same task, case and number were asked the same, so their scores are compared as pairs. The overall
//! interval draws cases, as every interval here does.

use std::collections::HashMap;

use crate::dialogues::{ColumnId, Dialogues, ReportedDialogue, TaskId};
use crate::stats::bootstrap::{Interval, clustered_mean, seed_of};
use crate::stats::{TTest, Wilcoxon, effect, holm, paired_t, wilcoxon};

/// Pairs of one task, or of all.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    /// Pairs with a score on both sides.
    pub n: usize,
    /// Dialogues with a score on one side only.
    pub unpaired: usize,
    /// Means of both sides over the pairs.
    pub means: Option<(f64, f64)>,
    /// Second less first.
    pub difference: Option<f64>,
    /// Of the difference, by drawing cases.
    pub interval: Option<Interval>,
    pub test: Option<TTest>,
    pub ranks: Option<Wilcoxon>,
    /// Mean difference in units of its deviation.
    pub effect: Option<f64>,
    /// P of the t test corrected by Holm for all tasks.
    pub corrected: Option<f64>,
}

/// A comparison, task by task and over all.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    pub tasks: Vec<(TaskId, Pairs)>,
    pub all: Pairs,
}

/// Compares two columns on the tasks that both have.
pub fn compare(all: &Dialogues, a: ColumnId, b: ColumnId) -> Comparison {
    let name = |column: ColumnId| all.columns[column].model.as_str();
    let (mut every, mut tasks, mut unpaired) = (Vec::new(), Vec::new(), 0);
    for task in 0..all.tasks.len() {
        let (first, second) = (scored(all, a, task), scored(all, b, task));
        if first.is_empty() || second.is_empty() {
            continue;
        }
        let mut pairs: Vec<(u32, f64, f64)> =
            first.iter().filter_map(|(key, score)| Some((key.0, *score, *second.get(key)?))).collect();
        pairs.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)).then(a.2.total_cmp(&b.2)));
        let single = first.len() + second.len() - 2 * pairs.len();
        let seed = seed_of(&[name(a), name(b), &all.tasks[task].label]);
        tasks.push((task, sum_up(&pairs, single, seed)));
        unpaired += single;
        every.extend(pairs);
    }
    let ps: Vec<f64> = tasks.iter().map(|(_, pairs)| pairs.test.map_or(f64::NAN, |test| test.p)).collect();
    for ((_, pairs), p) in tasks.iter_mut().zip(holm(&ps)) {
        pairs.corrected = Some(p).filter(|p| !p.is_nan());
    }
    Comparison { tasks, all: sum_up(&every, unpaired, seed_of(&[name(a), name(b)])) }
}

/// The scores of a model on a task, by case and by how often the case had come before.
fn scored(all: &Dialogues, column: ColumnId, task: TaskId) -> HashMap<(u32, u32), f64> {
    let mut dialogues: Vec<&ReportedDialogue> = all.of(column, task).collect();
    dialogues.sort_by_key(|dialogue| dialogue.iteration);
    let mut turns: HashMap<u32, u32> = HashMap::new();
    let mut found = HashMap::new();
    for dialogue in dialogues {
        let turn = turns.entry(dialogue.case).or_default();
        if let Some(headline) = dialogue.headline {
            found.insert((dialogue.case, *turn), headline);
        }
        *turn += 1;
    }
    found
}

fn sum_up(pairs: &[(u32, f64, f64)], unpaired: usize, seed: u64) -> Pairs {
    let differences: Vec<f64> = pairs.iter().map(|(_, a, b)| b - a).collect();
    let clustered: Vec<(u32, f64)> = pairs.iter().map(|(case, a, b)| (*case, b - a)).collect();
    let mean = |of: fn(&(u32, f64, f64)) -> f64| {
        crate::stats::describe::mean(&pairs.iter().map(of).collect::<Vec<_>>())
    };
    let means = mean(|pair| pair.1).zip(mean(|pair| pair.2));
    Pairs {
        n: pairs.len(),
        unpaired,
        means,
        difference: means.map(|(a, b)| b - a),
        interval: clustered_mean(&clustered, seed),
        test: paired_t(&differences),
        ranks: wilcoxon(&differences),
        effect: effect::paired_d(&differences),
        corrected: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialogues::testing::matrix;

    #[test]
    fn pairs_are_of_the_same_case_and_turn() {
        let all = matrix(&["a", "b"], &["s", "t"], 20, |model, task, n| {
            // The second model is better by a tenth on one task, and the cases differ much more than that.
            f64::from(n % 5) / 5.0
                + if model == 1 && task == 0 { 0.1 + f64::from(n % 3) / 1000.0 } else { 0.0 }
        });
        let found = compare(&all, 0, 1);
        assert_eq!((found.tasks.len(), found.all.n, found.all.unpaired), (2, 40, 0));
        let better = &found.tasks[0].1;
        assert!(better.test.unwrap().p < 1e-9 && better.corrected.unwrap() < 1e-8);
        assert!(better.interval.unwrap().low > 0.1);
        let equal = &found.tasks[1].1;
        assert_eq!((equal.test, equal.difference, equal.ranks), (None, Some(0.0), None));
        let back = compare(&all, 1, 0);
        assert!((back.all.difference.unwrap() + found.all.difference.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn missing_dialogues_are_counted_and_missing_tasks_left_out() {
        let mut all = matrix(&["a", "b"], &["s"], 10, |_, _, n| f64::from(n) / 10.0);
        let task = all.task("only-a", "RdfFriendCount", &["f1"]);
        let scores = serde_json::json!({ "f1": 1.0 });
        all.add(crate::dialogues::testing::entry(0, task, 0, scores.as_object().unwrap()));
        all.add(crate::dialogues::testing::entry(0, 0, 10, scores.as_object().unwrap()));
        let found = compare(&all, 0, 1);
        assert_eq!((found.tasks.len(), found.all.n, found.all.unpaired), (1, 10, 1));
        assert_eq!(compare(&all, 0, 0).all.difference, Some(0.0));
    }
}
