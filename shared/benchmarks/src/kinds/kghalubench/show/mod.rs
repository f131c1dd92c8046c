//! What people see of the verdicts: tables, figures, and sheets on which they judge as the judges do.
//!
//! [`read`] reads the verdicts of a benchmark as [`found`]; [`study`] computes the numbers of them on a common [`scale`], with
//! what [`about`] says of models; [`tables`], [`rates`], `verdicts` and [`figures`] show the numbers. [`sheet`] and
//! [`agreement`] compare the judges with people. A new table or figure is an entry of `SHOWING`, and no other place names it.

pub mod about;
pub mod agreement;
pub mod figures;
pub mod found;
pub mod rates;
pub mod read;
pub mod scale;
pub mod sheet;
pub mod study;
pub mod tables;
#[cfg(test)]
mod tests;
mod verdicts;

use report::draw::{Breadth, Svg};

use self::about::ModelFacts;
use self::found::PipelineNumbers;
use self::scale::CommonScale;
use self::study::Study;
use crate::kinds::kghalubench::numbers::Weights;
use crate::reading::BenchmarkReader;
use crate::showing::{Extras, Figure, Input, KindNumbers, PageRows, Show, Showing, ShowingError, of_kind};

/// See the text of the module.
pub(super) static SHOWING: Showing = Showing {
    title: "KGHaluBench",
    heading: "Hallucination",
    numbers,
    relate,
    shows: &[
        Show {
            name: "halu",
            about: "KGHaluBench: weighted accuracy, accuracy, abstentions, Halu_BOK and Halu_DOK of every model",
            is_folded: false,
            on_page: PageRows::All,
            table: |numbers| tables::main(&studies(numbers)),
        },
        Show {
            name: "halu-answers",
            about: "KGHaluBench: what answers are made of, and how many facts were wrong",
            is_folded: false,
            on_page: PageRows::All,
            table: |numbers| tables::distributions(&studies(numbers)),
        },
        Show {
            name: "halu-stages",
            about: "KGHaluBench: which stage decided how many facts, and how long judges took",
            is_folded: false,
            on_page: PageRows::All,
            table: |numbers| tables::stages(&studies(numbers)),
        },
        Show {
            name: "halu-rates",
            about: "KGHaluBench: every number of every model over its assessments, with that of all answers pooled",
            is_folded: true,
            on_page: PageRows::All,
            table: |numbers| rates::of_models(&studies(numbers)),
        },
        Show {
            name: "halu-groups",
            about: "KGHaluBench: means over models and over groups of models, with the mean of their deviations",
            is_folded: true,
            on_page: PageRows::All,
            table: |numbers| rates::of_groups(&studies(numbers)),
        },
        Show {
            name: "halu-intervals",
            about: "KGHaluBench: within what the numbers of every model lie",
            is_folded: true,
            on_page: PageRows::None,
            table: |numbers| rates::intervals(&studies(numbers)),
        },
        Show {
            name: "halu-times",
            about: "KGHaluBench: how long facts took, of all models and of each, by the stage that decided",
            is_folded: true,
            on_page: PageRows::None,
            table: |numbers| tables::times(&studies(numbers)),
        },
        Show {
            name: "halu-verdicts",
            about: "KGHaluBench: what became of every answer and of each of its facts, from which all other tables follow",
            is_folded: true,
            on_page: PageRows::Lowest("points"),
            table: |numbers| verdicts::table(&of_kind(numbers)),
        },
        Show {
            name: "halu-types",
            about: "KGHaluBench: the types of entities that questions are about",
            is_folded: true,
            on_page: PageRows::All,
            table: |numbers| tables::types(&studies(numbers)),
        },
    ],
    figures: &[
        Figure {
            file: "weighted-accuracy",
            draw: |numbers, breadth| drawn(numbers, breadth, figures::weighted),
        },
        Figure {
            file: "hallucinations",
            draw: |numbers, breadth| drawn(numbers, breadth, figures::hallucinations),
        },
        Figure { file: "answers", draw: |numbers, breadth| drawn(numbers, breadth, figures::fates) },
        Figure {
            file: "wrong-facts",
            draw: |numbers, breadth| drawn(numbers, breadth, figures::wrong_facts),
        },
        Figure {
            file: "deciding-stages",
            draw: |numbers, breadth| drawn(numbers, breadth, figures::filters),
        },
        Figure { file: "difficulty", draw: |numbers, breadth| drawn(numbers, breadth, figures::difficulty) },
        Figure { file: "types", draw: |numbers, breadth| drawn(numbers, breadth, figures::types) },
    ],
    inputs: &[WEIGHTS, ABOUT],
};

const WEIGHTS: Input = Input {
    name: "weights",
    about: "Weights of KGHaluBench's difficulties, as `kgfleet halu calibrate` writes them. Default: those that come with the \
            program, learnt from simulated models",
};

const ABOUT: Input = Input {
    name: "about",
    about: "What is known of models, for KGHaluBench's tables (TOML): `[models.\"LABEL\"]` with `cut_off = \"2023-12\"`, until \
            when their training data go, `size = 8.0`, billions of parameters, and `group = \"open\"`, of which means are shown",
};

fn numbers(reader: &mut dyn BenchmarkReader, extras: &Extras) -> Result<Box<KindNumbers>, ShowingError> {
    let weights = match extras.parsed(&WEIGHTS, Weights::parse)? {
        Some(weights) => weights,
        None => Weights::simulated().map_err(|error| ShowingError::Unusable(error.to_string()))?,
    };
    let about = extras.parsed(&ABOUT, ModelFacts::parse)?.unwrap_or_default();
    let read = read::read(reader, &mut |_, _, _, _| ())?;
    let study = Study::of(&read.found, &weights, &about);
    Ok(Box::new(Numbers { found: read.found, weights, about, study }))
}

/// The numbers of a benchmark, with what they are computed from.
struct Numbers {
    found: PipelineNumbers,
    weights: Weights,
    about: ModelFacts,
    study: Study,
}

/// Brings benchmarks that are shown together onto one scale.
fn relate(shown: &mut [&mut KindNumbers]) {
    let mut all: Vec<&mut Numbers> = shown.iter_mut().filter_map(|numbers| numbers.downcast_mut()).collect();
    let Some(weights) = all.first().map(|first| first.weights.clone()) else { return };
    let found: Vec<&PipelineNumbers> = all.iter().map(|numbers| &numbers.found).collect();
    let scale = CommonScale::of(&found, &weights);
    for numbers in &mut all {
        numbers.study = Study::on(&scale, &numbers.found, &weights, &numbers.about);
    }
}

fn studies<'n>(numbers: &[&'n KindNumbers]) -> Vec<&'n Study> {
    of_kind::<Numbers>(numbers).into_iter().map(|numbers| &numbers.study).collect()
}

fn drawn(numbers: &KindNumbers, breadth: Breadth, draw: fn(&Study, Breadth) -> Svg) -> Svg {
    let none = || Svg::new(0.0, 0.0, "");
    numbers.downcast_ref().map_or_else(none, |numbers: &Numbers| draw(&numbers.study, breadth))
}
