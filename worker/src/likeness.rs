//! Which servers of a model answer the canary prompts unlike the others, or unlike they did before they were loaded
//! last: a plain state machine, which is told of each load.

use std::collections::BTreeMap;
use std::fmt;

use domain::CanaryPrint;
use domain::canary::{DIFFERING_MAX, PROMPTS, unlike_most};

use crate::connect::list;

/// What is known of the servers of each model.
#[derive(Debug, Default)]
pub struct Likeness(BTreeMap<String, Vec<Answerer>>);

/// A server of a model.
#[derive(Debug)]
struct Answerer {
    endpoint: String,
    /// Its name in metrics.
    name: String,
    /// `None` if it did not answer.
    print: Option<CanaryPrint>,
    /// The latest print of an earlier load.
    before: Option<CanaryPrint>,
    /// Discovery does not find it any more. It is remembered, because it may start again elsewhere.
    is_gone: bool,
    /// Prompts that it answers unlike most other servers of its model.
    unlike: Vec<usize>,
    is_told: bool,
}

/// A server that answers unlike others, or unlike before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlikeServer {
    pub server: String,
    /// What it is compared with.
    pub than: String,
    /// The numbers of the prompts, from 1.
    pub prompts: Vec<usize>,
}

impl fmt::Display for UnlikeServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, than, prompts } = self;
        let numbers: Vec<String> = prompts.iter().map(ToString::to_string).collect();
        write!(
            f,
            "{server} answers {} of {} canary prompts otherwise than {than} (numbers {}): compare its weights, version \
             and arguments",
            prompts.len(),
            PROMPTS.len(),
            numbers.join(", ")
        )
    }
}

impl Likeness {
    /// A server has loaded a model, and answers so; `None` if it does not. Returns which servers are worth a warning.
    pub fn loaded(
        &mut self,
        model: &str,
        endpoint: &str,
        name: String,
        print: Option<CanaryPrint>,
    ) -> Vec<UnlikeServer> {
        let known = self.0.entry(model.to_owned()).or_default();
        let is_same = |one: &Answerer| one.endpoint == endpoint || (one.is_gone && one.name == name);
        let before = known.iter().position(is_same).map(|place| known.remove(place));
        let before = before.and_then(|one| one.print.or(one.before));
        let this = Answerer {
            endpoint: endpoint.to_owned(),
            name,
            print,
            before,
            is_gone: false,
            unlike: Vec::new(),
            is_told: false,
        };
        let mut unlike = Vec::new();
        let prompts = this.since_load();
        if prompts.len() > DIFFERING_MAX {
            let than = "before it was loaded".to_owned();
            unlike.push(UnlikeServer { server: this.name.clone(), than, prompts });
        }
        known.push(this);
        compare(known);
        unlike.extend(news(known));
        unlike
    }

    /// Discovery does not find an address any more.
    pub fn removed(&mut self, endpoint: &str) {
        for known in self.0.values_mut() {
            let is_here = |one: &Answerer| !one.is_gone && one.endpoint == endpoint;
            let Some(place) = known.iter().position(is_here) else { continue };
            let gone = Answerer { is_gone: true, ..known.remove(place) };
            // One is enough: only a server that its worker starts comes back at another address.
            known.retain(|one| !one.is_gone);
            known.push(gone);
            compare(known);
        }
    }

    /// How a server answers since it was loaded.
    pub fn print(&self, model: &str, endpoint: &str) -> Option<&CanaryPrint> {
        self.0.get(model)?.iter().find(|one| !one.is_gone && one.endpoint == endpoint)?.print.as_ref()
    }

    /// Each server that answered: its model, its name, and how many prompts it answers unlike others or unlike before,
    /// whichever is more.
    pub fn sights(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        let all = self.0.iter().flat_map(|(model, known)| known.iter().map(move |one| (model, one)));
        all.filter(|(_, one)| one.is_compared()).map(|(model, one)| {
            (model.as_str(), one.name.as_str(), one.unlike.len().max(one.since_load().len()))
        })
    }
}

impl Answerer {
    fn is_compared(&self) -> bool {
        !self.is_gone && self.print.is_some()
    }

    /// Prompts that it answered differently before it was loaded last.
    fn since_load(&self) -> Vec<usize> {
        match (&self.print, &self.before) {
            (Some(print), Some(before)) => print.differing(before),
            _ => Vec::new(),
        }
    }
}

/// Compares the servers of a model with each other.
fn compare(known: &mut [Answerer]) {
    let compared = || known.iter().filter(|one| one.is_compared());
    let prints: Vec<CanaryPrint> = compared().filter_map(|one| one.print.clone()).collect();
    let unlike = unlike_most(&prints);
    for (one, unlike) in known.iter_mut().filter(|one| one.is_compared()).zip(unlike) {
        one.unlike = unlike;
    }
}

/// The servers of a model that are unlike the others, and were not before. The last one was loaded last.
fn news(known: &mut [Answerer]) -> Vec<UnlikeServer> {
    let mut compared: Vec<&mut Answerer> = known.iter_mut().filter(|one| one.is_compared()).collect();
    let names: Vec<String> = compared.iter().map(|one| one.name.clone()).collect();
    let mut found = Vec::new();
    for (place, one) in compared.iter_mut().enumerate() {
        if one.unlike.len() <= DIFFERING_MAX {
            one.is_told = false;
            continue;
        }
        // Two that differ are told of once.
        if one.is_told || (names.len() == 2 && place == 0) {
            continue;
        }
        one.is_told = true;
        let others = names.iter().enumerate().filter(|(other, _)| *other != place);
        let than = list(others.map(|(_, name)| name.as_str()));
        found.push(UnlikeServer { server: one.name.clone(), than, prompts: one.unlike.clone() });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers so many prompts, the first ones, in its own way.
    fn print(own_way: usize) -> Option<CanaryPrint> {
        let answer = |number: usize| if number < own_way { "no" } else { "yes" }.to_owned();
        CanaryPrint::of(&(0..PROMPTS.len()).map(answer).collect::<Vec<_>>())
    }

    fn loaded(likeness: &mut Likeness, place: &str, own_way: usize) -> Vec<(String, String, usize)> {
        let unlike = likeness.loaded("m", place, format!("m at {place}"), print(own_way));
        unlike.into_iter().map(|one| (one.server, one.than, one.prompts.len())).collect()
    }

    fn told(server: &str, than: &str, prompts: usize) -> Vec<(String, String, usize)> {
        vec![(server.to_owned(), than.to_owned(), prompts)]
    }

    #[test]
    fn the_server_that_differs_from_the_others_is_named_once() {
        let mut likeness = Likeness::default();
        assert!(loaded(&mut likeness, "a", 6).is_empty(), "nobody to compare it with");
        assert_eq!(loaded(&mut likeness, "b", 0), told("m at b", "m at a", 6));
        // With a third one it is seen which of the two differs.
        assert_eq!(loaded(&mut likeness, "c", 0), told("m at a", "m at b, m at c", 6));
        assert!(loaded(&mut likeness, "d", 0).is_empty());
        let sights: Vec<_> = likeness.sights().collect();
        assert_eq!(sights[0], ("m", "m at a", 6));
        assert!(sights[1..].iter().all(|(_, _, prompts)| *prompts == 0), "{sights:?}");
        likeness.removed("a");
        assert_eq!(likeness.sights().count(), 3);
        assert_eq!(likeness.print("m", "a"), None);
    }

    #[test]
    fn few_differences_are_shown_and_no_reason_for_a_warning() {
        let mut likeness = Likeness::default();
        loaded(&mut likeness, "a", 0);
        assert!(loaded(&mut likeness, "b", DIFFERING_MAX).is_empty());
        assert_eq!(likeness.sights().last(), Some(("m", "m at b", DIFFERING_MAX)));
    }

    #[test]
    fn a_server_is_compared_with_what_it_was_before_also_at_another_address() {
        let mut likeness = Likeness::default();
        loaded(&mut likeness, "a", 0);
        assert_eq!(loaded(&mut likeness, "a", 8), told("m at a", "before it was loaded", 8));
        // Its worker starts it again at another port, and it is called the same.
        likeness.removed("a");
        let unlike = likeness.loaded("m", "a:2", "m at a".to_owned(), print(2));
        assert_eq!((unlike.len(), likeness.print("m", "a:2")), (1, print(2).as_ref()));
        let words = unlike[0].to_string();
        assert!(
            words.starts_with("m at a answers 6 of 8 canary prompts otherwise than before it was loaded"),
            "{words}"
        );
        // What could not be asked is not known, and what was known before is not forgotten.
        assert!(likeness.loaded("m", "a:2", "m at a".to_owned(), None).is_empty());
        assert_eq!((likeness.print("m", "a:2"), likeness.sights().count()), (None, 0));
        assert_eq!(loaded(&mut likeness, "a:2", 8).len(), 1);
    }
}
