//! Invented names, none twice.

use std::collections::BTreeSet;

use domain::seed::SplitMix64;

use super::pick;

/// How entities of a kind are named.
#[derive(Clone, Copy, Debug)]
pub enum Naming {
    /// Two names.
    Person,
    /// One name and a word for what it is.
    Place(&'static str),
    /// A title of an adjective and a noun.
    Title,
}

const FIRST: &[&str] = &[
    "Ba", "Ce", "Dor", "El", "Fen", "Gal", "Hes", "Ir", "Jun", "Kel", "Lor", "Mar", "Nev", "Or", "Pel",
    "Quin", "Ros", "Sel", "Tam", "Ul", "Ver", "Wil", "Yar", "Zen",
];
const MIDDLE: &[&str] = &["a", "e", "i", "o", "an", "er", "il", "on", "ar", "is", "ev", "ul"];
const LAST: &[&str] =
    &["dor", "lia", "mond", "nis", "ra", "reth", "sa", "tas", "ven", "wyn", "xa", "zin", "ber", "ck"];
const ADJECTIVES: &[&str] = &[
    "Amber", "Broken", "Crooked", "Distant", "Early", "Fallen", "Golden", "Hidden", "Ivory", "Last",
    "Modest", "Narrow", "Open", "Patient", "Quiet", "Red", "Silver", "Twelfth", "Upper", "Winter",
];
const NOUNS: &[&str] = &[
    "Anchor", "Bridge", "Candle", "Door", "Engine", "Falcon", "Garden", "Harbour", "Island", "Journey",
    "Kingdom", "Lantern", "Mirror", "Needle", "Orchard", "Piano", "Quarry", "River", "Shadow", "Tower",
];

/// Names given so far.
#[derive(Default)]
pub struct GivenNames {
    given: BTreeSet<String>,
}

impl GivenNames {
    /// A name that nothing else has.
    pub fn next(&mut self, naming: Naming, random: &mut SplitMix64) -> String {
        loop {
            let name = match naming {
                Naming::Person => format!("{} {}", word(random), word(random)),
                Naming::Place(what) => format!("{} {what}", word(random)).trim().to_owned(),
                Naming::Title => {
                    format!("The {} {} of {}", pick(ADJECTIVES, random), pick(NOUNS, random), word(random))
                }
            };
            // There are some 4 000 words, and each kind of place has far fewer entities.
            if self.given.insert(name.clone()) {
                return name;
            }
        }
    }
}

fn word(random: &mut SplitMix64) -> String {
    format!("{}{}{}", pick(FIRST, random), pick(MIDDLE, random), pick(LAST, random))
}
