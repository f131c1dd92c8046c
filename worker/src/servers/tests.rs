use super::*;
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
    servers.apply(listed("http://a", &[("m", "org/m")]), now).unwrap();
    servers.apply(listed("http://b", &[("m", "org/m")]), now).unwrap();
    let keys = servers.of_model("m", now);
    assert_eq!(keys.len(), 2);
    assert_eq!(servers.found(&keys[0]).unwrap().context_tokens, Some(4096));
    let silent = News::Unreachable { endpoint: "http://a".to_owned(), reason: "refused".to_owned() };
    servers.apply(silent.clone(), now).unwrap();
    servers.apply(silent, now + GIVEN_UP_AFTER / 2).unwrap();
    assert_eq!((servers.free(&keys[0]), servers.free(&keys[1])), (0, 32));
    assert_eq!(servers.of_model("m", now).len(), 2, "it may be back soon");
    assert_eq!(servers.of_model("m", now + GIVEN_UP_AFTER), &keys[1..]);
    assert!(servers.trouble().unwrap().contains("http://a does not answer any more: refused"));
    servers.apply(listed("http://a", &[("m", "org/m")]), now).unwrap();
    servers.apply(News::Removed { endpoint: "http://b".to_owned() }, now).unwrap();
    assert_eq!((servers.of_model("m", now), servers.trouble()), (keys[..1].to_vec(), None));
}

#[test]
fn records_say_what_the_server_says_of_itself() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    let (endpoint, version) = ("http://a".to_owned(), "0.32.0".to_owned());
    servers.apply(News::Version { endpoint, version }, now).unwrap();
    let root = "/hf/models--org--m/snapshots/abc123";
    servers.apply(listed("http://a", &[("m", root)]), now).unwrap();
    let key = servers.of_model("m", now).remove(0);
    let made = servers.made_at(&key, MadeAt { node: Some("n".to_owned()), ..MadeAt::default() });
    assert_eq!((made.server_version.as_deref(), made.weights.as_deref()), (Some("0.32.0"), Some(root)));
    assert_eq!((made.revision.as_deref(), made.node.as_deref()), (Some("abc123"), Some("n")));
    let told = servers.made_at(&key, MadeAt { revision: Some("v2".to_owned()), ..MadeAt::default() });
    assert_eq!(told.revision.as_deref(), Some("v2"));
}

#[test]
fn records_say_how_the_server_answered_canary_prompts_when_it_was_loaded() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    let print = CanaryPrint::of(&domain::canary::PROMPTS.map(str::to_owned));
    let told = |print| News::Canaries { endpoint: "http://a".to_owned(), model: "m".to_owned(), print };
    servers.apply(told(print.clone()), now).unwrap();
    servers.apply(listed("http://a", &[("m", "org/m")]), now).unwrap();
    let key = servers.of_model("m", now).remove(0);
    let canary = |servers: &Servers| servers.made_at(&key, MadeAt::default()).canary;
    assert_eq!(canary(&servers), print.map(|print| print.to_string()));
    assert_eq!(servers.likeness().sights().collect::<Vec<_>>(), [("m", "m at http://a", 0)]);
    servers.apply(told(None), now).unwrap();
    assert_eq!(canary(&servers), None);
}

#[test]
fn a_server_of_other_models_is_refused_with_what_to_do() {
    let (mut servers, now) = (servers(&["wanted"]), Instant::now());
    let error = servers.apply(listed("http://a", &[("other", "org/other")]), now).unwrap_err().to_string();
    for part in ["http://a serves other", "expect wanted", "--served-model-name", "--model"] {
        assert!(error.contains(part), "{error}");
    }
    servers.apply(listed("http://b", &[("wanted", "w"), ("extra", "e")]), now).unwrap();
    assert_eq!(names(&servers, now), ["wanted"], "what was not asked for is not offered");
    // Later it is no reason to end: the other servers go on.
    servers.apply(listed("http://b", &[("extra", "e")]), now).unwrap();
    assert!(names(&servers, now).is_empty());
    assert!(servers.trouble().unwrap().contains("expect wanted"));
}

#[test]
fn a_server_is_seen_before_anything_is_asked_of_it() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    servers.apply(listed("http://a", &[("m", "org/m")]), now).unwrap();
    let load = Load { running: 3.0, ..Load::default() };
    servers.apply(News::Load { endpoint: "http://a".to_owned(), loads: load.into() }, now).unwrap();
    // The next list says nothing of the load.
    servers.apply(listed("http://a", &[("m", "org/m")]), now).unwrap();
    let sights = servers.sights();
    let sight = &sights[0];
    assert_eq!((sight.name.as_str(), sight.is_up, sight.limit), ("m at http://a", Some(true), 32));
    assert!(sight.reason.is_none() && sight.load.is_some_and(|load| load.running == 3.0));
    servers.apply(listed("http://a", &[("m", "org/other")]), now).unwrap();
    let sights = servers.sights();
    assert!(sights.len() == 1 && sights[0].is_mistaken && sights[0].name == "http://a");
    let silent = News::Unreachable { endpoint: "http://a".to_owned(), reason: "refused".to_owned() };
    servers.apply(silent, now).unwrap();
    assert_eq!(servers.sights()[0].is_up, Some(false));
    assert!(servers.sights()[0].load.is_none(), "what a dead server said is not shown");
}

#[test]
fn another_model_under_an_old_name_is_not_asked() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    servers.apply(listed("http://a", &[("m", "org/first")]), now).unwrap();
    servers.apply(listed("http://a", &[("m", "org/second")]), now).unwrap();
    assert!(names(&servers, now).is_empty());
    let trouble = servers.trouble().unwrap();
    assert!(trouble.contains("serves org/second under the name m"), "{trouble}");
}

#[test]
fn limits_belong_to_servers() {
    let (mut servers, now) = (servers(&[]), Instant::now());
    servers.apply(listed("http://a", &[("m", "org/m")]), now).unwrap();
    let key = servers.of_model("m", now).remove(0);
    servers.open(&key, Some(4));
    assert_eq!((servers.limit(&key), servers.prefetch(&key), servers.free(&key)), (4, 4, 4));
    servers.begin(&key);
    assert_eq!((servers.free(&key), servers.in_flight(&key)), (3, 1));
    servers.ended(&key, Some(false));
    servers.open(&key, None);
    assert_eq!((servers.free(&key), servers.in_flight(&key)), (4, 0));
    let mut fixed = Servers::new(&"w".into(), Vec::new(), Some(100), None);
    fixed.open(&key, Some(4));
    assert_eq!((fixed.limit(&key), fixed.prefetch(&key)), (100, 25), "the worker's own setting comes first");
}

#[test]
fn metrics_tell_servers_of_several_workers_apart() {
    let now = Instant::now();
    let labels = |worker: &str, addresses: &[&str]| {
        let mut servers = Servers::new(&worker.into(), Vec::new(), None, None);
        for address in addresses {
            servers.apply(listed(address, &[("m", "org/m")]), now).unwrap();
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
    one.apply(listed(&address, &[("org/m", "org/m")]), now).unwrap();
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
    servers.apply(listed("http://a", &[("m", "org/m")]), now).unwrap();
    servers.apply(load(0.0, 0.0), now).unwrap();
    let key = servers.of_model("m", now).remove(0);
    servers.open(&key, None);
    assert_eq!(servers.limit(&key), 4, "what it told before is known");
    (0..4).for_each(|_| servers.begin(&key));
    assert_eq!(servers.take_looks(), BTreeMap::from([("http://a".to_owned(), LoadLook::Soon)]));
    assert!(servers.take_looks().is_empty());
    servers.apply(load(4.0, 0.0), now).unwrap();
    assert_eq!(servers.limit(&key), 5);
    servers.apply(load(4.0, 2.0), now).unwrap();
    let limits: Vec<_> = servers.limits().map(|(_, limit, reason)| (limit, reason.as_str())).collect();
    assert_eq!(limits, [(3, "server-queue")]);
    let silent = News::Unreachable { endpoint: "http://a".to_owned(), reason: "refused".to_owned() };
    servers.apply(silent, now).unwrap();
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
    }
    let followed = [&free, &fixed, &provider].map(|key| servers.load_to_follow(key));
    assert_eq!(followed, [Some("http://h/v1"), None, None]);
    servers.look_at_hosted();
    assert!(servers.take_looks().is_empty(), "nobody is asked");
    servers.begin(&free);
    servers.look_at_hosted();
    assert_eq!(servers.take_looks(), BTreeMap::from([("http://h/v1".to_owned(), LoadLook::Settled)]));
    let load = Load { running: 1.0, waiting: 40.0, ..Load::default() };
    servers.apply(News::Load { endpoint: "http://h/v1".to_owned(), loads: load.into() }, now).unwrap();
    assert_eq!([&free, &fixed, &provider].map(|key| servers.limit(key)), [32, 8, 4]);
    (0..31).for_each(|_| servers.begin(&free));
    let load = Load { running: 8.0, waiting: 24.0, ..Load::default() };
    servers.apply(News::Load { endpoint: "http://h/v1".to_owned(), loads: load.into() }, now).unwrap();
    assert_eq!(servers.limit(&free), 9);
}
