//! `kgfleet halu generate`, from graphs with enough entities, with too few, and without a mapping.

use std::path::Path;

use ::harness::wikidata_graph::{self, WikidataShape};

use super::draw_invented;
use crate::harness::{Data, Finished};

/// A graph of three paintings, of which the last has no description, and how it is read.
const GRAPH: &str = r#"
@prefix e: <https://museum.example/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
e:Painting rdfs:label "painting" .
e:artist rdfs:label "artist" .
e:year rdfs:label "year" .
e:room rdfs:label "room" .
e:a e:type e:Painting ; rdfs:label "Dawn" ; e:about "Dawn shows a harbour." ;
    e:artist "Ada" ; e:year 1901 ; e:room "3" ; e:views 5 ; e:links 1 ; e:ids 1 ; e:tokens 20 ; e:sources 2 .
e:b e:type e:Painting ; rdfs:label "Dusk" ; e:about "Dusk shows a mill." ;
    e:artist "Bo" ; e:year 1902 ; e:room "4" ; e:views 9 ; e:links 2 ; e:ids 1 ; e:tokens 30 ; e:sources 1 .
e:c e:type e:Painting ; rdfs:label "Noon" ;
    e:artist "Cy" ; e:year 1903 ; e:room "5" ; e:views 2 ; e:links 0 ; e:ids 1 ; e:tokens 10 ; e:sources 1 .
"#;

const MAPPING: &str = r#"
type = "https://museum.example/type"
label = "http://www.w3.org/2000/01/rdf-schema#label"
description = "https://museum.example/about"

[statistics]
page_views = "https://museum.example/views"
site_links = "https://museum.example/links"
external_ids = "https://museum.example/ids"
page_tokens = "https://museum.example/tokens"
references = "https://museum.example/sources"
"#;

fn generate(data: &Data, graph: &Path, mapping: &Path, questions: &str) -> Finished {
    let (graph, mapping) = (graph.to_str().unwrap(), mapping.to_str().unwrap());
    let out = data.path().join("museum.kgpack");
    data.kgfleet(&[
        "halu",
        "generate",
        "--kg",
        graph,
        "--mapping",
        mapping,
        "--assessments",
        "1",
        "--questions",
        questions,
        "--out",
        out.to_str().unwrap(),
        "--json",
    ])
}

#[test]
fn a_graph_of_ones_own_is_asked_about_as_far_as_it_goes() {
    let data = Data::new();
    let (graph, mapping) = (data.write("museum.ttl", GRAPH), data.write("museum.toml", MAPPING));
    generate(&data, &graph, &mapping, "2").expect(0);
    generate(&data, &graph, &mapping, "3").expect(2).says(&["2 of 3 questions", "without a description"]);
}

/// A graph of Wikidata's shape as N-Triples.
fn shaped(entities: u64) -> String {
    let mut text = Vec::new();
    let shape = WikidataShape { entities, seed: 2, has_statistics: true };
    wikidata_graph::write(shape, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The questions that are drawn from a graph of Wikidata's shape, and the command's own words.
fn questions_of(data: &Data, graph: &str, more: &[&str]) -> (String, Finished) {
    let (cache, out) = (data.path().join("cache"), data.path().join("drawn.kgpack"));
    let files = [&cache, &out].map(|path| path.to_str().unwrap().to_owned());
    let numbers = ["--questions", "8", "--assessments", "2", "--json"];
    let arguments = [
        "halu",
        "generate",
        "--kg",
        graph,
        "--mapping",
        "wikidata",
        "--cache",
        &files[0],
        "--out",
        &files[1],
    ];
    let drawn = data.kgfleet(&[&arguments[..], &numbers, more].concat()).expect(0);
    let cases = (1..=2).flat_map(|task| (1..=8).map(move |case| format!("KGHalu-{task:02}/q{case:03}")));
    let show = |case: String| {
        let shown = data.kgfleet(&["pack", "show", &files[1], &case]).expect(0).stdout;
        // The parameters name the document.
        shown.lines().filter(|line| !line.starts_with("parameters")).collect::<Vec<_>>().join("\n")
    };
    (cases.map(show).collect(), drawn)
}

#[test]
fn a_document_is_drawn_from_in_every_syntax_and_compression() {
    let data = Data::new();
    let lines = shaped(300);
    let (expected, _) = questions_of(&data, data.write("graph.nt", &lines).to_str().unwrap(), &[]);
    let graph = rdf::Graph::parse(&lines, rdf::RdfFormat::NTriples, None).unwrap();
    let xml = graph.serialize(rdf::RdfFormat::RdfXml, graph.prefixes());
    let quads = lines.replace(" .\n", " <http://e/graph> .\n");
    let trig = format!("<http://e/graph> {{ {lines} }}");
    // Two members, as parallel tools write them.
    let in_two = |bytes: &[u8], packed: fn(&[u8]) -> Vec<u8>| {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        [packed(first), packed(second)].concat()
    };
    let gzip = |bytes: &[u8]| {
        in_two(bytes, |part| {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut out, part).unwrap();
            out.finish().unwrap()
        })
    };
    let bzip2 = |bytes: &[u8]| {
        in_two(bytes, |part| {
            let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            std::io::Write::write_all(&mut out, part).unwrap();
            out.finish().unwrap()
        })
    };
    for (name, bytes) in [
        ("a.nq", quads.clone().into_bytes()),
        ("a.trig", trig.into_bytes()),
        ("a.nt.gz", gzip(lines.as_bytes())),
        ("a.nq.bz2", bzip2(quads.as_bytes())),
        ("a.xml.zst", zstd::encode_all(xml.as_bytes(), 1).unwrap()),
    ] {
        let path = data.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let (questions, _) = questions_of(&data, path.to_str().unwrap(), &[]);
        assert_eq!(questions, expected, "{name}");
    }
    let bytes = gzip(lines.as_bytes());
    let refused = |name: &str, content: &[u8], code: i32, words: &[&str]| {
        let (graph, out) = (data.write(name, content), data.path().join("never.kgpack"));
        let [graph, out] = [&graph, &out].map(|path| path.to_str().unwrap());
        let arguments = ["halu", "generate", "--kg", graph, "--mapping", "wikidata", "--out", out];
        data.kgfleet(&arguments).expect(code).says(&[name]).says(words);
    };
    refused("cut.nt.gz", &bytes[..bytes.len() - 20], 3, &[]);
    refused("broken.nt.zst", b"no frame", 3, &[]);
    refused("graph.hdt", b"x", 2, &[".nt .nq .ttl .trig", ".bz2"]);
}

/// Asks an endpoint, keeping answers in a folder of this name.
fn from_endpoint(data: &Data, url: &str, cache: &str, more: &[&str]) -> Finished {
    let mapping = data.write("museum.toml", MAPPING);
    let (cache, out) = (data.path().join(cache), data.path().join("museum.kgpack"));
    let files = [mapping, cache, out].map(|path| path.to_str().unwrap().to_owned());
    let [mapping, cache, out] = &files;
    let arguments = ["halu", "generate", "--kg", url, "--mapping", mapping, "--cache", cache, "--out", out];
    data.kgfleet(&[&arguments[..], more].concat())
}

#[test]
fn an_endpoint_that_does_not_answer_is_given_up_and_nothing_is_written() {
    // It accepts connections and says nothing.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/sparql", listener.local_addr().unwrap());
    let data = Data::new();
    let asked = from_endpoint(&data, &url, "cache", &["--patience", "1", "--attempts", "1"]);
    asked.expect(3).says(&[&url, "timed out", "asked once"]);
    assert!(!data.path().join("museum.kgpack").exists());
}

#[test]
fn a_graph_that_cannot_be_read_is_named_with_the_reason() {
    let data = Data::new();
    let (graph, mapping) = (data.write("museum.ttl", GRAPH), data.write("museum.toml", MAPPING));
    let out = data.path().join("museum.kgpack");
    let out = out.to_str().unwrap();
    data.kgfleet(&["halu", "generate", "--kg", graph.to_str().unwrap(), "--out", out])
        .expect(2)
        .says(&["museum.ttl", "--mapping"]);
    let broken = data.write("broken.ttl", "this is no Turtle");
    generate(&data, &broken, &mapping, "1").expect(2).says(&["broken.ttl"]);
    let other = data.write("other.toml", MAPPING.replace("example/type", "example/kind"));
    generate(&data, &graph, &other, "1").expect(2).says(&["no entity of a valid type", "example/kind"]);
    let incomplete = data.write("incomplete.toml", MAPPING.replace("page_views", "views"));
    generate(&data, &graph, &incomplete, "1").expect(2).says(&["incomplete.toml", "\"views\""]);
    assert!(!Path::new(out).exists());
}

/// A server that answers each request with the next of these, and counts requests.
fn serve(answers: Vec<String>) -> (String, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/sparql", listener.local_addr().unwrap());
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&asked);
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 16_384];
            let read = stream.read(&mut request).unwrap();
            assert!(
                String::from_utf8_lossy(&request[..read]).to_lowercase().contains("user-agent: kgfleet/")
            );
            counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (url, asked)
}

#[test]
fn an_endpoint_is_asked_politely_and_never_twice() {
    let empty = r#"{"head": {"vars": []}, "results": {"bindings": []}}"#;
    let close = "Connection: close";
    let ok =
        |body: &str| format!("HTTP/1.1 200 OK\r\n{close}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let (url, asked) = serve(vec![
        format!("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\n{close}\r\nContent-Length: 0\r\n\r\n"),
        ok("<html>too busy</html>"),
        ok(&empty[..empty.len() - 2]),
        ok(empty),
        format!("HTTP/1.1 400 Bad Request\r\n{close}\r\nContent-Length: 9\r\n\r\nno SPARQL"),
    ]);
    let data = Data::new();
    let ask = |cache: &str| from_endpoint(&data, &url, cache, &[]);
    for _ in 0..2 {
        ask("cache").expect(2).says(&["counts no entities"]);
        assert_eq!(
            asked.load(std::sync::atomic::Ordering::SeqCst),
            4,
            "the second command finds the answer kept, and nothing that was none"
        );
    }
    ask("other").expect(3).says(&["400", "no SPARQL"]);
}

#[test]
fn the_bundled_pack_is_what_the_generator_draws_today() {
    let data = Data::new();
    let out = data.path().join("halu-demo.kgpack");
    let drawn = draw_invented(
        &data,
        &[
            "--source",
            "the invented graph of seed 1",
            "--questions",
            "10",
            "--assessments",
            "3",
            "--out",
            out.to_str().unwrap(),
            "--json",
        ],
    );
    let bundled = data.kgfleet(&["pack", "list", "halu-demo", "--json"]).expect(0);
    assert_eq!(drawn.json()["hash"], bundled.json()["hash"], "draw it again into task-data/");
}

#[test]
fn a_pack_brings_the_wording_that_it_was_drawn_with() {
    let data = Data::new();
    let out = data.path().join("own.kgpack");
    let out = out.to_str().unwrap();
    let wording =
        "system = \"Be brief.\"\nfirst = \"{{name}}? {{relation1}}, {{relation2}}, {{relation3}}.\"\n";
    let file = data.write("wording.toml", wording);
    let numbers =
        ["--out", out, "--questions", "2", "--assessments", "1", "--wording", file.to_str().unwrap()];
    draw_invented(&data, &numbers);
    data.kgfleet(&["pack", "verify", out]).expect(0);
    let folder = data.path().join("unsealed");
    data.kgfleet(&["pack", "unseal", out, folder.to_str().unwrap()]).expect(0);
    let mut texts = String::new();
    for file in ["tasks", "wording"]
        .iter()
        .flat_map(|part| std::fs::read_dir(folder.join(part)).into_iter().flatten())
    {
        texts += &std::fs::read_to_string(file.unwrap().path()).unwrap_or_default();
    }
    assert!(texts.contains("Be brief.") && texts.contains("{{name}}? {{relation1}}"), "{texts}");
    data.write("wording.toml", wording.replace("{{relation2}}", ""));
    let mapping = data.path().join("mapping.toml");
    let graph = data.path().join("graph.ttl");
    let generate =
        ["halu", "generate", "--kg", graph.to_str().unwrap(), "--mapping", mapping.to_str().unwrap()];
    data.kgfleet(&[&generate[..], &numbers].concat())
        .expect(2)
        .says(&["wording.toml", "lacks the placeholder `relation2`"]);
}
