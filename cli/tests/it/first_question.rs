//! The first question of a model: what a list of models says is advice, and what the first answer says decides.

use ::harness::listing_server::{ChatAnswers, ListingServer, answered, refused};
use ::harness::quirks::{LISTS, ListQuirk, MODEL};
use domain::control::ModelView;

use crate::harness::{Cluster, Data, NT_TASK, Server, free_port, http, wait_until};

const FAILED_DIALOGUES: i32 = 1;
const INFRASTRUCTURE: i32 = 3;

fn list(name: &str) -> &'static ListQuirk {
    LISTS.iter().find(|list| list.name.starts_with(name)).unwrap()
}

/// Arguments of a run of so many iterations.
fn run<'a>(server: &'a ListingServer, iterations: &'a str) -> Vec<&'a str> {
    let at = ["run", "--endpoint", server.url(), "--model", MODEL, "--task", NT_TASK];
    [&at[..], &["--concurrency", "16", "--evaluators", "1", "--iterations", iterations]].concat()
}

#[test]
fn a_model_is_asked_whatever_the_list_of_models_says() {
    for list in LISTS {
        let (data, server) = (Data::new(), ListingServer::start(list, |_, model| answered(model, "nobody")));
        let finished = data.kgfleet(&run(&server, "2")).expect(0);
        let is_remarked = finished.stderr.contains("its list of models");
        assert_eq!(is_remarked, !list.names_it, "{}: {finished}", list.name);
        assert_eq!(data.run().entries().len(), 2, "{}", list.name);
    }
}

#[test]
fn whatever_the_first_answer_shows_costs_one_question() {
    let cases: [(ChatAnswers, &[&str]); 3] = [
        (|_, _| answered("somebody-else", "nobody"), &["wrong-model", "answers_as = [\"somebody-else\"]"]),
        (|_, _| refused(401, "no such key"), &["unauthorized: HTTP 401: no such key"]),
        (
            |_, _| refused(404, "no such model"),
            &["model-not-found: HTTP 404", "lacks `tiny`; it names upstream-large"],
        ),
    ];
    for (answers, words) in cases {
        let (data, server) = (Data::new(), ListingServer::start(list("of another name"), answers));
        data.kgfleet(&run(&server, "40")).expect(INFRASTRUCTURE).says(words).says(&["kgfleet resume"]);
        assert_eq!((server.asked(), data.run().entries().len()), (1, 0), "{words:?}");
    }
}

#[test]
fn a_server_that_loads_is_asked_one_question_until_it_is_there() {
    let loading: ChatAnswers = |number, model| match number {
        1..=4 => refused(503, "Loading model"),
        _ => answered(model, "nobody"),
    };
    let (data, server) = (Data::new(), ListingServer::start(list("of a gateway"), loading));
    data.kgfleet(&run(&server, "20")).expect(0);
    let entries = data.run().entries();
    let refusals = entries.iter().map(|entry| entry.record.rounds[0].failed_calls.len());
    assert_eq!((entries.len(), refusals.sum::<usize>()), (20, 4), "the others were asked once it was there");
}

#[test]
fn a_check_asks_one_question_and_says_what_came_or_what_to_do() {
    let (data, server) =
        (Data::new(), ListingServer::start(list("bare"), |_, model| answered(model, "Paris")));
    let at = |server: &ListingServer| {
        [vec!["--endpoint".to_owned(), server.url().to_owned()], vec!["--model".to_owned(), MODEL.to_owned()]]
            .concat()
    };
    let check = |server: &ListingServer| data.kgfleet(&[vec!["check".to_owned()], at(server)].concat());
    check(&server).expect(0).prints(&[
        &format!("asked tiny: {}/chat/completions", server.url()),
        "What is the capital of France?",
        "`Paris` after ",
        "10 of the prompt, 5 of the answer",
        "answered by `tiny`",
    ]);
    assert_eq!((server.asked(), data.runs().len()), (1, 0));
    let mute = ListingServer::start(list("bare"), |_, _| refused(401, "no such key"));
    check(&mute).expect(FAILED_DIALOGUES).prints(&[
        "problem",
        "HTTP 401: no such key",
        "What to do",
        "--key-env",
    ]);
    let strict = ListingServer::start(list("bare"), |number, model| match number {
        1 => refused(400, "Unrecognized request argument supplied: seed"),
        _ => answered(model, "Paris"),
    });
    check(&strict).expect(0).prints(&["left out for tiny", "seed"]);
    let plan = [vec!["plan".to_owned()], at(&server)].concat();
    data.kgfleet(&plan).expect(0).prints(&[MODEL]);
    assert_eq!(server.asked(), 1, "a plan asks nobody");
}

#[test]
fn workers_ask_servers_whose_lists_say_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let coordinator = cluster.lone_coordinator_at(free_port());
    // The other server lists another model, which the configuration does not ask for.
    let silent = ListingServer::start(list("not there"), |_, model| answered(model, "nobody"));
    let other = ListingServer::start(list("of another name"), |_, _| refused(404, "no such model"));
    let both = [silent.url(), other.url()].join(",");
    let run = cluster.submit(&coordinator, &[NT_TASK], 10);
    let _worker = cluster.worker_with("worker", coordinator.port, &both, &[]);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed, other.asked()), (10, 0, 0));
}

#[test]
fn a_server_without_a_list_leaves_a_model_to_those_that_list_it() {
    let Some(cluster) = Cluster::start() else { return };
    let coordinator = cluster.lone_coordinator_at(free_port());
    let (server, silent) =
        (Server::start(), ListingServer::start(list("not there"), |_, _| refused(404, "no")));
    let _listing = cluster.worker("listing", &coordinator, &server);
    let serves = || cluster.kgfleet(&coordinator, &["workers"]).stdout;
    wait_until("one lists the model", || serves().contains("sim"));
    let _silent = cluster.worker_with("silent", coordinator.port, silent.url(), &[]);
    wait_until("the other one is there", || serves().contains('*'));
    let run = cluster.submit(&coordinator, &[NT_TASK], 20);
    let (view, finished) = cluster.watch(&coordinator, &run);
    finished.expect(0);
    assert_eq!((view.scored, view.failed, silent.asked()), (20, 0, 0));
}

#[test]
fn status_and_readiness_say_what_a_first_question_waits_for() {
    let Some(cluster) = Cluster::start() else { return };
    let coordinator = cluster.lone_coordinator_at(free_port());
    let server = ListingServer::start(list("not there"), |_, _| refused(503, "Loading model"));
    let run = cluster.submit(&coordinator, &[NT_TASK], 10);
    let http_port = free_port();
    let address = format!("127.0.0.1:{http_port}");
    let _worker = cluster.worker_with("worker", coordinator.port, server.url(), &["--metrics", &address]);
    let waits = "its first question waits: overloaded: HTTP 503: Loading model (";
    let says = |model: &ModelView| model.blocked.as_ref().is_some_and(|why| why.starts_with(waits));
    wait_until("status says so", || cluster.status(&coordinator, &run).models.iter().all(says));
    wait_until("readiness says so", || {
        let (status, why) = http::get(&address, "/readyz").unwrap_or_default();
        status == 503 && why.contains("the first question of model sim is not answered: overloaded")
    });
}
