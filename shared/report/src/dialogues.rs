//! All dialogues that tables and reports are computed from, of runs and of published files.
//!
//! A *column* is a model from one origin on one set of exercises. Two runs of a model are two columns; a published
//! model is one column, however many files its dialogues are in; and scores on different exercises never share a
//! column. `input` fills this table; nothing here reads files.

use std::collections::{HashMap, HashSet};
use std::iter::once;
use std::sync::{Arc, OnceLock};

use domain::{Oddities, Scores};
use jiff::Timestamp;
use results::names::Names;
use tasks::{Marks, ScoreOutOfRange, TaskClass};

use crate::analysis::cells::{CellStatistics, ColumnStatistics};
use crate::analysis::placing::RankInterval;
use crate::costs::Prices;

mod column;
pub(crate) mod shapes;

use self::column::ModelSetup;
pub(crate) use self::column::published_name;
pub use self::column::{Column, Exercises, Origin, SetupFact};
use self::shapes::{ScorePlace, Shapes};

/// Index of a column in [`Dialogues::columns`].
pub type ColumnId = usize;

/// Index of a task in [`Dialogues::tasks`].
pub type TaskId = usize;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedTask {
    pub label: String,
    /// Name of its class.
    pub class: String,
    /// The score that stands for a dialogue, such as `max.combined`; empty if the class is unknown.
    pub headline: String,
    /// Its class, if it is known.
    known: Option<TaskClass>,
}

impl ReportedTask {
    /// The value of its score that full marks have; 1 if the class is unknown.
    pub fn full_marks(&self) -> f64 {
        self.known.map_or(Marks::UNIT, |class| class.marks).full
    }

    /// Checks that scores lie in the ranges of the class. Nothing is known about the scores of an unknown class.
    ///
    /// # Errors
    /// The first score that does not.
    pub fn check(&self, scores: &Scores) -> Result<(), ScoreOutOfRange> {
        self.known.map_or(Ok(()), |class| class.check(scores))
    }
}

/// One dialogue. Whoever adds one makes it [`of`](Self::of) its place and says what is known; the table fills in the rest.
#[derive(Clone, Debug, Default)]
pub struct ReportedDialogue {
    pub column: ColumnId,
    pub task: TaskId,
    /// Equal numbers mean the same case of the same task.
    pub case: u32,
    pub iteration: u32,
    /// The headline score, if there is one.
    pub headline: Option<f64>,
    /// Number of prompts with an answer.
    pub rounds: u32,
    /// Tokens of all prompts, if the server reported all of them.
    pub prompt_tokens: Option<u64>,
    /// Of these, the tokens that the server found in its cache, as far as it says so.
    pub cached_tokens: u64,
    /// Tokens of all answers, if the server reported all of them.
    pub completion_tokens: Option<u64>,
    pub seconds: Option<f64>,
    /// What is odd about its answers.
    pub odd: Oddities,
    /// Attempt of the unit, from 1.
    pub attempt: u32,
    /// Its position among all dialogues read, by which its texts are found.
    pub place: u32,
    /// Why it has no scores; see [`Dialogues::reason`].
    pub(crate) reason: Option<u32>,
    pub(crate) scores: ScorePlace,
}

impl ReportedDialogue {
    /// A dialogue of which nothing else is known.
    pub fn of(column: ColumnId, task: TaskId, iteration: u32) -> Self {
        Self { column, task, iteration, attempt: 1, ..Self::default() }
    }

    pub fn is_scored(&self) -> bool {
        self.reason.is_none()
    }
}

/// What is known of a run or a set of files that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceInfo {
    pub name: String,
    pub exercises: Exercises,
    pub dialogues: u64,
    /// Number of dialogues planned, if known.
    pub planned: Option<u64>,
    /// Versions of the scoring rules in its records, sorted.
    pub scorers: Vec<String>,
    /// When it was planned; for files, when the first dialogue began.
    pub started: Option<Timestamp>,
    /// Hash of the configuration, if there is one.
    pub configuration: Option<String>,
    /// Whether its texts may be written only encrypted or redacted.
    pub protected: bool,
}

/// All dialogues of a report, by column and task.
#[derive(Clone, Debug, Default)]
pub struct Dialogues {
    pub columns: Vec<Column>,
    pub tasks: Vec<ReportedTask>,
    pub sources: Vec<SourceInfo>,
    /// Notes that a reader of the numbers must see.
    pub warnings: Vec<String>,
    /// By which costs are computed; without them, nothing has a cost.
    pub prices: Arc<Prices>,
    list: Vec<ReportedDialogue>,
    cases: Names,
    reasons: Names,
    shapes: Shapes,
    planned: HashMap<(ColumnId, TaskId), u64>,
    /// Positions of the dialogues of a model on a task in the list, in order.
    places: HashMap<(ColumnId, TaskId), Vec<u32>>,
    /// How columns were asked, where it is known.
    setups: HashMap<ColumnId, ModelSetup>,
    /// Results computed from these dialogues, until they change: many tables and plots need the same ones.
    pub(crate) memo: Memo,
}

/// Cached results, see [`cells`](crate::analysis::cells) and [`ranks`](crate::analysis::placing).
#[derive(Clone, Debug, Default)]
pub(crate) struct Memo {
    pub(crate) statistics: OnceLock<Vec<CellStatistics>>,
    pub(crate) totals: OnceLock<Vec<ColumnStatistics>>,
    pub(crate) ranks: OnceLock<Vec<Option<RankInterval>>>,
}

/// Maximum number of names in a title.
const TITLED_MAX: usize = 3;

/// The reason of a dialogue whose published evaluation raised an exception.
pub const NO_SCORES_RECORDED: &str = "no-scores-recorded";

/// The reason of a dialogue with a score outside the range that its class gives.
pub const OUT_OF_RANGE: &str = "score-out-of-range";

impl Dialogues {
    /// Returns the column with this model, origin and exercises; adds it if it is new.
    pub fn column(&mut self, column: Column) -> ColumnId {
        let same = |known: &Column| {
            (&known.model, &known.origin, &known.exercises)
                == (&column.model, &column.origin, &column.exercises)
        };
        self.columns.iter().position(same).unwrap_or_else(|| {
            self.memo = Memo::default();
            self.columns.push(column);
            self.columns.len() - 1
        })
    }

    /// Returns the task with this label; adds it if it is new.
    pub fn task(&mut self, label: &str, class: &str, headline: &[&str]) -> TaskId {
        self.tasks.iter().position(|task| task.label == label).unwrap_or_else(|| {
            self.memo = Memo::default();
            let version = TaskClass::version_of(class).unwrap_or_default();
            let known = TaskClass::resolve(class, version).ok();
            let (label, class) = (label.to_owned(), class.to_owned());
            self.tasks.push(ReportedTask { label, class, headline: headline.join("."), known });
            self.tasks.len() - 1
        })
    }

    /// Sets the number of dialogues planned of a model on a task.
    pub fn plan(&mut self, column: ColumnId, task: TaskId, dialogues: u64) {
        self.memo = Memo::default();
        *self.planned.entry((column, task)).or_default() += dialogues;
    }

    /// Number of dialogues planned of a model on a task; without a plan, the number of those that exist.
    pub fn planned(&self, column: ColumnId, task: TaskId) -> u64 {
        self.planned
            .get(&(column, task))
            .copied()
            .unwrap_or_else(|| self.places_of(column, task).len() as u64)
    }

    /// How a model was asked, to be completed.
    pub fn setup_of(&mut self, column: ColumnId) -> &mut ModelSetup {
        self.setups.entry(column).or_default()
    }

    /// How a model was asked; `None` if nothing is known.
    pub fn setup(&self, column: ColumnId) -> Option<&ModelSetup> {
        self.setups.get(&column)
    }

    /// Makes room for so many more dialogues.
    pub(crate) fn reserve(&mut self, dialogues: usize) {
        self.list.reserve(dialogues);
    }

    /// Adds a dialogue about this case, with its scores or why there are none. If the headline of its class must be between 0
    /// and 1 and is not, the dialogue counts as unscored, because one such number would distort a mean.
    pub fn add(&mut self, mut dialogue: ReportedDialogue, case: &str, outcome: Result<&Scores, String>) {
        self.memo = Memo::default();
        let task = &self.tasks[dialogue.task];
        dialogue.case = self.cases.number(&format!("{}\u{1f}{case}", task.label));
        dialogue.seconds = dialogue.seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
        dialogue.place = self.list.len() as u32;
        let checked = outcome.and_then(|scores| match scores {
            none if none.is_empty() => Err(NO_SCORES_RECORDED.to_owned()),
            scores => task.check(scores).map(|()| scores).map_err(|_| OUT_OF_RANGE.to_owned()),
        });
        match checked {
            Ok(scores) => {
                dialogue.scores = self.shapes.take(scores);
                dialogue.headline = self.shapes.find(dialogue.scores, &task.headline);
            }
            Err(reason) => dialogue.reason = Some(self.reasons.number(&reason)),
        }
        self.places.entry((dialogue.column, dialogue.task)).or_default().push(dialogue.place);
        self.list.push(dialogue);
    }

    /// All of them, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &ReportedDialogue> {
        self.list.iter()
    }

    /// Number of dialogues.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The dialogues of a model on a task.
    pub fn of(&self, column: ColumnId, task: TaskId) -> impl Iterator<Item = &ReportedDialogue> {
        self.places_of(column, task).iter().filter_map(|&place| self.list.get(place as usize))
    }

    fn places_of(&self, column: ColumnId, task: TaskId) -> &[u32] {
        self.places.get(&(column, task)).map_or(&[], Vec::as_slice)
    }

    /// All dialogues by column and task, to walk over the whole matrix.
    pub fn cells(&self) -> HashMap<(ColumnId, TaskId), Vec<&ReportedDialogue>> {
        self.places.keys().map(|&(column, task)| ((column, task), self.of(column, task).collect())).collect()
    }

    /// A score by its name, such as `f1` or `max.combined`.
    pub fn score(&self, dialogue: &ReportedDialogue, name: &str) -> Option<f64> {
        self.shapes.find(dialogue.scores, name)
    }

    /// The names of a dialogue's scores with their values.
    pub fn scores(&self, dialogue: &ReportedDialogue) -> impl Iterator<Item = (&str, f64)> {
        self.shapes.of(dialogue.scores)
    }

    /// Why a dialogue has no scores.
    pub fn reason(&self, dialogue: &ReportedDialogue) -> Option<&str> {
        self.reasons.text(dialogue.reason?)
    }

    /// The case of a dialogue, as its source calls it.
    pub fn case(&self, dialogue: &ReportedDialogue) -> &str {
        let text = self.cases.text(dialogue.case).unwrap_or_default();
        text.split_once('\u{1f}').map_or(text, |(_, case)| case)
    }

    /// A heading for every column, no two equal: its name, with origin or exercises where names are equal, and the label
    /// of the model where several models have one name, as `a/Llama-3-8B` and `b/Llama-3-8B` do.
    pub fn headings(&self) -> Vec<String> {
        let kinds = |of: fn(&Column) -> String| {
            let mut kinds: Vec<String> = self.columns.iter().map(of).collect();
            kinds.sort_unstable();
            kinds.dedup();
            kinds.len()
        };
        let origins = kinds(|column| match &column.origin {
            Origin::Published => "published".to_owned(),
            Origin::Exported | Origin::Run(_) => "ours".to_owned(),
        });
        let exercises = kinds(|column| column.exercises.to_string());
        let heading = |column: &Column| {
            let mut marks: Vec<&str> = Vec::new();
            if origins > 1 && column.origin == Origin::Published {
                marks.push("published");
            }
            if exercises > 1 && column.exercises != Exercises::Published {
                marks.push(column.exercises.short());
            }
            if let Origin::Run(run) = &column.origin
                && self.columns.iter().any(|other| other != column && is_twin(other, column))
            {
                marks.push(run.as_str());
            }
            let shared = self.columns.iter().any(|other| other.is_namesake_of(column));
            let name = if shared { &column.model } else { &column.name };
            match marks.as_slice() {
                [] => name.clone(),
                marks => format!("{name} ({})", marks.join(", ")),
            }
        };
        distinct(self.columns.iter().map(heading))
    }

    /// What a page of them and of further benchmarks is called: their names and days, such as `run mine, 2026-11-29`.
    pub fn title<'a>(&'a self, further: impl Iterator<Item = &'a str>) -> String {
        let names: Vec<&str> =
            further.chain(self.sources.iter().map(|source| source.name.as_str())).collect();
        let mut title = names.iter().take(TITLED_MAX).copied().collect::<Vec<_>>().join(", ");
        if names.len() > TITLED_MAX {
            title.push_str(&format!(" and {} more", names.len() - TITLED_MAX));
        }
        let mut days: Vec<String> = self
            .sources
            .iter()
            .filter_map(|source| Some(source.started?.strftime("%Y-%m-%d").to_string()))
            .collect();
        days.sort_unstable();
        match (days.first(), days.last()) {
            (Some(first), Some(last)) if first != last => title.push_str(&format!(", {first} to {last}")),
            (Some(day), _) => title.push_str(&format!(", {day}")),
            _ => {}
        }
        if title.is_empty() { "Nothing was read".to_owned() } else { title }
    }

    /// The sets of exercises with their columns, in order. Comparisons stay within one set.
    pub fn exercise_sets(&self) -> Vec<(&Exercises, Vec<ColumnId>)> {
        let mut sets: Vec<(&Exercises, Vec<ColumnId>)> = Vec::new();
        for (id, column) in self.columns.iter().enumerate() {
            match sets.iter_mut().find(|(exercises, _)| **exercises == column.exercises) {
                Some((_, columns)) => columns.push(id),
                None => sets.push((&column.exercises, vec![id])),
            }
        }
        sets
    }

    /// Keeps only these columns and tasks.
    #[must_use]
    pub fn select(
        mut self,
        columns: impl Fn(&Column) -> bool,
        tasks: impl Fn(&ReportedTask) -> bool,
    ) -> Self {
        let columns = renumbered(&self.columns, columns);
        let tasks = renumbered(&self.tasks, tasks);
        let mut kept = columns.iter().map(Option::is_some);
        self.columns.retain(|_| kept.next().unwrap_or(false));
        let mut kept = tasks.iter().map(Option::is_some);
        self.tasks.retain(|_| kept.next().unwrap_or(false));
        self.list.retain_mut(|dialogue| match (columns[dialogue.column], tasks[dialogue.task]) {
            (Some(column), Some(task)) => {
                (dialogue.column, dialogue.task) = (column, task);
                true
            }
            _ => false,
        });
        self.memo = Memo::default();
        let setups = std::mem::take(&mut self.setups);
        self.setups =
            setups.into_iter().filter_map(|(column, setup)| Some((columns[column]?, setup))).collect();
        self.places.clear();
        for (dialogue, place) in self.list.iter().zip(0..) {
            self.places.entry((dialogue.column, dialogue.task)).or_default().push(place);
        }
        let planned = std::mem::take(&mut self.planned);
        self.planned = planned
            .into_iter()
            .filter_map(|((column, task), number)| Some(((columns[column]?, tasks[task]?), number)))
            .collect();
        self
    }

    /// Dialogues that have no scores, by reason, the most frequent first.
    pub fn unscored(&self) -> Vec<(&str, u64)> {
        count_reasons(self.list.iter().filter_map(|dialogue| self.reason(dialogue)))
    }
}

/// Counts reasons, the most frequent first.
pub fn count_reasons<'a>(reasons: impl Iterator<Item = &'a str>) -> Vec<(&'a str, u64)> {
    let mut counts: Vec<(&str, u64)> = Vec::new();
    for reason in reasons {
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counts.push((reason, 1)),
        }
    }
    counts.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    counts
}

/// The texts, with a number behind each that stood before.
pub fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut taken = HashSet::new();
    let free = |text: String| {
        let mut candidates = once(text.clone()).chain((2_u64..).map(|number| format!("{text} {number}")));
        candidates.find(|candidate| taken.insert(candidate.clone())).unwrap_or(text)
    };
    texts.map(free).collect()
}

fn is_twin(a: &Column, b: &Column) -> bool {
    a.name == b.name && a.exercises == b.exercises && matches!(a.origin, Origin::Run(_))
}

fn renumbered<T>(items: &[T], keep: impl Fn(&T) -> bool) -> Vec<Option<usize>> {
    let mut next = 0;
    let number = |item: &T| {
        keep(item).then(|| {
            next += 1;
            next - 1
        })
    };
    items.iter().map(number).collect()
}

#[cfg(test)]
pub mod testing;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::testing::{column, entry};
    use super::*;

    #[test]
    fn models_with_one_name_have_two_headings() {
        let mut all = Dialogues::default();
        for model in ["a/Llama-3-8B", "b/Llama-3-8B", "c/Qwen"] {
            let name = published_name(model);
            all.column(Column { name, ..column(model, Origin::Published) });
        }
        assert_eq!(all.headings(), ["a/Llama-3-8B", "b/Llama-3-8B", "Qwen"]);
        let texts = ["x", "x", "x 2"].map(str::to_owned);
        assert_eq!(distinct(texts.into_iter()), ["x", "x 2", "x 2 2"]);
    }

    #[test]
    fn a_headline_outside_its_range_is_no_score() {
        let mut all = Dialogues::default();
        let model = all.column(column("m", Origin::Published));
        let task = all.task("RdfFriendCount-nt-1", "RdfFriendCount", &["f1"]);
        for value in [json!(0.5), json!(7), json!("NaN")] {
            let scores = json!({ "f1": value });
            all.add(entry(model, task, 0), "c", Ok(scores.as_object().unwrap()));
        }
        let headlines: Vec<_> = all.iter().map(|dialogue| dialogue.headline).collect();
        assert_eq!(headlines, [Some(0.5), None, None]);
        assert_eq!(
            all.unscored(),
            [(OUT_OF_RANGE, 1)],
            "a headline that is no number is missing, not out of range"
        );
    }

    #[test]
    fn a_cosine_below_zero_is_a_score() {
        let mut all = Dialogues::default();
        let model = all.column(column("m", Origin::Published));
        let task = all.task("similarity", "JudgePairSimilarity", &["cosine"]);
        let scores = json!({ "cosine": -0.2 });
        all.add(entry(model, task, 0), "c", Ok(scores.as_object().unwrap()));
        assert_eq!(all.iter().next().unwrap().headline, Some(-0.2));
    }

    #[test]
    fn one_model_from_two_origins_is_two_columns() {
        let mut all = Dialogues::default();
        let published = all.column(column("m", Origin::Published));
        let mine = all.column(column("m", Origin::Run("r1".into())));
        assert_eq!(all.column(column("m", Origin::Published)), published);
        assert_ne!(published, mine);
        assert_eq!(all.headings(), ["m (published)", "m"]);
        let again = all.column(column("m", Origin::Run("r2".into())));
        assert_eq!(all.headings()[mine], "m (r1)");
        assert_eq!(all.headings()[again], "m (r2)");
        let own = Exercises::Pack { name: "core".into(), hash: "0123456789".into() };
        all.column(Column { exercises: own, ..column("m", Origin::Run("r3".into())) });
        assert_eq!(all.headings()[3], "m (core)");
        assert_eq!(all.exercise_sets().iter().map(|(_, columns)| columns.len()).collect::<Vec<_>>(), [3, 1]);
    }

    #[test]
    fn a_title_names_what_was_read_and_when_that_was_made() {
        let mut all = Dialogues::default();
        assert_eq!(all.title([].into_iter()), "Nothing was read");
        let source = |name: &str, started: Option<&str>| SourceInfo {
            name: name.to_owned(),
            exercises: Exercises::Published,
            dialogues: 1,
            planned: None,
            scorers: Vec::new(),
            started: started.map(|time| time.parse().unwrap()),
            configuration: None,
            protected: false,
        };
        all.sources.push(source("run mine", Some("2026-11-29T10:00:00Z")));
        assert_eq!(all.title([].into_iter()), "run mine, 2026-11-29");
        all.sources.extend(["a.json", "b.json"].map(|name| source(name, Some("2024-11-02T10:00:00Z"))));
        assert_eq!(
            all.title(["halu"].into_iter()),
            "halu, run mine, a.json and 1 more, 2024-11-02 to 2026-11-29"
        );
    }

    #[test]
    fn a_selection_keeps_what_belongs_together() {
        let mut all = testing::matrix(&["a", "b"], &["s", "t"], 3, |model, task, n| {
            (model * 2 + task + n as usize) as f64 / 10.0
        });
        all.plan(1, 1, 5);
        let one = all.select(|column| column.name == "b", |task| task.label == "t");
        assert_eq!((one.columns.len(), one.tasks.len(), one.len()), (1, 1, 3));
        assert_eq!(one.planned(0, 0), 5);
        assert_eq!(one.of(0, 0).filter_map(|dialogue| dialogue.headline).sum::<f64>(), 1.2);
    }
}
