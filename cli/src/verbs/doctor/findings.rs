//! Why a benchmark was slow, and whether its replicas answer alike: rules over its records. Each compares one number with
//! one bound, so that a reader can judge it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::drift::drifts;
use super::timeline::{AskedDialogue, Timeline};

/// More failed calls than this, as a share of all calls, are the server's or the network's fault.
const FAILED_CALLS: f64 = 0.05;

/// A token takes so many times longer in the last third of the calls than in the first: the server became slower.
const SLOWED: f64 = 1.5;

/// A token takes so many times longer at one replica than at the others of its model.
const SLOW_REPLICA: f64 = 1.5;

/// Fewest calls of which a pace is told.
const PACED_CALLS_MIN: usize = 20;

/// A server is a straggler if it loses at least this share of its calls that were made at two servers, and these are at
/// least so many.
const STRAGGLER_LOST: f64 = 0.8;
const STRAGGLER_CALLS_MIN: usize = 5;

/// More of the dialogues' time than this goes into judging.
const JUDGING: f64 = 0.25;

/// More of the dialogues' time than this passes before the first prompt is sent.
const CLIENT: f64 = 0.10;

/// More of the places for dialogues than this stand empty while dialogues are still to be begun.
const EMPTY_PLACES: f64 = 0.20;

/// The tail takes more of the time than this, and more of its places than that are empty.
const TAIL: f64 = 0.15;
const TAIL_EMPTY: f64 = 0.5;

/// Stragglers that are named.
const NAMED_MAX: usize = 3;

/// What made a benchmark slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Cause {
    Server,
    Replica,
    Straggler,
    Drift,
    Judging,
    Client,
    Queue,
    Tail,
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::Replica => "replica",
            Self::Straggler => "straggler",
            Self::Drift => "drift",
            Self::Judging => "judging",
            Self::Client => "client",
            Self::Queue => "queue",
            Self::Tail => "tail",
        })
    }
}

/// A cause with its numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SlowFinding {
    pub cause: Cause,
    /// For people: the number, its bound, and what to do.
    pub message: String,
}

/// The numbers that rules are about.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Figures {
    pub dialogues: usize,
    pub calls: usize,
    pub failed_calls: usize,
    /// From the first dialogue to the last, without pauses.
    pub seconds: f64,
    pub pauses: usize,
    /// Dialogues open at once, but for a tenth of the time.
    pub open_at_once: usize,
    /// Calls in flight, as a mean over the time.
    pub calls_in_flight: f64,
    /// Shares of the time of dialogues.
    pub asking: f64,
    pub judging: f64,
    pub before_first_prompt: f64,
    /// Shares of the places at the peak.
    pub empty_places: f64,
    pub tail_seconds: f64,
    pub tail_empty_places: f64,
}

impl Figures {
    /// For people.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let share = |value: f64| format!("{:.1} %", 100.0 * value);
        vec![
            ("dialogues", self.dialogues.to_string()),
            ("calls answered", self.calls.to_string()),
            ("calls failed", self.failed_calls.to_string()),
            ("time, without pauses", format!("{:.1} s", self.seconds)),
            ("pauses", self.pauses.to_string()),
            ("dialogues open at once", self.open_at_once.to_string()),
            ("calls in flight, mean", format!("{:.1}", self.calls_in_flight)),
            ("time of dialogues: asking", share(self.asking)),
            ("time of dialogues: judging", share(self.judging)),
            ("time of dialogues: before the first prompt", share(self.before_first_prompt)),
            ("places empty before the tail", share(self.empty_places)),
            ("tail", format!("{:.1} s", self.tail_seconds)),
            ("places empty in the tail", share(self.tail_empty_places)),
        ]
    }

    /// Why nothing is wrong.
    pub(super) fn healthy(&self) -> String {
        format!(
            "its dialogues waited for servers {:.0} % of their time, with {:.1} calls in flight",
            100.0 * self.asking,
            self.calls_in_flight
        )
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Diagnosis {
    pub figures: Figures,
    /// Nothing of a healthy benchmark.
    pub findings: Vec<SlowFinding>,
}

/// Looks for what made a benchmark slow.
pub(super) fn diagnose(dialogues: &[AskedDialogue]) -> Diagnosis {
    let figures = figures(dialogues, &Timeline::of(dialogues));
    let mut findings = Vec::new();
    let mut found = |cause, message: Option<String>| {
        findings.extend(message.map(|message| SlowFinding { cause, message }));
    };
    found(Cause::Server, refused(&figures));
    found(Cause::Server, slowed(dialogues));
    replicas(dialogues).into_iter().for_each(|message| found(Cause::Replica, Some(message)));
    stragglers(dialogues).into_iter().for_each(|message| found(Cause::Straggler, Some(message)));
    drifts(dialogues).into_iter().for_each(|message| found(Cause::Drift, Some(message)));
    found(Cause::Judging, judging(&figures));
    found(Cause::Client, client(&figures));
    found(Cause::Queue, empty_places(&figures));
    found(Cause::Tail, tail(&figures, dialogues));
    Diagnosis { figures, findings }
}

fn figures(dialogues: &[AskedDialogue], timeline: &Timeline) -> Figures {
    let sum = |of: fn(&AskedDialogue) -> f64| dialogues.iter().map(of).sum::<f64>();
    let all = sum(AskedDialogue::seconds);
    let share = |seconds: f64, of: f64| if of > 0.0 { seconds / of } else { 0.0 };
    let asking_s = sum(AskedDialogue::asking_s);
    Figures {
        dialogues: dialogues.len(),
        calls: dialogues.iter().map(|dialogue| dialogue.calls.len()).sum(),
        failed_calls: dialogues.iter().map(|dialogue| dialogue.failed).sum(),
        seconds: timeline.wall_s,
        pauses: timeline.pauses,
        open_at_once: timeline.peak,
        calls_in_flight: share(asking_s, timeline.wall_s),
        asking: share(asking_s, all),
        judging: share(sum(AskedDialogue::judging_s), all),
        before_first_prompt: share(sum(AskedDialogue::before_s), all),
        empty_places: timeline.empty,
        tail_seconds: timeline.tail_s,
        tail_empty_places: timeline.tail_empty,
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn refused(figures: &Figures) -> Option<String> {
    let failed = figures.failed_calls as f64 / (figures.calls + figures.failed_calls).max(1) as f64;
    (failed > FAILED_CALLS).then(|| {
        format!(
            "{} of the calls failed (more than {}); `kgfleet show DIALOGUE` has what the server said",
            percent(failed),
            percent(FAILED_CALLS)
        )
    })
}

/// The paces of the calls of dialogues that have one, by the time at which they were sent.
fn paces(dialogues: &[&AskedDialogue]) -> Vec<f64> {
    let calls = dialogues.iter().flat_map(|dialogue| &dialogue.calls);
    let mut paced: Vec<(f64, f64)> = calls.filter_map(|call| Some((call.sent_s, call.pace()?))).collect();
    paced.sort_by(|a, b| a.0.total_cmp(&b.0));
    paced.into_iter().map(|(_, pace)| pace).collect()
}

fn slowed(dialogues: &[AskedDialogue]) -> Option<String> {
    let mut slowest: Option<(f64, &str)> = None;
    for (model, of_model) in by(dialogues, |dialogue| &dialogue.model) {
        let paces = paces(&of_model);
        let third = paces.len() / 3;
        if third < PACED_CALLS_MIN {
            continue;
        }
        let (first, last) = (median(&paces[..third]), median(&paces[paces.len() - third..]));
        let ratio = last / first;
        if ratio > SLOWED && slowest.is_none_or(|(known, _)| ratio > known) {
            slowest = Some((ratio, model));
        }
    }
    slowest.map(|(ratio, model)| {
        format!(
            "a token of model {model} took {ratio:.1} times as long in the last third of the calls as in the first (more than \
             {SLOWED}): look for other users of the server, heat, or a full cache"
        )
    })
}

fn replicas(dialogues: &[AskedDialogue]) -> Vec<String> {
    let mut slow = Vec::new();
    for (model, of_model) in by(dialogues, |dialogue| &dialogue.model) {
        let of_replicas = by(of_model, |dialogue| &dialogue.replica);
        let paced: Vec<(&str, Vec<f64>)> = of_replicas
            .into_iter()
            .map(|(replica, all)| (replica, paces(&all)))
            .filter(|(_, paces)| paces.len() >= PACED_CALLS_MIN)
            .collect();
        for (replica, own) in &paced {
            let others: Vec<f64> = paced
                .iter()
                .filter(|(other, _)| other != replica)
                .flat_map(|(_, paces)| paces.clone())
                .collect();
            if others.is_empty() {
                continue;
            }
            let ratio = median(own) / median(&others);
            if ratio > SLOW_REPLICA {
                slow.push(format!(
                    "a token of model {model} took {ratio:.1} times as long at {replica} as at the other replicas (more than \
                     {SLOW_REPLICA}): compare its GPU, its arguments and its neighbours with theirs"
                ));
            }
        }
    }
    slow
}

fn stragglers(dialogues: &[AskedDialogue]) -> Vec<String> {
    let mut servers = BTreeMap::<&str, (usize, usize)>::new();
    for call in dialogues.iter().flat_map(|dialogue| &dialogue.hedged) {
        let (lost, all) = servers.entry(&call.server).or_default();
        (*lost, *all) = (*lost + usize::from(!call.has_won), *all + 1);
    }
    let mut named = Vec::new();
    for (server, (lost, all)) in servers {
        if all >= STRAGGLER_CALLS_MIN && lost as f64 >= STRAGGLER_LOST * all as f64 {
            named.push(format!(
                "{server} lost {lost} of {all} calls that were made at two servers because no token came ({} or more): look at \
                 its log, its queue and its GPU",
                percent(STRAGGLER_LOST)
            ));
        }
    }
    named
}

fn judging(figures: &Figures) -> Option<String> {
    (figures.judging > JUDGING).then(|| {
        format!(
            "{} of the time of dialogues went into judging answers (more than {}): give the worker more processors",
            percent(figures.judging),
            percent(JUDGING)
        )
    })
}

fn client(figures: &Figures) -> Option<String> {
    (figures.before_first_prompt > CLIENT).then(|| {
        format!(
            "{} of the time of dialogues passed before their first prompt was sent (more than {}): the worker has too few \
             processors for so many dialogues",
            percent(figures.before_first_prompt),
            percent(CLIENT)
        )
    })
}

fn empty_places(figures: &Figures) -> Option<String> {
    (figures.empty_places > EMPTY_PLACES).then(|| {
        format!(
            "{} of {} places for dialogues stood empty while there was work (more than {}): workers waited for units or came \
             late, or `--concurrency auto` was still growing",
            percent(figures.empty_places),
            figures.open_at_once,
            percent(EMPTY_PLACES)
        )
    })
}

fn tail(figures: &Figures, dialogues: &[AskedDialogue]) -> Option<String> {
    let share = if figures.seconds > 0.0 { figures.tail_seconds / figures.seconds } else { 0.0 };
    if share <= TAIL || figures.tail_empty_places <= TAIL_EMPTY {
        return None;
    }
    let mut last: Vec<&AskedDialogue> = dialogues.iter().collect();
    last.sort_by(|a, b| b.ended_s.total_cmp(&a.ended_s));
    let named: Vec<String> = last
        .iter()
        .take(NAMED_MAX)
        .map(|dialogue| format!("{} ({:.1} s)", dialogue.name, dialogue.seconds()))
        .collect();
    Some(format!(
        "after the last dialogue had begun the benchmark went on for {:.1} s, {} of its time (more than {}), with {} of the \
         places empty; the last ones were {}",
        figures.tail_seconds,
        percent(share),
        percent(TAIL),
        percent(figures.tail_empty_places),
        named.join(", ")
    ))
}

type Groups<'a> = BTreeMap<&'a str, Vec<&'a AskedDialogue>>;

fn by<'a>(
    dialogues: impl IntoIterator<Item = &'a AskedDialogue>,
    of: fn(&AskedDialogue) -> &String,
) -> Groups<'a> {
    let mut groups = Groups::new();
    for dialogue in dialogues {
        groups.entry(of(dialogue)).or_default().push(dialogue);
    }
    groups
}

/// The middle one of some numbers; 0 of none.
fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::timeline::{Call, CallOfTwo, ScoredCase};
    use super::*;

    /// What is done to a benchmark of 400 dialogues on eight places, each of five seconds.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Injected {
        Nothing,
        RefusedCalls,
        SlowerServer,
        SlowReplica,
        HangingServer,
        WorseReplica,
        SlowJudging,
        SlowClient,
        EmptyPlaces,
        Straggler,
    }

    /// The calls of a round that was asked at a server that hangs, and at one that answers.
    fn two_calls(hangs: bool) -> Vec<CallOfTwo> {
        let call = |server: &str, has_won| CallOfTwo { server: server.to_owned(), has_won };
        vec![call("m at a", !hangs), call("m at b", hangs)]
    }

    /// Eight places that are taken again and again, two at each of four replicas.
    fn benchmark(injected: Injected) -> Vec<AskedDialogue> {
        let is = |what| injected == what;
        let mut dialogues = Vec::new();
        for place in 0..8_u32 {
            let (mut started_s, mut turn) = (0.0, 0_u32);
            while started_s < 250.0 {
                let is_slow =
                    is(Injected::SlowerServer) && turn > 25 || is(Injected::SlowReplica) && place < 2;
                let is_last = started_s + 6.0 > 250.0 && place == 7;
                let before = if is(Injected::SlowClient) { 2.0 } else { 0.01 };
                let judging = if is(Injected::SlowJudging) { 3.0 } else { 0.05 };
                let asking = match is_slow {
                    _ if is(Injected::Straggler) && is_last => 125.0,
                    true => 10.0,
                    false => 5.0,
                };
                let sent_s = started_s + before;
                let answered_s = sent_s + asking;
                // Half of the places are taken in every second turn only.
                if !(is(Injected::EmptyPlaces) && place >= 4 && turn % 2 == 1) {
                    dialogues.push(AskedDialogue {
                        name: format!("m/t/{place}-{turn}"),
                        model: "m".to_owned(),
                        replica: format!("replica-{}", place / 2),
                        started_s,
                        ended_s: answered_s + judging,
                        calls: vec![Call { sent_s, answered_s, tokens: Some(100 + u64::from(turn % 7)) }],
                        failed: usize::from(is(Injected::RefusedCalls) && turn % 5 == 0),
                        hedged: if is(Injected::HangingServer) && turn % 10 == 0 {
                            // It hangs in all of these but one.
                            two_calls(place != 0 || turn != 0)
                        } else {
                            Vec::new()
                        },
                        scored: Some(ScoredCase {
                            task: "run t".to_owned(),
                            case: (turn % 5).to_string(),
                            score: if is(Injected::WorseReplica) && place < 2 { 0.4 } else { 0.8 }
                                + 0.05 * f64::from((turn / 5 + place) % 3),
                        }),
                        canary: None,
                    });
                }
                (started_s, turn) = (answered_s + judging, turn + 1);
            }
        }
        dialogues
    }

    #[test]
    fn every_injected_cause_is_named_and_a_healthy_benchmark_is_called_healthy() {
        for (injected, expected) in [
            (Injected::Nothing, None),
            (Injected::RefusedCalls, Some(Cause::Server)),
            (Injected::SlowerServer, Some(Cause::Server)),
            (Injected::SlowReplica, Some(Cause::Replica)),
            (Injected::HangingServer, Some(Cause::Straggler)),
            (Injected::WorseReplica, Some(Cause::Drift)),
            (Injected::SlowJudging, Some(Cause::Judging)),
            (Injected::SlowClient, Some(Cause::Client)),
            (Injected::EmptyPlaces, Some(Cause::Queue)),
            (Injected::Straggler, Some(Cause::Tail)),
        ] {
            let Diagnosis { figures, findings } = diagnose(&benchmark(injected));
            let causes: Vec<Cause> = findings.iter().map(|finding| finding.cause).collect();
            assert_eq!(
                causes,
                expected.into_iter().collect::<Vec<_>>(),
                "{injected:?}: {figures:?} {findings:?}"
            );
        }
    }

    #[test]
    fn findings_name_what_they_are_about() {
        let message = |injected| diagnose(&benchmark(injected)).findings.remove(0).message;
        assert!(message(Injected::Straggler).contains("the last ones were m/t/7-49 (125.1 s)"));
        assert!(message(Injected::SlowReplica).contains("2.0 times as long at replica-0"));
        assert!(message(Injected::HangingServer).starts_with("m at a lost 39 of 40 calls"));
        assert!(message(Injected::WorseReplica).starts_with("model m scores 0.40"));
        assert!(message(Injected::RefusedCalls).starts_with("17 % of the calls failed (more than 5 %)"));
        let empty = diagnose(&[]);
        assert_eq!((empty.findings.len(), empty.figures), (0, Figures::default()));
    }
}
