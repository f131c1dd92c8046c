//! Measures how far judges agree with people, stage by stage.
//!
//! A sheet contains as many items of a rare stage as of a frequent one. So each row is weighted by the number of items
//! of its stratum per annotated row, and the results are estimates for the whole benchmark.

use std::collections::BTreeMap;

use domain::{DialogueKey, ServiceError};
use report::table::{Cell, Table};

use super::found::PipelineNumbers;
use super::sheet::{Item, PersonVerdict, Stratum};
use crate::kinds::kghalubench::draw::exercise;
use crate::kinds::kghalubench::draw::question::FACTS;
use crate::kinds::kghalubench::numbers::metrics::{Fate, Filter};
use crate::kinds::kghalubench_baseline;
use crate::reading::BenchmarkReader;

/// Thresholds of the similarity that are compared with the benchmark's own. The paper measured the last three.
const THRESHOLDS: [f64; 5] = [0.65, 0.675, 0.70, 0.725, 0.75];

/// How often judges and people agree, as estimated numbers of items of the benchmark.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Confusion {
    /// Both say yes.
    pub both: f64,
    /// Only the judge does.
    pub judge_only: f64,
    /// Only the person does.
    pub person_only: f64,
    /// Neither does.
    pub neither: f64,
    /// Number of rows of the sheet.
    pub rows: u64,
}

impl Confusion {
    fn add(&mut self, weight: f64, judge: bool, person: bool) {
        self.rows += 1;
        *match (judge, person) {
            (true, true) => &mut self.both,
            (true, false) => &mut self.judge_only,
            (false, true) => &mut self.person_only,
            (false, false) => &mut self.neither,
        } += weight;
    }

    fn total(&self) -> f64 {
        self.both + self.judge_only + self.person_only + self.neither
    }

    /// The share of items affirmed by the judge that people affirm too.
    pub fn precision(&self) -> Option<f64> {
        ratio(self.both, self.both + self.judge_only)
    }

    /// The share of items affirmed by people that the judge affirms too.
    pub fn recall(&self) -> Option<f64> {
        ratio(self.both, self.both + self.person_only)
    }

    /// The harmonic mean of precision and recall.
    pub fn f1(&self) -> Option<f64> {
        ratio(2.0 * self.both, 2.0 * self.both + self.judge_only + self.person_only)
    }

    /// The share of items on which both agree.
    pub fn agreement(&self) -> Option<f64> {
        ratio(self.both + self.neither, self.total())
    }

    /// Cohen's kappa: agreement beyond that of random answers with the same frequencies. `None` if all answers are yes,
    /// or all no.
    pub fn kappa(&self) -> Option<f64> {
        let total = self.total();
        let observed = self.agreement()?;
        let (judge, person) = ((self.both + self.judge_only) / total, (self.both + self.person_only) / total);
        let expected = judge * person + (1.0 - judge) * (1.0 - person);
        ratio(observed - expected, 1.0 - expected)
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > f64::EPSILON).then(|| part / whole)
}

/// One line of the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct AgreementLine {
    /// The stage, or several together.
    pub stage: &'static str,
    /// What yes means.
    pub yes: &'static str,
    /// The threshold of the similarity, if it matters.
    pub threshold: Option<f64>,
    /// The counts.
    pub confusion: Confusion,
}

/// The answers of judge and person about an item; `None` if the item does not count.
type Said<'s> = dyn Fn(&Item, PersonVerdict) -> Option<(bool, bool)> + 's;

/// Compares verdicts of people with those of the judges. `all` are the items of the benchmark, `threshold` is its own.
pub fn compare(all: &[Item], said: &[(Item, PersonVerdict)], threshold: f64) -> Vec<AgreementLine> {
    let weights = weights(all, said);
    let over = |of: &Said<'_>| confusion(&weights, said, of);
    let line = |stage, yes, threshold, confusion| AgreementLine { stage, yes, threshold, confusion };
    let mut lines = vec![line(
        "abstain",
        "the model abstains",
        None,
        over(&|item, verdict| {
            let judge = item.answer.fate == Fate::Abstained;
            item.fact.is_none().then_some((judge, verdict == PersonVerdict::Abstained))
        }),
    )];
    let mut thresholds = THRESHOLDS.to_vec();
    if !thresholds.contains(&threshold) {
        thresholds.push(threshold);
        thresholds.sort_by(f64::total_cmp);
    }
    lines.extend(thresholds.into_iter().map(|threshold| {
        let confusion = over(&|item, verdict| {
            let similarity = item.answer.similarity.filter(|_| item.fact.is_none())?;
            (verdict != PersonVerdict::Abstained)
                .then_some((similarity >= threshold, verdict == PersonVerdict::Same))
        });
        line("similarity", "the answer is about the entity", Some(threshold), confusion)
    }));
    let stated = "the fact is stated";
    let fact = |of: &dyn Fn(Filter, bool) -> Option<bool>| {
        over(&|item, verdict| {
            let Fate::Aligned(facts) = &item.answer.fate else { return None };
            let decision = facts.get(item.fact?)?;
            Some((of(decision.by, decision.correct)?, verdict == PersonVerdict::Stated))
        })
    };
    // What a filter says follows from who decided: it passes on what it does not decide.
    lines.push(line("nli", stated, None, fact(&|by, _| Some(by == Filter::Nli))));
    lines.push(line(
        "llm",
        stated,
        None,
        fact(&|by, correct| match by {
            Filter::Nli => None,
            Filter::Llm => Some(correct),
            Filter::Expert => Some(true),
        }),
    ));
    lines.push(line("expert", stated, None, fact(&|by, correct| (by == Filter::Expert).then_some(correct))));
    lines.push(line("all filters", stated, None, fact(&|_, correct| Some(correct))));
    lines
}

/// Counts the answers about some items, by what one row of each stratum stands for.
fn confusion(weights: &BTreeMap<Stratum, f64>, said: &[(Item, PersonVerdict)], of: &Said<'_>) -> Confusion {
    let mut confusion = Confusion::default();
    for (item, verdict) in said {
        if let Some((judge, person)) = of(item, *verdict) {
            confusion.add(weights.get(&item.stratum).copied().unwrap_or(0.0), judge, person);
        }
    }
    confusion
}

/// What a person says to a question about an item; `None` if it is not about that.
type Affirms = fn(&Item, PersonVerdict) -> Option<bool>;

/// Compares every two people on the items that both annotated; nothing if nobody else did. How far people agree with each other
/// is the most that can be expected of a stage.
pub fn compare_people(people: &[Vec<(Item, PersonVerdict)>]) -> Vec<AgreementLine> {
    let of_questions: [(&str, &str, Affirms); 3] = [
        ("people: abstain", "the model abstains", |item, said| {
            item.fact.is_none().then_some(said == PersonVerdict::Abstained)
        }),
        ("people: similarity", "the answer is about the entity", |item, said| {
            (item.fact.is_none() && said != PersonVerdict::Abstained).then_some(said == PersonVerdict::Same)
        }),
        ("people: all filters", "the fact is stated", |item, said| {
            item.fact.is_some().then_some(said == PersonVerdict::Stated)
        }),
    ];
    let mut lines = Vec::new();
    for (stage, yes, answer) in of_questions {
        let mut confusion = Confusion::default();
        for (number, first) in people.iter().enumerate() {
            let said: BTreeMap<&str, PersonVerdict> =
                first.iter().map(|(item, said)| (item.id.as_str(), *said)).collect();
            for (item, second) in people[number + 1..].iter().flatten() {
                let both = said
                    .get(item.id.as_str())
                    .and_then(|first| answer(item, *first))
                    .zip(answer(item, *second));
                if let Some((first, second)) = both {
                    confusion.add(1.0, second, first);
                }
            }
        }
        if confusion.rows > 0 {
            lines.push(AgreementLine { stage, yes, threshold: None, confusion });
        }
    }
    lines
}

/// What one chat model says alone of the answers of a benchmark: whether each is about its entity, and which facts it states. Nothing
/// of answers without a verdict and of abstentions.
#[derive(Debug, Default)]
pub struct BaselineVerdicts(BTreeMap<DialogueKey, (bool, [bool; FACTS])>);

impl BaselineVerdicts {
    /// Reads a benchmark of the kind [`kghalubench_baseline`](crate::kinds::kghalubench_baseline).
    ///
    /// # Errors
    /// Its records cannot be read.
    pub fn read(reader: &mut dyn BenchmarkReader) -> Result<Self, ServiceError> {
        let facts = reader.facts().clone();
        let mut verdicts = BTreeMap::new();
        for model in &facts.models {
            for judged in reader.model(model)?.judged(&facts)? {
                let said = |name: &str| judged.number(name).map(|number| number > 0.0);
                let stated = [0, 1, 2].map(|fact| said(&kghalubench_baseline::stated(fact)));
                if let (Some(aligned), [Some(first), Some(second), Some(third)]) = (said("aligned"), stated) {
                    verdicts.insert(judged.key, (aligned, [first, second, third]));
                }
            }
        }
        Ok(Self(verdicts))
    }

    /// What it says of an item: that the answer is about the entity, or that the fact is stated.
    fn of(&self, found: &PipelineNumbers, item: &Item) -> Option<bool> {
        let assessment = found.assessments.get(item.answer.assessment)?;
        let questions = u32::try_from(assessment.questions.len()).ok()?;
        let key = DialogueKey {
            model: found.models.get(item.model)?.model.as_str().into(),
            task: exercise::label(assessment.number).as_str().into(),
            iteration: item.answer.repetition * questions + u32::try_from(item.answer.question).ok()?,
        };
        let (aligned, stated) = self.0.get(&key)?;
        match item.fact {
            None => Some(*aligned),
            Some(fact) => stated.get(fact).copied(),
        }
    }
}

/// Compares verdicts of people with those of one chat model alone, on the items of a benchmark: the last line of the paper's
/// Table 2, and the same of facts.
pub fn compare_baseline(
    found: &PipelineNumbers,
    all: &[Item],
    said: &[(Item, PersonVerdict)],
    baseline: &BaselineVerdicts,
) -> Vec<AgreementLine> {
    let weights = weights(all, said);
    let line = |stage, yes, is_about: fn(&Item) -> bool, affirms: PersonVerdict| {
        let confusion = confusion(&weights, said, &|item, verdict| {
            let counts = is_about(item) && verdict != PersonVerdict::Abstained;
            counts.then(|| Some((baseline.of(found, item)?, verdict == affirms)))?
        });
        AgreementLine { stage, yes, threshold: None, confusion }
    };
    let entity = |item: &Item| item.fact.is_none();
    let fact = |item: &Item| item.fact.is_some();
    vec![
        line("one judge: entity", "the answer is about the entity", entity, PersonVerdict::Same),
        line("one judge: facts", "the fact is stated", fact, PersonVerdict::Stated),
    ]
}

/// Number of items of the benchmark that one row of each stratum stands for.
fn weights(all: &[Item], said: &[(Item, PersonVerdict)]) -> BTreeMap<Stratum, f64> {
    let mut rows: BTreeMap<Stratum, f64> = BTreeMap::new();
    said.iter().for_each(|(item, _)| *rows.entry(item.stratum).or_default() += 1.0);
    let population = |stratum: &Stratum| all.iter().filter(|item| item.stratum == *stratum).count() as f64;
    rows.into_iter().map(|(stratum, rows)| (stratum, population(&stratum) / rows)).collect()
}

/// The comparison as a table.
pub fn table(lines: &[AgreementLine]) -> Table {
    let mut table = Table::default()
        .left(["stage", "yes means"])
        .right(["threshold", "rows", "precision", "recall", "F1", "agreement", "kappa"])
        .titled("Agreement with people");
    for line in lines {
        let confusion = &line.confusion;
        table.row([
            Cell::from(line.stage),
            Cell::from(line.yes),
            Cell::number(line.threshold, 3),
            Cell::Count(confusion.rows),
            Cell::number(confusion.precision(), 4),
            Cell::number(confusion.recall(), 4),
            Cell::number(confusion.f1(), 4),
            Cell::number(confusion.agreement(), 4),
            Cell::number(confusion.kappa(), 4),
        ]);
    }
    table.notes.push(
        "Rows count by how many items of the pipeline they stand for. nli, llm, expert: what the stage itself says of the facts \
         that reach it; similarity: answers that neither side calls an abstention."
            .to_owned(),
    );
    if lines.iter().any(|line| line.stage.starts_with("people: ")) {
        table.notes.push(
            "people: every two sheets on the rows that both have, the later sheet in the place of the judge; each row counts once."
                .to_owned(),
        );
    }
    table
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// The verdict of a person who agrees with the judges.
    pub fn as_judged(item: &Item) -> PersonVerdict {
        match (&item.answer.fate, item.fact) {
            (Fate::Abstained | Fate::NotScored, _) => PersonVerdict::Abstained,
            (Fate::Hallucinated, _) => PersonVerdict::Other,
            (Fate::Aligned(_), None) => PersonVerdict::Same,
            (Fate::Aligned(facts), Some(fact)) if facts[fact].correct => PersonVerdict::Stated,
            _ => PersonVerdict::NotStated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::as_judged;
    use super::*;
    use crate::kinds::kghalubench::show::found::testing::found;
    use crate::kinds::kghalubench::show::sheet::items;

    #[test]
    fn the_numbers_of_a_table_of_fifty() {
        let confusion = Confusion { both: 20.0, judge_only: 5.0, person_only: 10.0, neither: 15.0, rows: 50 };
        let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-12;
        assert!(near(confusion.precision(), 0.8) && near(confusion.recall(), 2.0 / 3.0));
        assert!(near(confusion.f1(), 40.0 / 55.0) && near(confusion.agreement(), 0.7));
        assert!(near(confusion.kappa(), 0.4));
        let one_sided = Confusion { both: 9.0, rows: 9, ..Confusion::default() };
        assert_eq!((one_sided.agreement(), one_sided.kappa()), (Some(1.0), None));
        assert_eq!(Confusion::default().f1(), None);
    }

    fn line(lines: &[AgreementLine], stage: &str, threshold: Option<f64>) -> Confusion {
        lines.iter().find(|line| line.stage == stage && line.threshold == threshold).unwrap().confusion
    }

    #[test]
    fn who_sees_it_as_the_judges_do_agrees_with_them_in_the_end() {
        let all = items(&found());
        let said: Vec<_> = all.iter().map(|item| (item.clone(), as_judged(item))).collect();
        let lines = compare(&all, &said, 0.7);
        assert_eq!(line(&lines, "abstain", None).agreement(), Some(1.0));
        assert_eq!(line(&lines, "all filters", None).agreement(), Some(1.0));
        // Twelve answers about the entity, one fact of each decided by each filter; the classifier misses those that
        // the others find stated.
        let nli = line(&lines, "nli", None);
        assert_eq!((nli.rows, nli.both, nli.judge_only, nli.person_only), (36, 12.0, 0.0, 20.0));
        let llm = line(&lines, "llm", None);
        assert_eq!((llm.rows, llm.both, llm.judge_only), (24, 20.0, 2.0), "what the expert overrules");
    }

    #[test]
    fn people_are_compared_on_what_both_annotated() {
        let all = items(&found());
        let first: Vec<_> = all.iter().map(|item| (item.clone(), as_judged(item))).collect();
        // The second has one fact of each answer, and finds each stated.
        let second: Vec<_> = all
            .iter()
            .filter(|item| item.fact == Some(1))
            .map(|item| (item.clone(), PersonVerdict::Stated))
            .collect();
        let lines = compare_people(&[first.clone(), second]);
        assert_eq!(lines.len(), 1, "answers were annotated by one alone: {lines:?}");
        let facts = lines[0].confusion;
        assert_eq!((lines[0].stage, facts.rows), ("people: all filters", 12));
        assert_eq!((facts.both, facts.person_only, facts.judge_only), (10.0, 0.0, 2.0));
        assert!(table(&lines).notes.iter().any(|note| note.starts_with("people: ")));
        assert!(compare_people(&[first]).is_empty());
    }

    #[test]
    fn one_judge_alone_is_compared_on_the_same_items() {
        let found = found();
        let all = items(&found);
        let said: Vec<_> = all.iter().map(|item| (item.clone(), as_judged(item))).collect();
        // It takes every answer of the second model for one about its entity, and finds the first fact of each stated.
        let key = |iteration: u32| DialogueKey {
            model: "strong-8B".into(),
            task: if iteration < 4 { "KGHalu-01" } else { "KGHalu-02" }.into(),
            iteration: iteration % 4,
        };
        let verdicts = (0..8).map(|iteration| (key(iteration), (true, [true, false, false]))).collect();
        let lines = compare_baseline(&found, &all, &said, &BaselineVerdicts(verdicts));
        let [entity, facts] = [&lines[0], &lines[1]].map(|line| line.confusion);
        assert_eq!((entity.rows, entity.both, entity.agreement()), (8, 8.0, Some(1.0)));
        assert_eq!((facts.rows, facts.both, facts.person_only), (24, 8.0, 16.0));
    }

    #[test]
    fn a_row_counts_for_those_that_were_not_drawn() {
        let all = items(&found());
        let one = |stratum: Stratum| all.iter().find(|item| item.stratum == stratum).unwrap();
        let said = [
            (one(Stratum::Abstained).clone(), PersonVerdict::Abstained),
            (one(Stratum::Aligned).clone(), PersonVerdict::Abstained),
        ];
        let abstain = line(&compare(&all, &said, 0.7), "abstain", None);
        // Two abstentions and twelve aligned answers.
        assert_eq!((abstain.both, abstain.person_only, abstain.rows), (2.0, 12.0, 2));
    }

    #[test]
    fn another_threshold_is_judged_by_the_similarities() {
        let all = items(&found());
        let said: Vec<_> = all.iter().map(|item| (item.clone(), as_judged(item))).collect();
        let lines = compare(&all, &said, 0.8);
        // Below 0.8 are all similarities, so that the judge calls no answer one about the entity.
        let strict = line(&lines, "similarity", Some(0.8));
        assert_eq!((strict.both, strict.judge_only, strict.person_only), (0.0, 0.0, 12.0));
        assert!(strict.neither > 0.0, "answers about another entity");
        assert_eq!((strict.recall(), strict.precision()), (Some(0.0), None));
        // Yes means the same entity, as in the paper's Table 2.
        assert!(
            lines
                .iter()
                .filter(|line| line.stage == "similarity")
                .all(|line| line.yes == "the answer is about the entity")
        );
        assert_eq!(lines.iter().filter(|line| line.stage == "similarity").count(), THRESHOLDS.len() + 1);
        assert_eq!(table(&lines).rows().len(), lines.len());
    }
}
