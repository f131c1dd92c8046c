//! The first question of a model: what a list of models says is advice, and what the first answer says decides.

use ::harness::listing_server::{ListingServer, answered, refused};
use ::harness::quirks::{LISTS, ListQuirk, MODEL};
use domain::control::ModelView;

use crate::harness::{Cluster, Data, NT_TASK, free_port, http, wait_until};

const FAILED_DIALOGUES: i32 = 1;

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
fn a_plan_asks_one_question_and_says_what_came_or_what_to_do() {
    let (data, server) =
        (Data::new(), ListingServer::start(list("bare"), |_, model| answered(model, "Paris")));
    let at = |server: &ListingServer| {
        [vec!["--endpoint".to_owned(), server.url().to_owned()], vec!["--model".to_owned(), MODEL.to_owned()]]
            .concat()
    };
    let check = |server: &ListingServer| data.kgfleet(&[vec!["plan".to_owned()], at(server)].concat());
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
