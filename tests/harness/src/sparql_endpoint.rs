//! A SPARQL endpoint over a graph, with an engine of its own behind it: what it answers is what the standard says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rdf::stream::{StreamError, StreamFormat};
use rdf::{Dialect, Graph, PrefixTable, QueryGraph, QueryLimits, Value};
use serde_json::{Map, json};

/// Answers queries about a graph.
pub struct SparqlEngine(QueryGraph);

impl SparqlEngine {
    /// An engine over this graph.
    pub fn new(graph: &Graph) -> Self {
        Self(QueryGraph::from_graph(graph))
    }

    /// An engine over a document of N-Triples of any size.
    ///
    /// # Errors
    /// The document cannot be read, or is no N-Triples.
    pub fn read(document: &mut dyn Read) -> Result<Self, StreamError> {
        QueryGraph::read(document, StreamFormat::Lines).map(Self)
    }

    /// The answer to a SELECT query in the SPARQL 1.1 Query Results JSON Format.
    ///
    /// # Errors
    /// What is wrong with the query.
    pub fn answer(&self, query: &str) -> Result<String, String> {
        let prepared = rdf::prepare(query, &PrefixTable::default(), Dialect::Standard)
            .map_err(|error| format!("{error}: {query}"))?;
        let limits = QueryLimits { deadline: None, ..QueryLimits::default() };
        let solutions = prepared.execute(&self.0, &limits).map_err(|error| error.to_string())?;
        let row = |cells: Vec<Option<Value>>| {
            let named = solutions.variables.iter().cloned().zip(cells);
            named.filter_map(|(name, cell)| Some((name, term(cell?)))).collect::<Map<_, _>>()
        };
        let bindings: Vec<Map<_, _>> = solutions.rows.iter().cloned().map(row).collect();
        Ok(json!({"head": {"vars": solutions.variables}, "results": {"bindings": bindings}}).to_string())
    }
}

fn term(value: Value) -> serde_json::Value {
    match value {
        Value::Iri(iri) => json!({"type": "uri", "value": iri}),
        Value::Literal { lexical, language: Some(language), .. } => {
            json!({"type": "literal", "value": lexical, "xml:lang": language})
        }
        Value::Literal { lexical, datatype, .. } => {
            json!({"type": "literal", "value": lexical, "datatype": datatype})
        }
        Value::Blank(label) => json!({"type": "bnode", "value": label}),
    }
}

/// A server in front of an engine, until the process ends.
pub struct SparqlServer {
    pub address: SocketAddr,
    asked: Arc<AtomicU64>,
}

impl SparqlServer {
    /// Serves on a free port of loopback. Of so many requests the last is refused for the moment; 0: none is.
    ///
    /// # Panics
    /// Without a free port.
    pub fn start(engine: SparqlEngine, refused_every: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that goes away in the middle of a request is no matter of the server.
                let _ = serve(stream, &engine, refused_every, &counter);
            }
        });
        Self { address, asked }
    }

    /// Its address for `--kg`.
    pub fn url(&self) -> String {
        format!("http://{}/sparql", self.address)
    }

    /// Number of requests so far.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }
}

/// Serves the requests of a connection.
fn serve(stream: TcpStream, engine: &SparqlEngine, every: u64, asked: &AtomicU64) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut out = stream;
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
        let (status, more, text) = if every > 0 && number.is_multiple_of(every) {
            ("503 Service Unavailable", "Retry-After: 0\r\n", "busy".to_owned())
        } else {
            match engine.answer(&String::from_utf8_lossy(&body)) {
                Ok(text) => ("200 OK", "", text),
                Err(text) => ("400 Bad Request", "", text),
            }
        };
        write!(out, "HTTP/1.1 {status}\r\n{more}Content-Length: {}\r\n\r\n{text}", text.len())?;
        out.flush()?;
    }
}
