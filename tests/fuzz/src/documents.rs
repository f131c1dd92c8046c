//! Fuzz targets for the input from peers, servers, models and files.

use std::ops::ControlFlow;

use models::sse::{EventTooLarge, SseEvent, SseParser};
use rdf::{Dialect, Graph, PrefixTable, RdfFormat};
use results::llmkgbench;
use tasks::text::fences::fenced_blocks;

/// Longest document that is repaired: the work grows with the square of its length.
const REPAIRED_BYTES_MAX: usize = 2_000;

/// Messages of the wire.
pub fn wire(bytes: &[u8]) {
    proto::fuzzing::read_as_anything(bytes);
}

/// What a worker and its evaluation processes say to each other.
pub fn evaluator_protocol(bytes: &[u8]) {
    worker::evaluate::sandbox::read_as_anything(bytes);
}

/// A result file of LLM-KG-Bench, or an archive of some.
pub fn result_files(bytes: &[u8]) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("run_result.json");
    std::fs::write(&path, bytes).expect("a temporary file");
    for document in llmkgbench::discover(&[path], Some("no secret")).into_iter().flatten() {
        let mut given = 0;
        let summary = document.read(|record| {
            given += 1;
            if let Ok(read) = record {
                let record = read.record;
                let texts = record.prompts().chain(record.answers()).map(str::len).sum::<usize>();
                let told =
                    (record.model(), record.task_label(), record.task_version(), record.duration(), texts);
                assert!(!format!("{told:?}").is_empty());
            }
            ControlFlow::Continue(())
        });
        if let Ok(summary) = summary {
            assert_eq!(summary.records + summary.errors, given, "every record is handed over or told of");
        }
    }
}

/// An event stream: the pieces in which it comes do not matter.
pub fn sse(bytes: &[u8]) {
    let Some((&cut, stream)) = bytes.split_first() else { return };
    let cut = usize::from(cut).min(stream.len());
    let events = |chunks: &[&[u8]]| {
        let (mut parser, mut events) = (SseParser::default(), Vec::new());
        let mut keep = |event: SseEvent<'_>| {
            events.push((event.name.to_vec(), event.data.to_vec()));
            Ok::<(), EventTooLarge>(())
        };
        for chunk in chunks {
            parser.push(chunk, &mut keep).expect("no input is as long as an event may be");
        }
        parser.finish(&mut keep).expect("keeping does not fail");
        events
    };
    assert_eq!(events(&[stream]), events(&[&stream[..cut], &stream[cut..]]));
    assert_eq!(
        models::openai::read_as_events(stream, cut),
        models::openai::read_as_events(stream, 0),
        "a complete answer is complete in whatever pieces it comes"
    );
}

/// Fenced blocks of an answer: each is a part of it, in order and apart.
pub fn fences(bytes: &[u8]) {
    let answer = String::from_utf8_lossy(bytes);
    let mut from = 0;
    for block in fenced_blocks(&answer) {
        assert_eq!(block.whole, format!("```{}\n{}```", block.label, block.body));
        from +=
            answer[from..].find(block.whole).expect("a block is a part of the answer") + block.whole.len();
    }
}

/// A Turtle document, also a broken one; what could be read is read again after it was written.
pub fn turtle(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let parsed = Graph::parse(&text, RdfFormat::Turtle, None);
    if text.len() <= REPAIRED_BYTES_MAX {
        let lines = tasks::text::python::splitlines(&text);
        let repaired = rdf::parse_turtle_tolerantly(&text, &lines);
        if let Ok(graph) = &parsed {
            assert_eq!(graph.len(), repaired.len(), "what is not broken is not repaired");
        }
    }
    if let Ok(graph) = parsed {
        let written = graph.serialize(RdfFormat::NTriples, &PrefixTable::default());
        let again = Graph::parse(&written, RdfFormat::NTriples, None).expect("what was written is read");
        assert_eq!(again.len(), graph.len());
    }
}

/// A query, as both grammars read it: what the look at brackets and operators lets through overflows no stack.
pub fn sparql(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for dialect in [Dialect::Standard, Dialect::Rdflib, Dialect::Wikidata] {
        let _ = rdf::prepare(&text, &PrefixTable::default(), dialect);
    }
}
