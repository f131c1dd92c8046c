//! `kgfleet halu fetch` from a stand-in for Wikimedia's public interfaces, written from their documentation.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::harness::{Data, Finished};

/// Items of the list.
const ITEMS: usize = 12;

/// The stand-in: Wikidata, Wikipedia and the page views at one address.
struct Wikimedia {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Wikimedia {
    /// Of so many requests the last is refused for the moment; in turn because of too many requests and because replicas lag.
    fn start(refused_every: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let number = counter.fetch_add(1, Ordering::SeqCst) + 1;
                serve(stream, number, refused_every);
            }
        });
        Self { url, asked }
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, number: usize, refused_every: usize) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let agent = headers.iter().find(|header| header.to_lowercase().starts_with("user-agent: kgfleet/"));
    assert!(agent.is_some_and(|agent| agent.ends_with("me@museum.example")), "{headers:?}");
    let (status, body) = if !number.is_multiple_of(refused_every) {
        answer(first.split(' ').nth(1).unwrap())
    } else if number.is_multiple_of(2) {
        ("429 Too Many Requests", Value::Null)
    } else {
        (
            "200 OK",
            json!({"error": {"code": "maxlag", "info": "Waiting for a replica: 7 seconds lagged", "lag": 7}}),
        )
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\nRetry-After: 0\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    // A command that was killed does not listen any more.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

fn answer(target: &str) -> (&'static str, Value) {
    let url = url::Url::parse(&format!("http://stand.in{target}")).unwrap();
    let parameter =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    if url.path().starts_with("/api/rest_v1/metrics/pageviews/per-article/en.wikipedia.org/all-access/user/")
    {
        // The last item's page was never viewed.
        if url.path().contains(&format!("Person_{}/", ITEMS - 1)) {
            return ("404 Not Found", json!({"type": "about:blank", "title": "Not Found"}));
        }
        return ("200 OK", json!({"items": [{"views": 40}, {"views": 2}]}));
    }
    assert_eq!((url.path(), parameter("maxlag").as_deref()), ("/w/api.php", Some("5")));
    if parameter("action").unwrap() == "query" {
        let title = parameter("titles").unwrap();
        let extract = format!("{title} was a painter of harbours.\n\n\n== Life ==\n{title} painted.");
        return ("200 OK", json!({"query": {"pages": [{"title": title, "extract": extract}]}}));
    }
    assert_eq!(parameter("action").unwrap(), "wbgetentities");
    let ids = parameter("ids").unwrap();
    assert!(ids.split('|').count() <= 50);
    let with_claims = parameter("props").unwrap().contains("claims");
    let entities = ids.split('|').map(|id| (id.to_owned(), entity(id, with_claims)));
    ("200 OK", json!({"entities": entities.collect::<serde_json::Map<_, _>>(), "success": 1}))
}

fn entity(id: &str, with_claims: bool) -> Value {
    let number: usize = id[1..].parse().unwrap();
    let label = |words: String| json!({"en": {"language": "en", "value": words}});
    if !with_claims {
        return json!({"id": id, "labels": label(format!("thing {id}"))});
    }
    let number = number - 1;
    let snak = |property: &str, datatype: &str, value: Value| json!({"snaktype": "value", "property": property, "datatype": datatype, "datavalue": {"value": value}});
    let item = |property: &str, object: usize| {
        let value = json!({"entity-type": "item", "id": format!("Q{object}")});
        json!([{"mainsnak": snak(property, "wikibase-item", value), "rank": "normal", "references": [{"snaks": {}}]}])
    };
    let born = json!({"time": "+1871-00-00T00:00:00Z", "precision": 9});
    json!({
        "id": id,
        "labels": label(format!("Person {number}")),
        "claims": {
            "P31": item("P31", 5),
            "P19": item("P19", 700 + number),
            "P27": item("P27", 800),
            // The preferred one counts.
            "P106": [
                {"mainsnak": snak("P106", "wikibase-item", json!({"id": "Q901"})), "rank": "normal"},
                {"mainsnak": snak("P106", "wikibase-item", json!({"id": "Q902"})), "rank": "preferred"},
            ],
            "P570": [{"mainsnak": {"snaktype": "somevalue", "property": "P570", "datatype": "time"}, "rank": "normal"}],
            "P569": [{"mainsnak": snak("P569", "time", born), "rank": "normal"}],
            "P214": [{"mainsnak": snak("P214", "external-id", json!("12345")), "rank": "normal"}],
            "P373": [{"mainsnak": snak("P373", "string", json!("Person")), "rank": "normal"}],
        },
        "sitelinks": {
            "enwiki": {"site": "enwiki", "title": format!("Person {number}")},
            "dewiki": {"site": "dewiki", "title": format!("Mensch {number}")},
        },
    })
}

/// Fetches the items of the list.
fn fetch(data: &Data, server: &Wikimedia, out: &str) -> Finished {
    let list: String = (1..=ITEMS).map(|number| format!("Q{number}\n")).collect();
    let (list, cache, out) =
        (data.write("items.txt", list), data.path().join("cache"), data.path().join(out));
    let [list, cache, out] = [&list, &cache, &out].map(|path| path.to_str().unwrap());
    let url = server.url.as_str();
    data.kgfleet(&[
        "halu",
        "fetch",
        "--items",
        list,
        "--contact",
        "me@museum.example",
        "--cache",
        cache,
        "--out",
        out,
        "--pause",
        "0",
        "--wikidata",
        url,
        "--wikipedia",
        url,
        "--page-views",
        url,
    ])
}

#[test]
fn what_is_fetched_is_asked_about() {
    let data = Data::new();
    let server = Wikimedia::start(3);
    fetch(&data, &server, "people.nt").expect(0).says(&["about 12 items"]);
    let asked = server.asked();
    // One for the items, two for each page, one for labels; some were refused.
    assert!((26..=40).contains(&asked), "{asked}");
    fetch(&data, &server, "again.nt").expect(0);
    assert_eq!(server.asked(), asked, "answers are kept");
    let graph = std::fs::read_to_string(data.path().join("people.nt")).unwrap();
    assert_eq!(graph, std::fs::read_to_string(data.path().join("again.nt")).unwrap());
    assert!(!graph.contains("Q901") && graph.contains("Q902"));

    let out = data.path().join("people.kgpack");
    let [graph, out] = [data.path().join("people.nt"), out].map(|path| path.to_str().unwrap().to_owned());
    let drawn = data.kgfleet(&[
        "halu",
        "generate",
        "--kg",
        &graph,
        "--mapping",
        "wikidata",
        "--questions",
        "12",
        "--assessments",
        "1",
        "--out",
        &out,
        "--json",
    ]);
    assert_eq!(drawn.expect(0).json()["missing_statistics"], json!([]));
    let shown = data.kgfleet(&["pack", "show", &out, "KGHalu-01/q001"]).expect(0).stdout;
    assert!(shown.contains("(1871-)") && shown.contains("was a painter of harbours."), "{shown}");
    for foreign in ["12345", "painted.", "thing P214", "thing P373"] {
        assert!(!shown.contains(foreign), "{shown}");
    }
}

#[test]
fn a_list_that_names_no_items_is_refused_and_a_server_that_fails_is_named() {
    let data = Data::new();
    let server = Wikimedia::start(usize::MAX);
    let (list, out) = (data.write("items.txt", "Q1\nDouglas\n"), data.path().join("people.nt"));
    let [list, out] = [&list, &out].map(|path| path.to_str().unwrap());
    let arguments = ["halu", "fetch", "--items", list, "--contact", "me@museum.example", "--out", out];
    data.kgfleet(&arguments).expect(2).says(&["line 2", "Douglas"]);
    let only = data.write("items.txt", "Q1\n");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{nobody}");
    let failing = ["--items", only.to_str().unwrap(), "--wikidata", &nobody, "--attempts", "1"];
    data.kgfleet(
        &[&["halu", "fetch", "--contact", "me@museum.example", "--out", out][..], &failing].concat(),
    )
    .expect(3)
    .says(&["wbgetentities", "asked once"]);
    assert_eq!(server.asked(), 0);
    assert!(!std::path::Path::new(out).exists());
}
