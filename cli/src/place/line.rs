//! The command line that a shell completes, as far as it says where runs are.

use std::path::Path;

use clap::{CommandFactory, Parser};

use crate::kit::completion;
use crate::place::remote::Remote;
use crate::place::{Place, PlaceOptions};

/// The options that say where runs are, as a command line of their own.
#[derive(Debug, Parser)]
#[command(no_binary_name = true)]
struct PlaceLine {
    #[command(flatten)]
    place: PlaceOptions,
}

/// A command line that is still typed.
#[derive(Debug)]
pub struct CompletedLine {
    place: PlaceOptions,
    /// Its words without those options: the verb first.
    words: Vec<String>,
}

impl CompletedLine {
    /// The one about which this process is asked; `None` if its options cannot be used.
    pub fn of_process() -> Option<Self> {
        Self::read(completion::words())
    }

    /// Reads the words after the program's name.
    pub fn read(line: Vec<String>) -> Option<Self> {
        let known = PlaceLine::command();
        let takes_value = |name: &str| {
            let option = known.get_arguments().find(|option| option.get_long() == Some(name))?;
            Some(option.get_action().takes_values())
        };
        let (mut options, mut words, mut line) = (Vec::new(), Vec::new(), line.into_iter());
        while let Some(word) = line.next() {
            let Some(option) = word.strip_prefix("--") else {
                words.push(word);
                continue;
            };
            let (name, has_value) = option.split_once('=').map_or((option, false), |(name, _)| (name, true));
            match takes_value(name) {
                Some(true) if !has_value => {
                    // Without a value it is the one that is typed.
                    options.extend(line.next().map(|value| [word, value]).into_iter().flatten());
                }
                Some(_) => options.push(word),
                None => {}
            }
        }
        Some(Self { place: PlaceLine::try_parse_from(options).ok()?.place, words })
    }

    /// What may be the name of a benchmark: the words after the verb that are no options.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let words = self.words.iter().skip(1).map(String::as_str);
        words.filter(|word| !word.is_empty() && !word.starts_with('-'))
    }

    /// The folder of runs.
    pub fn data_dir(&self) -> &Path {
        &self.place.data.data_dir
    }

    /// Where a verb acts that acts on this machine or in a fleet.
    ///
    /// # Errors
    /// What is kept of a login cannot be used.
    pub fn place(&self) -> anyhow::Result<Place> {
        self.place.place()
    }

    /// The fleet in which a verb acts that acts nowhere else.
    pub fn fleet(self) -> Remote {
        self.place.remote.fleet()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<CompletedLine> {
        CompletedLine::read(line.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn a_line_says_where_runs_are_wherever_it_says_so() {
        let line = read("show --fleet here latest --data-dir /data --plaintext m/").unwrap();
        assert_eq!(line.data_dir(), Path::new("/data"));
        assert!(line.place().unwrap().folder().is_some());
        assert_eq!(line.words().collect::<Vec<_>>(), ["latest", "m/"]);
        let line = read("table --data-dir=/data -v --task Rdf* --fleet http://a,http://b quick").unwrap();
        assert_eq!(line.data_dir(), Path::new("/data"));
        let Place::Fleet(fleet) = line.place().unwrap() else { panic!("a fleet is named") };
        assert_eq!(fleet.address(), "http://a or http://b");
        assert_eq!(line.words().collect::<Vec<_>>(), ["Rdf*", "quick"]);
    }

    #[test]
    fn what_is_not_whole_yet_stops_nothing() {
        let line = read("show latest --data-dir").unwrap();
        assert_eq!(line.words().collect::<Vec<_>>(), ["latest"]);
        assert!(read("show --data-dir /a --data-dir /b latest").is_none(), "which is meant?");
        assert!(read("").unwrap().words().next().is_none());
    }

    #[test]
    fn a_verb_of_fleets_has_one_by_default() {
        let fleet = read("pause --fleet http://a x").unwrap().fleet();
        assert_eq!(fleet.address(), "http://a");
    }
}
