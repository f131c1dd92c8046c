//! How often intervals hold the truth, by simulation: for each cell, many benchmarks are drawn whose truth is known. The share
//! less one standard error is to be at least 0.93 where 0.95 is written.
//!
//! A case has a chance to be answered rightly, by `spread`: all the same, drawn from a beta distribution, or 0 or 1. Scores are
//! all or nothing, or graded around that chance. Of a difference, the second model has nine tenths of the chances of the first,
//! on the same cases or on cases that have nothing in common.

use domain::seed::SplitMix64;
use report::Dialogues;
use report::analysis::placing::{RankInterval, ranks};
use report::dialogues::{Column, Exercises, Origin, ReportedDialogue};
use report::stats::{TaskValues, ValueRange, estimate};

/// Benchmarks drawn for each cell.
const REPETITIONS: u32 = 2_000;

/// The least share, less one standard error.
const BOUND: f64 = 0.93;

/// Chances of the second model, as a share of those of the first.
const SECOND: f64 = 0.9;

/// Concentration of graded scores around the chance of their case.
const GRADED: f64 = 3.0;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Spread {
    Same,
    Beta,
    Ends,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Compared {
    One,
    SameCases,
    OtherCases,
}

struct Cell {
    chances: &'static [f64],
    tasks: usize,
    is_graded: bool,
    spread: Spread,
    /// Numbers of cases and dialogues of the tasks, in turn.
    sizes: &'static [(usize, usize)],
    compared: Compared,
}

impl Cell {
    /// Cases and dialogues of a task.
    fn size(&self, task: usize) -> (usize, usize) {
        self.sizes[task % self.sizes.len()]
    }
}

/// Tasks alike, and tasks as different as published ones are.
const SIZES: [&[(usize, usize)]; 7] =
    [&[(1, 20)], &[(1, 50)], &[(5, 20)], &[(5, 50)], &[(20, 20)], &[(20, 50)], &[(1, 20), (5, 20), (20, 50)]];

fn main() {
    // `cargo bench -p report --bench coverage -- unequal` looks at those alone.
    let wants_unequal = std::env::args().any(|argument| argument == "unequal");
    println!("tasks chance scores  spread cases   dialogues of            share  width  least {BOUND}");
    let (mut random, mut below, mut cells) = (SplitMix64::new(1), 0, 0);
    let mixes: [(usize, &'static [f64]); 5] =
        [(1, &[0.5]), (1, &[0.9]), (1, &[0.97]), (3, &[0.2, 0.6, 0.95]), (26, &[0.05, 0.3, 0.6, 0.9, 0.98])];
    for (tasks, chances) in mixes {
        for is_graded in [false, true] {
            for spread in [Spread::Same, Spread::Beta, Spread::Ends] {
                for sizes in SIZES {
                    for compared in [Compared::One, Compared::SameCases, Compared::OtherCases] {
                        // Of a single case there is no spread, and one task is not unequal.
                        let is_single = sizes.iter().all(|(cases, _)| *cases == 1);
                        if (is_single && spread != Spread::Same)
                            || sizes.len() > tasks
                            || (wants_unequal && sizes.len() == 1)
                        {
                            continue;
                        }
                        let cell = Cell { chances, tasks, is_graded, spread, sizes, compared };
                        cells += 1;
                        below += u32::from(!is_covered(&cell, &mut random));
                    }
                }
            }
        }
    }
    println!("{below} of {cells} cells are below {BOUND}");
    let (all, narrowed) = ranks_held(&mut random);
    println!(
        "all ranks of ten models hold the true ones: {all:.3}; places that a model may have: {narrowed:.1}"
    );
}

/// Prints a cell; returns whether it is covered.
fn is_covered(cell: &Cell, random: &mut SplitMix64) -> bool {
    let range = if cell.compared == Compared::One { ValueRange::SCORE } else { ValueRange::DIFFERENCE };
    let truth = (0..cell.tasks).map(|task| truth(cell, task)).sum::<f64>() / cell.tasks as f64;
    let (mut held, mut width) = (0, 0.0);
    for _ in 0..REPETITIONS {
        let strata: Vec<TaskValues> = (0..cell.tasks).map(|task| drawn(cell, task, random)).collect();
        let Some(found) = estimate(&strata, range) else { continue };
        held += u32::from((found.interval.low - 1e-12..=found.interval.high + 1e-12).contains(&truth));
        width += 2.0 * found.reach() / f64::from(REPETITIONS);
    }
    let share = f64::from(held) / f64::from(REPETITIONS);
    let error = (share * (1.0 - share) / f64::from(REPETITIONS)).sqrt();
    let is_covered = share - error >= BOUND;
    let chance = if cell.tasks == 1 { cell.chances[0].to_string() } else { "mixed".to_owned() };
    println!(
        "{:5} {chance:6} {:7} {:6} {:7} {:9} {:13} {share:.3}  {width:.3}{}",
        cell.tasks,
        if cell.is_graded { "graded" } else { "0 or 1" },
        format!("{:?}", cell.spread),
        if cell.sizes.len() == 1 { cell.size(0).0.to_string() } else { "unequal".to_owned() },
        if cell.sizes.len() == 1 { cell.size(0).1.to_string() } else { String::new() },
        format!("{:?}", cell.compared),
        if is_covered { "" } else { "  BELOW" },
    );
    is_covered
}

/// The chance of the first model on a task.
fn chance(cell: &Cell, task: usize) -> f64 {
    cell.chances[task % cell.chances.len()]
}

/// What the mean of a task tends to.
fn truth(cell: &Cell, task: usize) -> f64 {
    let first = chance(cell, task);
    let second = match cell.compared {
        Compared::One => return mean_of(cell, task, first, 1.0),
        Compared::SameCases => mean_of(cell, task, first, SECOND),
        Compared::OtherCases => mean_of(cell, task, SECOND * first, 1.0),
    };
    mean_of(cell, task, first, 1.0) - second
}

/// The mean score of cases whose chances, of this mean, are multiplied by `skill`. Graded scores never reach the ends, so cases
/// at the ends are a little off.
fn mean_of(cell: &Cell, task: usize, chance: f64, skill: f64) -> f64 {
    match (cell.is_graded, cell.spread) {
        (true, Spread::Ends) if cell.size(task).0 > 1 => {
            chance * inside(skill) + (1.0 - chance) * inside(0.0)
        }
        _ => chance * skill,
    }
}

fn inside(chance: f64) -> f64 {
    chance.clamp(1e-3, 1.0 - 1e-3)
}

fn drawn(cell: &Cell, task: usize, random: &mut SplitMix64) -> TaskValues {
    let ((cases, dialogues), mean) = (cell.size(task), chance(cell, task));
    let chances: Vec<(f64, f64)> = (0..cases)
        .map(|_| {
            let first = of_case(cell, task, mean, random);
            match cell.compared {
                Compared::OtherCases => (first, of_case(cell, task, SECOND * mean, random)),
                Compared::One | Compared::SameCases => (first, SECOND * first),
            }
        })
        .collect();
    let mut values = Vec::with_capacity(dialogues);
    for dialogue in 0..dialogues {
        let case = dialogue % cases;
        let mut value = score(cell, chances[case].0, random);
        if cell.compared != Compared::One {
            value -= score(cell, chances[case].1, random);
        }
        values.push((case as u32, value));
    }
    TaskValues { weight: 1.0, values }
}

/// The chance of a case. The only case of a task is not drawn: intervals speak of other answers to it.
fn of_case(cell: &Cell, task: usize, mean: f64, random: &mut SplitMix64) -> f64 {
    match cell.spread {
        _ if cell.size(task).0 == 1 => mean,
        Spread::Same => mean,
        Spread::Beta => beta(2.0 * mean, 2.0 * (1.0 - mean), random),
        Spread::Ends => f64::from(u8::from(random.unit() < mean)),
    }
}

/// The score of a dialogue on a case with this chance.
fn score(cell: &Cell, chance: f64, random: &mut SplitMix64) -> f64 {
    if cell.is_graded {
        let chance = inside(chance);
        return beta(GRADED * chance, GRADED * (1.0 - chance), random);
    }
    f64::from(u8::from(random.unit() < chance))
}

fn beta(a: f64, b: f64, random: &mut SplitMix64) -> f64 {
    let (x, y) = (gamma(a, random), gamma(b, random));
    // Both vanish for tiny shapes: then the value is at one of the ends.
    if x + y > 0.0 { x / (x + y) } else { f64::from(u8::from(random.unit() < a / (a + b))) }
}

/// A gamma variate by Marsaglia and Tsang (2000); shapes below 1 by a power of a uniform one.
fn gamma(shape: f64, random: &mut SplitMix64) -> f64 {
    if shape < 1.0 {
        return gamma(shape + 1.0, random) * random.unit().max(f64::MIN_POSITIVE).powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let v = (1.0 + c * x).powi(3);
        let u = random.unit().max(f64::MIN_POSITIVE);
        if v > 0.0 && u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

fn normal(random: &mut SplitMix64) -> f64 {
    let radius = (-2.0 * random.unit().max(f64::MIN_POSITIVE).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

/// Ten models on five tasks of five cases, some of the same skill: how often the intervals of all ranks hold the true ones, and the
/// mean number of places in them.
fn ranks_held(random: &mut SplitMix64) -> (f64, f64) {
    const SKILLS: [f64; 10] = [0.9, 0.9, 0.85, 0.8, 0.7, 0.7, 0.7, 0.5, 0.45, 0.2];
    const TASKS: usize = 5;
    let (mut held, mut places) = (0, 0);
    for _ in 0..REPETITIONS {
        let mut all = Dialogues::default();
        let tasks: Vec<usize> =
            (0..TASKS).map(|task| all.task(&format!("t{task}"), "RdfFriendCount", &["f1"])).collect();
        let ease: Vec<f64> = (0..TASKS * 5).map(|_| 0.5 + random.unit()).collect();
        for (model, skill) in SKILLS.into_iter().enumerate() {
            let name = format!("m{model}");
            let column = all.column(Column {
                model: name.clone(),
                family: name.clone(),
                name,
                size: None,
                active: None,
                origin: Origin::Published,
                exercises: Exercises::Published,
            });
            for (&task, iteration) in
                tasks.iter().flat_map(|task| (0..20).map(move |iteration| (task, iteration)))
            {
                let case = iteration % 5;
                let chance = (skill * ease[task * 5 + case]).min(1.0);
                let scores = serde_json::json!({ "f1": f64::from(u8::from(random.unit() < chance)) });
                let dialogue = ReportedDialogue::of(column, task, iteration as u32);
                let none = serde_json::Map::new();
                all.add(dialogue, &case.to_string(), Ok(scores.as_object().unwrap_or(&none)));
            }
        }
        let found = ranks(&all);
        let is_held = |(model, rank): (usize, &Option<RankInterval>)| {
            let better = SKILLS.iter().filter(|skill| **skill > SKILLS[model]).count();
            let worse = SKILLS.iter().filter(|skill| **skill < SKILLS[model]).count();
            rank.is_some_and(|rank| rank.best <= better + 1 && rank.worst >= SKILLS.len() - worse)
        };
        held += u32::from(found.iter().enumerate().all(is_held));
        places += found.iter().flatten().map(|rank| rank.worst - rank.best + 1).sum::<usize>();
    }
    let number = f64::from(REPETITIONS);
    (f64::from(held) / number, places as f64 / number / SKILLS.len() as f64)
}
