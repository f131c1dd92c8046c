//! What arguments offer while their values are typed.
//!
//! Whoever presses the key waits for it and looks at a prompt: an offer is short, says nothing on standard error and does
//! not fail. Where something cannot be read, nothing is offered.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter};
use domain::text::steers;

/// Maximum number of values that are offered at once: more than that nobody reads.
pub const OFFERED_MAX: usize = 200;

/// Completes a value by what may be meant by the part that was typed. What does not begin with that part is left out.
pub fn completer(values: fn(&str) -> Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| candidates(typed, values))
}

/// The same for an argument that may also be the path of a file.
pub fn completer_or_file(values: fn(&str) -> Vec<String>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        let mut offered = candidates(typed, values);
        offered.extend(PathCompleter::file().complete(typed).into_iter().take(OFFERED_MAX));
        offered
    })
}

fn candidates(typed: &OsStr, values: fn(&str) -> Vec<String>) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    fitting(typed, values(typed)).into_iter().map(CompletionCandidate::new).collect()
}

/// Those of the values that begin so, each once. Labels may come from elsewhere: none that could steer a terminal is offered.
fn fitting(typed: &str, values: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let is_fit = |value: &String| value.starts_with(typed) && !value.is_empty() && !value.chars().any(steers);
    values.into_iter().filter(|value| is_fit(value) && seen.insert(value.clone())).take(OFFERED_MAX).collect()
}

/// The words of the command line that is completed, without the program's name.
pub fn words() -> Vec<String> {
    let asked = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let (words, _) = joined(asked, 0);
    words.into_iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
}

/// Words as they were typed, and where the one at `place` has come to: bash breaks them at `=` and `:`, and gives what it broke
/// them at as words between their parts.
pub fn joined(words: impl IntoIterator<Item = OsString>, place: usize) -> (Vec<OsString>, usize) {
    let (mut whole, mut new_place, mut goes_on) = (Vec::<OsString>::new(), 0, false);
    for (number, word) in words.into_iter().enumerate() {
        let is_break = !word.is_empty() && word.as_encoded_bytes().iter().all(|byte| b"=:".contains(byte));
        if (is_break || goes_on)
            && let Some(last) = whole.last_mut()
        {
            last.push(&word);
        } else {
            whole.push(word);
        }
        goes_on = is_break;
        if number == place {
            new_place = whole.len() - 1;
        }
    }
    (whole, new_place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_begins_so_is_offered_once_and_nothing_that_steers_a_terminal() {
        let values = strings(&["ab", "b", "a", "ab", "a\u{1b}[2J", "a\nb", "a\u{202e}", ""]);
        assert_eq!(fitting("a", values.clone()), ["ab", "a"]);
        assert_eq!(fitting("", values), ["ab", "b", "a"]);
        assert_eq!(fitting("", (0..10_000).map(|n| n.to_string()).collect()).len(), OFFERED_MAX);
    }

    #[test]
    fn what_bash_broke_is_whole_again() {
        let words = |line: &str, place| {
            let (words, place) = joined(line.split(' ').map(OsString::from), place);
            (words.join(OsStr::new(" ")).into_string().unwrap(), place)
        };
        assert_eq!(words("kgfleet show a b", 3), ("kgfleet show a b".to_owned(), 3));
        assert_eq!(words("kgfleet table --model = si x", 4), ("kgfleet table --model=si x".to_owned(), 2));
        assert_eq!(words("kgfleet table --model =", 3), ("kgfleet table --model=".to_owned(), 2));
        let address = words("run --endpoint http : //127.0.0.1 : 80/v1 --model m", 8);
        assert_eq!(address, ("run --endpoint http://127.0.0.1:80/v1 --model m".to_owned(), 4));
        let (ended, place) = joined(["--model", "=", ""].map(OsString::from), 2);
        assert_eq!((ended, place), (vec!["--model=".into()], 0));
    }

    #[test]
    fn a_completer_offers_values_and_files() {
        let offered = |completer: ArgValueCompleter, typed: &str| -> Vec<OsString> {
            completer.complete(OsStr::new(typed)).iter().map(|offer| offer.get_value().to_owned()).collect()
        };
        let values = |_: &str| vec!["quick".to_owned(), "slow".to_owned()];
        assert_eq!(offered(completer(values), "q"), ["quick"]);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("quick.toml"), "").unwrap();
        let typed = folder.path().join("qui").into_os_string().into_string().unwrap();
        assert_eq!(
            offered(completer_or_file(values), &typed),
            [folder.path().join("quick.toml").into_os_string()]
        );
        assert_eq!(offered(completer_or_file(values), "slo"), ["slow"]);
    }
}
