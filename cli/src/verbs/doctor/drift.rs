//! Replicas of a model that do not answer as the others do: by their scores, and by how they answered the canary prompts
//! when they were loaded.

use std::collections::BTreeMap;

use domain::CanaryPrint;
use domain::canary::{DIFFERING_MAX, PROMPTS, unlike_most};
use domain::seed::SplitMix64;
use jiff::Timestamp;
use stats::{GroupScore, UnlikeGroup, departures};

use super::timeline::{AskedDialogue, ScoredCase};

/// The share of benchmarks whose replicas are all alike, and of which one is called unlike by its scores nevertheless.
const FALSE_ALARMS: f64 = 0.01;

/// A replica with fewer scores than this is compared with nobody.
const REPLICA_SCORES_MIN: usize = 20;

/// The seed of the permutations: the same records give the same findings.
const SEED: u64 = 1;

/// Other replicas that a finding names.
const OTHERS_NAMED_MAX: usize = 3;

/// A replica from one load to the next: it is another one where it answers canary prompts otherwise than before.
struct Replica<'a> {
    name: String,
    print: Option<CanaryPrint>,
    dialogues: Vec<&'a AskedDialogue>,
}

impl Replica<'_> {
    fn scored(&self) -> impl Iterator<Item = &ScoredCase> {
        self.dialogues.iter().filter_map(|dialogue| dialogue.scored.as_ref())
    }

    /// Whether it has enough scores to be compared with others.
    fn is_compared(&self) -> bool {
        self.scored().count() >= REPLICA_SCORES_MIN
    }
}

/// What is unlike, for people.
pub(super) fn drifts(dialogues: &[AskedDialogue]) -> Vec<String> {
    let mut models = BTreeMap::<&str, Vec<&AskedDialogue>>::new();
    for dialogue in dialogues {
        models.entry(&dialogue.model).or_default().push(dialogue);
    }
    let models: Vec<(&str, Vec<Replica<'_>>)> =
        models.into_iter().map(|(model, dialogues)| (model, replicas(dialogues))).collect();
    let mut found = by_scores(&models);
    found.extend(models.iter().filter_map(|(model, replicas)| by_canaries(model, replicas)));
    found
}

fn replicas(mut dialogues: Vec<&AskedDialogue>) -> Vec<Replica<'_>> {
    dialogues.sort_by(|a, b| a.started_s.total_cmp(&b.started_s));
    let mut loads = BTreeMap::<&str, Vec<Replica<'_>>>::new();
    for dialogue in dialogues {
        let print = dialogue.canary.as_deref().and_then(CanaryPrint::read);
        let of_server = loads.entry(&dialogue.replica).or_default();
        let is_same = |load: &&mut Replica<'_>| match (&load.print, &print) {
            (Some(known), Some(print)) => known.differing(print).len() <= DIFFERING_MAX,
            _ => true,
        };
        match of_server.iter_mut().rev().find(is_same) {
            Some(load) => {
                load.print = load.print.take().or(print);
                load.dialogues.push(dialogue);
            }
            None => {
                let name = format!("{} since {}", dialogue.replica, moment(dialogue.started_s));
                of_server.push(Replica { name, print, dialogues: vec![dialogue] });
            }
        }
    }
    for (server, of_server) in &mut loads {
        if let Some(first) = of_server.first_mut() {
            // It needs no time where nothing came before.
            first.name = (*server).to_owned();
        }
    }
    loads.into_values().flatten().collect()
}

fn moment(seconds: f64) -> String {
    Timestamp::from_second(seconds as i64).map_or_else(|_| "its load".to_owned(), |at| at.to_string())
}

/// The replicas that score unlike the others of their model.
fn by_scores(models: &[(&str, Vec<Replica<'_>>)]) -> Vec<String> {
    let samples = models.iter().map(|(_, replicas)| sample(replicas)).collect();
    let mut random = SplitMix64::new(SEED);
    let unlike = departures(samples, FALSE_ALARMS, &mut || random.unit());
    let mut found = Vec::new();
    for ((model, replicas), unlike) in models.iter().zip(unlike) {
        let mut named: Vec<usize> = Vec::new();
        for departure in unlike {
            found.push(told(model, replicas, &named, departure));
            named.push(departure.group);
        }
    }
    found
}

/// The scores of replicas that have enough of them.
fn sample(replicas: &[Replica<'_>]) -> Vec<GroupScore> {
    let (mut tasks, mut cases) = (Numbers::default(), Numbers::default());
    let mut sample = Vec::new();
    for (group, replica) in replicas.iter().enumerate() {
        if !replica.is_compared() {
            continue;
        }
        sample.extend(replica.scored().map(|scored| {
            let (task, case) = (tasks.of(&scored.task), cases.of(&scored.case));
            GroupScore { group, task, case, score: scored.score }
        }));
    }
    sample
}

/// Numbers of texts.
#[derive(Default)]
struct Numbers<'a>(BTreeMap<&'a str, usize>);

impl<'a> Numbers<'a> {
    fn of(&mut self, text: &'a str) -> usize {
        let next = self.0.len();
        *self.0.entry(text).or_insert(next)
    }
}

/// A replica that scores unlike the others, those left out that were named before.
fn told(model: &str, replicas: &[Replica<'_>], named: &[usize], departure: UnlikeGroup) -> String {
    let UnlikeGroup { group, difference, p, own, others } = departure;
    let compared = replicas
        .iter()
        .enumerate()
        .filter(|(place, replica)| *place != group && !named.contains(place) && replica.is_compared());
    let compared: Vec<&str> = compared.map(|(_, replica)| replica.name.as_str()).collect();
    let direction = if difference < 0.0 { "lower" } else { "higher" };
    format!(
        "model {model} scores {:.3} {direction} at {} ({own} dialogues) than at {} ({others} dialogues): p = {p:.4} (at most \
         {FALSE_ALARMS}, which equal replicas reach in one of {:.0} benchmarks); compare weights, versions, arguments and GPUs",
        difference.abs(),
        replicas[group].name,
        shortened(&compared),
        1.0 / FALSE_ALARMS,
    )
}

/// The replicas of a model that answered canary prompts unlike most others.
fn by_canaries(model: &str, replicas: &[Replica<'_>]) -> Option<String> {
    let asked = replicas.iter().filter_map(|replica| Some((replica, replica.print.clone()?)));
    let (asked, prints): (Vec<&Replica<'_>>, Vec<CanaryPrint>) = asked.unzip();
    let unlike = asked.iter().zip(unlike_most(&prints));
    let unlike: Vec<String> = unlike
        .filter(|(_, prompts)| prompts.len() > DIFFERING_MAX)
        .map(|(replica, prompts)| format!("{} ({} of {})", replica.name, prompts.len(), PROMPTS.len()))
        .collect();
    let unlike: Vec<&str> = unlike.iter().map(String::as_str).collect();
    (!unlike.is_empty()).then(|| {
        format!(
            "model {model} answered more than {DIFFERING_MAX} canary prompts unlike most of its replicas when it was loaded at \
             {}; compare weights, versions, arguments and GPUs",
            shortened(&unlike)
        )
    })
}

/// Some names; of many, the first ones.
fn shortened(names: &[&str]) -> String {
    let (first, rest) = names.split_at(names.len().min(OTHERS_NAMED_MAX));
    let rest = if rest.is_empty() { String::new() } else { format!(" and {} others", rest.len()) };
    format!("{}{rest}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A print of a server that answers so many prompts, the first ones, in its own way.
    fn print(own_way: usize) -> String {
        let answer = |number: usize| if number < own_way { "no" } else { "yes" }.to_owned();
        CanaryPrint::of(&(0..PROMPTS.len()).map(answer).collect::<Vec<_>>()).unwrap().to_string()
    }

    /// Of three replicas, 120 dialogues each about ten cases; `change` changes one by its replica and number.
    fn benchmark(change: impl Fn(usize, usize, &mut AskedDialogue)) -> Vec<AskedDialogue> {
        let numbers = (0..3).flat_map(|replica| (0..120).map(move |number| (replica, number)));
        let dialogue = |(replica, number): (usize, usize)| {
            let score = [0.25, 0.5, 0.75, 1.0][(number * 7 + replica * 3 + number / 10) % 4];
            let scored = ScoredCase { task: "run t".to_owned(), case: (number % 10).to_string(), score };
            let mut dialogue = AskedDialogue {
                name: format!("m/t/{number}"),
                model: "m".to_owned(),
                replica: format!("http://{replica}"),
                started_s: number as f64,
                ended_s: number as f64 + 1.0,
                calls: Vec::new(),
                failed: 0,
                hedged: Vec::new(),
                scored: Some(scored),
                canary: Some(print(0)),
            };
            change(replica, number, &mut dialogue);
            dialogue
        };
        numbers.map(dialogue).collect()
    }

    fn halve(dialogue: &mut AskedDialogue) {
        dialogue.scored.as_mut().unwrap().score /= 2.0;
    }

    #[test]
    fn equal_replicas_are_not_told_of_and_a_worse_one_is_named() {
        assert_eq!(drifts(&benchmark(|_, _, _| {})), [""; 0]);
        let found = drifts(&benchmark(|replica, _, dialogue| {
            if replica == 1 {
                halve(dialogue);
            }
        }));
        assert_eq!(found.len(), 1, "{found:?}");
        let words = "at http://1 (120 dialogues) than at http://0, http://2 (240 dialogues): p = 0.001";
        assert!(found[0].starts_with("model m scores 0.3") && found[0].contains(words), "{}", found[0]);
    }

    #[test]
    fn a_replica_is_another_one_after_a_load_that_changed_its_answers() {
        let found = drifts(&benchmark(|replica, number, dialogue| {
            if replica == 2 && number >= 60 {
                halve(dialogue);
                dialogue.canary = Some(print(7));
            }
        }));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains(" lower at http://2 since 1970-01-01T00:01:00Z (60 "), "{found:?}");
        assert!(found[1].contains("loaded at http://2 since 1970-01-01T00:01:00Z (7 of 8)"), "{found:?}");
        // A few answers come out otherwise at times.
        let restarted = benchmark(|replica, number, dialogue| {
            if replica == 2 && number >= 60 {
                dialogue.canary = Some(print(DIFFERING_MAX));
            }
        });
        assert_eq!(drifts(&restarted), [""; 0]);
    }

    #[test]
    fn few_scores_and_dialogues_without_one_are_compared_with_nothing() {
        let few = benchmark(|replica, number, dialogue| {
            if replica == 1 && number >= REPLICA_SCORES_MIN - 1 {
                dialogue.scored = None;
            } else if replica == 1 {
                dialogue.scored.as_mut().unwrap().score = 0.0;
            }
            dialogue.canary = None;
        });
        assert_eq!(drifts(&few), [""; 0]);
        assert!(drifts(&[]).is_empty());
    }
}
