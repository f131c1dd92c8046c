//! The plots of dialogues.
//!
//! Every plot is a function of dialogues. Its title says what it shows, and a legend below explains its marks. Every
//! mark has its value in a tooltip. It follows the reader's choice of light or dark, and uses colours that people with
//! a colour vision deficiency can distinguish (Okabe and Ito's palette, and a ramp from dark to light).

mod boxes;
mod compass;
mod gains;
mod heat;
mod labels;
mod scatter;

pub use boxes::of_task;
pub use compass::{grid as compasses, overlay as compass};
pub use gains::gains;
pub use heat::heat;
pub use scatter::{sizes, time, tokens};

use present::figure::PALETTE;

use crate::dialogues::Dialogues;

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
