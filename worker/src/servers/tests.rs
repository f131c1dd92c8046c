use super::*;
use crate::breaker::PARKED_MAX;
use crate::first::SECOND_QUESTIONS_MAX;
use crate::vllm::Load;

fn served(id: &str, root: &str) -> ServedModel {
    ServedModel { id: id.to_owned(), root: Some(root.to_owned()), max_model_len: Some(4096) }
}

fn listed(endpoint: &str, models: &[(&str, &str)]) -> News {
    let models = models.iter().map(|(id, root)| served(id, root)).collect();
    News::Listed { endpoint: endpoint.to_owned(), models }
}

fn servers(expected: &[&str]) -> Servers {
    Servers::new(&"w".into(), expected.iter().map(|&name| name.to_owned()).collect(), None, None)
}

fn names(servers: &Servers, now: Instant) -> Vec<String> {
    servers.models(now).into_iter().collect()
}

#[test]
fn servers_come_go_silent_and_are_given_up() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    servers.apply(listed("http://a", &[("m", "org/m")]), now);
    servers.apply(listed("http://b", &[("m", "org/m")]), now);
    let keys = servers.of_model("m", now);
    assert_eq!(keys.len(), 2);
    assert_eq!(servers.found(&keys[0]).unwrap().context_tokens, Some(4096));
    let silent = News::Unreachable { endpoint: "http://a".to_owned(), reason: "refused".to_owned() };
    servers.apply(silent.clone(), now);
    servers.apply(silent, now + GIVEN_UP_AFTER / 2);
    assert_eq!((servers.free(&keys[0]), servers.free(&keys[1])), (0, 1));
    assert_eq!(servers.of_model("m", now).len(), 2, "it may be back soon");
    assert_eq!(servers.of_model("m", now + GIVEN_UP_AFTER), &keys[1..]);
    assert!(servers.trouble().unwrap().contains("http://a does not answer any more: refused (since "));
    servers.apply(listed("http://a", &[("m", "org/m")]), now);
    servers.apply(News::Removed { endpoint: "http://b".to_owned() }, now);
    assert_eq!((servers.of_model("m", now), servers.trouble()), (keys[..1].to_vec(), None));
}

#[test]
fn records_say_what_the_server_says_of_itself() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    let (endpoint, version) = ("http://a".to_owned(), "0.32.0".to_owned());
    servers.apply(News::Version { endpoint, version }, now);
    let root = "/hf/models--org--m/snapshots/abc123";
    servers.apply(listed("http://a", &[("m", root)]), now);
    let key = servers.of_model("m", now).remove(0);
    let made = servers.made_at(&key, MadeAt { node: Some("n".to_owned()), ..MadeAt::default() });
    assert_eq!((made.server_version.as_deref(), made.weights.as_deref()), (Some("0.32.0"), Some(root)));
    assert_eq!((made.revision.as_deref(), made.node.as_deref()), (Some("abc123"), Some("n")));
    let told = servers.made_at(&key, MadeAt { revision: Some("v2".to_owned()), ..MadeAt::default() });
    assert_eq!(told.revision.as_deref(), Some("v2"));
}

#[test]
fn a_list_that_lacks_what_is_expected_is_advice() {
    let (mut servers, now) = (servers(&["wanted"]), Instant::now());
    servers.apply(listed("http://a", &[("other", "org/other")]), now);
    assert_eq!(names(&servers, now), ["wanted"]);
    let key = servers.of_model("wanted", now).remove(0);
    assert_eq!((servers.trouble(), servers.of_model("other", now)), (None, Vec::new()));
    let words = servers.with_remark(&key, "HTTP 404");
    assert_eq!(words, "HTTP 404; its list of models lacks wanted; it names other");
    servers.apply(listed("http://b", &[("wanted", "w"), ("extra", "e")]), now);
    assert_eq!(names(&servers, now), ["wanted"], "what was not asked for is not offered");
    let at_b = ServerKey::Found { endpoint: "http://b".to_owned(), model: "wanted".to_owned() };
    assert_eq!(servers.of_model("wanted", now), [at_b], "who lists it is asked");
    // A name that goes is no advice: the server was loaded with another model.
    servers.apply(listed("http://b", &[("extra", "e")]), now);
    assert!(names(&servers, now).is_empty() && servers.of_model("wanted", now).is_empty());
    assert!(servers.trouble().unwrap().contains("expect wanted"));
    servers.apply(listed("http://b", &[("extra", "e")]), now);
    assert!(servers.trouble().unwrap().contains("expect wanted"), "as long as it is so");
}

#[test]
fn a_server_without_a_list_may_answer_for_what_no_list_names() {
    let now = Instant::now();
    let unlisted = || News::Unlisted { endpoint: "http://a".to_owned(), reason: "HTTP 404".to_owned() };
    let mut any = servers(&[]);
    any.apply(unlisted(), now);
    any.apply(listed("http://b", &[("m:latest", "m")]), now);
    assert_eq!(names(&any, now), [ANY_MODEL, "m:latest"]);
    let places = |servers: &Servers, name: &str| {
        let of_model = servers.of_model(name, now).into_iter();
        of_model.map(|key| key.load_address().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (places(&any, "m"), places(&any, "n")),
        (vec!["http://b".to_owned()], vec!["http://a".to_owned()])
    );
    let mut expecting = servers(&["n"]);
    expecting.apply(unlisted(), now);
    assert_eq!(names(&expecting, now), ["n"]);
    assert_eq!((places(&expecting, "n").len(), places(&expecting, "m").len()), (1, 0));
}

#[test]
fn the_first_question_of_a_model_is_alone_at_its_server() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    servers.apply(listed("http://a", &[("m", "org/m"), ("n", "org/n")]), now);
    let [m, n] = ["m", "n"].map(|name| servers.of_model(name, now).remove(0));
    [&m, &n].into_iter().for_each(|key| servers.open(key, Some(8)));
    let limits = |servers: &Servers| [&m, &n].map(|key| servers.limit(key));
    assert_eq!(limits(&servers), [1, 1]);
    servers.begin(&m);
    assert_eq!((servers.free(&m), servers.are_first_asked()), (0, true));
    servers.answered(&m);
    assert_eq!((servers.free(&m), limits(&servers), servers.are_first_asked()), (7, [8, 1], false));
    servers.failed_first(&n);
    assert_eq!(limits(&servers), [8, SECOND_QUESTIONS_MAX]);
    servers.leave_alone(&n, "HTTP 404", now);
    assert!(servers.of_model("n", now).is_empty());
    assert_eq!(servers.trouble().unwrap(), "n at http://a is not asked: HTTP 404");
    assert_eq!(servers.of_model("n", now + PARKED_MAX), std::slice::from_ref(&n));
    let silent = News::Unreachable { endpoint: "http://a".to_owned(), reason: "refused".to_owned() };
    servers.apply(silent, now);
    assert_eq!(limits(&servers), [1, 1], "who comes back may be another one");
    servers.open(&ServerKey::hosted(&ModelSpec::new("b", Connector::Replay)), Some(8));
    assert_eq!(servers.limits().map(|(_, limit, _)| limit).collect::<Vec<_>>(), [1, 1, 8], "in this process");
}

#[test]
fn a_server_is_seen_before_anything_is_asked_of_it() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    servers.apply(listed("http://a", &[("m", "org/m")]), now);
    let load = Load { running: 3.0, ..Load::default() };
    servers.apply(News::Load { endpoint: "http://a".to_owned(), loads: load.into() }, now);
    // The next list says nothing of the load.
    servers.apply(listed("http://a", &[("m", "org/m")]), now);
    let sights = servers.sights();
    let sight = &sights[0];
    assert_eq!((sight.name.as_str(), sight.is_up, sight.limit), ("m at http://a", Some(true), 1));
    assert!(sight.reason.is_none() && sight.load.is_some_and(|load| load.running == 3.0));
    servers.apply(listed("http://a", &[("m", "org/other")]), now);
    let sights = servers.sights();
    assert!(sights.len() == 1 && sights[0].is_mistaken && sights[0].name == "http://a");
    let silent = News::Unreachable { endpoint: "http://a".to_owned(), reason: "refused".to_owned() };
    servers.apply(silent, now);
    assert_eq!(servers.sights()[0].is_up, Some(false));
    assert!(servers.sights()[0].load.is_none(), "what a dead server said is not shown");
}

#[test]
fn another_model_under_an_old_name_is_not_asked() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    servers.apply(listed("http://a", &[("m", "org/first")]), now);
    servers.apply(listed("http://a", &[("m", "org/second")]), now);
    assert!(names(&servers, now).is_empty());
    let trouble = servers.trouble().unwrap();
    assert!(trouble.contains("serves org/second under the name m"), "{trouble}");
}

#[test]
fn limits_belong_to_servers() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    servers.apply(listed("http://a", &[("m", "org/m")]), now);
    let key = servers.of_model("m", now).remove(0);
    servers.open(&key, Some(4));
    servers.answered(&key);
    assert_eq!((servers.limit(&key), servers.prefetch(&key), servers.free(&key)), (4, 4, 4));
    servers.begin(&key);
    assert_eq!((servers.free(&key), servers.in_flight(&key)), (3, 1));
    servers.ended(&key, Some(false));
    servers.open(&key, None);
    servers.answered(&key);
    assert_eq!((servers.free(&key), servers.in_flight(&key)), (4, 0));
    let mut fixed = Servers::new(&"w".into(), Vec::new(), Some(100), None);
    fixed.open(&key, Some(4));
    fixed.answered(&key);
    assert_eq!((fixed.limit(&key), fixed.prefetch(&key)), (100, 25), "the worker's own setting comes first");
}

#[test]
fn metrics_tell_servers_of_several_workers_apart() {
    let now = Instant::now();
    let labels = |worker: &str, addresses: &[&str]| {
        let mut servers = Servers::new(&worker.into(), Vec::new(), None, None);
        for address in addresses {
            servers.apply(listed(address, &[("m", "org/m")]), now);
        }
        servers.sights().into_iter().map(|sight| (sight.name, sight.serves.to_owned())).collect::<Vec<_>>()
    };
    let m = |name: &str| (name.to_owned(), "m".to_owned());
    // The pods of a pool have the same address for their servers.
    for address in ["http://127.0.0.1:8000/v1", "http://localhost:8000/v1", "http://[::1]:8000/v1"] {
        assert_eq!(labels("pod-a", &[address]), [m("m at pod-a")]);
        assert_eq!(labels("pod-b", &[address]), [m("m at pod-b")]);
    }
    assert_eq!(
        labels("w", &["http://127.0.0.1:8000/v1", "http://127.0.0.1:8001/v1", "http://h:8000/v1"]),
        [m("m at w:8000"), m("m at w:8001"), m("m at http://h:8000/v1")]
    );
}

#[test]
fn a_server_that_loads_has_the_name_that_it_will_have() {
    let (now, address) = (Instant::now(), "http://127.0.0.1:8000/v1".to_owned());
    let servers = |expected: &[&str]| servers(expected).at(std::slice::from_ref(&address));
    let mut one = servers(&["org/m"]);
    let name = |servers: &Servers| {
        let sights = servers.sights();
        (sights[0].name.clone(), sights[0].serves.to_owned(), sights[0].is_up)
    };
    let m = |up| ("org/m at w".to_owned(), "org/m".to_owned(), Some(up));
    assert!(one.are_loading());
    assert_eq!(name(&one), m(false));
    one.apply(listed(&address, &[("org/m", "org/m")]), now);
    assert_eq!(name(&one), m(true));
    assert_eq!(name(&servers(&["a", "b"])), ("w".to_owned(), String::new(), Some(false)));
}

#[test]
fn a_load_moves_the_limits_of_its_address_and_says_when_to_look_again() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    let load = |running, waiting| {
        let load = Load { running, waiting, ..Load::default() };
        News::Load { endpoint: "http://a".to_owned(), loads: load.into() }
    };
    servers.apply(listed("http://a", &[("m", "org/m")]), now);
    servers.apply(load(0.0, 0.0), now);
    let key = servers.of_model("m", now).remove(0);
    servers.open(&key, None);
    servers.answered(&key);
    assert_eq!(servers.limit(&key), 4, "what it told before is known");
    (0..4).for_each(|_| servers.begin(&key));
    assert_eq!(servers.take_looks(), BTreeMap::from([("http://a".to_owned(), LoadLook::Soon)]));
    assert!(servers.take_looks().is_empty());
    servers.apply(load(4.0, 0.0), now);
    assert_eq!(servers.limit(&key), 5);
    servers.apply(load(4.0, 2.0), now);
    let limits: Vec<_> = servers.limits().map(|(_, limit, reason)| (limit, reason.as_str())).collect();
    assert_eq!(limits, [(3, "server-queue")]);
    let silent = News::Unreachable { endpoint: "http://a".to_owned(), reason: "refused".to_owned() };
    servers.apply(silent, now);
    servers.answered(&key);
    servers.ended(&key, Some(false));
    assert_eq!(servers.limit(&key), 4, "answers alone raise it now");
}

#[test]
fn the_load_of_a_configured_address_is_followed_if_its_limit_adapts() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    let key = |label: &str, connector: &str| {
        let spec = serde_json::json!({"label": label, "connector": connector, "endpoint": "http://h/v1"});
        ServerKey::hosted(&serde_json::from_value(spec).unwrap())
    };
    let [free, fixed] = ["a", "b"].map(|label| key(label, "openai-compatible"));
    let provider = key("c", "anthropic");
    for (key, concurrency) in [(&free, None), (&fixed, Some(8)), (&provider, None)] {
        servers.open(key, concurrency);
        servers.answered(key);
    }
    let followed = [&free, &fixed, &provider].map(|key| servers.load_to_follow(key));
    assert_eq!(followed, [Some("http://h/v1"), None, None]);
    servers.look_at_hosted();
    assert!(servers.take_looks().is_empty(), "nobody is asked");
    servers.begin(&free);
    servers.look_at_hosted();
    assert_eq!(servers.take_looks(), BTreeMap::from([("http://h/v1".to_owned(), LoadLook::Settled)]));
    let load = Load { running: 1.0, waiting: 40.0, ..Load::default() };
    servers.apply(News::Load { endpoint: "http://h/v1".to_owned(), loads: load.into() }, now);
    assert_eq!([&free, &fixed, &provider].map(|key| servers.limit(key)), [4, 8, 4]);
    (0..3).for_each(|_| servers.begin(&free));
    let load = Load { running: 1.0, waiting: 3.0, ..Load::default() };
    servers.apply(News::Load { endpoint: "http://h/v1".to_owned(), loads: load.into() }, now);
    assert_eq!(servers.limit(&free), 2);
}
