//! What people see of the verdicts: tables, figures, and sheets on which they judge as the judges do.

pub mod about;
pub mod agreement;
pub mod figures;
pub mod read;
pub mod sheet;
pub mod study;
pub mod tables;

use present::figure::Svg;

use self::about::ModelFacts;
use self::study::Study;
use crate::kinds::kghalubench::numbers::Weights;
use crate::reading::BenchmarkReader;
use crate::showing::{Extras, Figure, Input, KindNumbers, Show, Showing, ShowingError, of_kind};

/// See the text of the module.
pub(super) static SHOWING: Showing = Showing {
    title: "KGHaluBench",
    heading: "Hallucination",
    numbers,
    shows: &[
        Show {
            name: "halu",
            about: "KGHaluBench: weighted accuracy, accuracy, abstentions, Halu_BOK and Halu_DOK of every model",
            is_folded: false,
            table: |numbers| tables::main(&of_kind(numbers)),
        },
        Show {
            name: "halu-answers",
            about: "KGHaluBench: what answers are made of, and how many facts were wrong",
            is_folded: false,
            table: |numbers| tables::distributions(&of_kind(numbers)),
        },
        Show {
            name: "halu-stages",
            about: "KGHaluBench: which stage decided how many facts, and how long judges took",
            is_folded: false,
            table: |numbers| tables::stages(&of_kind(numbers)),
        },
        Show {
            name: "halu-types",
            about: "KGHaluBench: the types of entities that questions are about",
            is_folded: true,
            table: |numbers| tables::types(&of_kind(numbers)),
        },
    ],
    figures: &[
        Figure { file: "weighted-accuracy", draw: |numbers| drawn(numbers, figures::weighted) },
        Figure { file: "hallucinations", draw: |numbers| drawn(numbers, figures::hallucinations) },
        Figure { file: "answers", draw: |numbers| drawn(numbers, figures::fates) },
        Figure { file: "wrong-facts", draw: |numbers| drawn(numbers, figures::wrong_facts) },
        Figure { file: "deciding-stages", draw: |numbers| drawn(numbers, figures::filters) },
        Figure { file: "difficulty", draw: |numbers| drawn(numbers, figures::difficulty) },
        Figure { file: "types", draw: |numbers| drawn(numbers, figures::types) },
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
            when their training data go, and `size = 8.0`, billions of parameters",
};

fn numbers(reader: &mut dyn BenchmarkReader, extras: &Extras) -> Result<Box<KindNumbers>, ShowingError> {
    let weights = match extras.parsed(&WEIGHTS, Weights::parse)? {
        Some(weights) => weights,
        None => Weights::simulated().map_err(|error| ShowingError::Unusable(error.to_string()))?,
    };
    let about = extras.parsed(&ABOUT, ModelFacts::parse)?.unwrap_or_default();
    let read = read::read(reader, &mut |_, _, _, _| ())?;
    Ok(Box::new(Study::of(&read.found, &weights, &about)))
}

fn drawn(numbers: &KindNumbers, draw: fn(&Study) -> Svg) -> Svg {
    numbers.downcast_ref().map_or_else(|| Svg::new(0.0, 0.0, ""), draw)
}
