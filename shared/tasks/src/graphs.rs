//! Named graphs that cases refer to, read and indexed once per process and shared.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use rdf::{Graph, PrefixTable, QueryGraph, RdfFormat};

use crate::exercise::CaseError;

/// A graph ready for queries, with the prefixes of its document.
#[derive(Clone)]
pub struct ExerciseGraph {
    pub graph: QueryGraph,
    pub prefixes: PrefixTable,
}

impl From<&Graph> for ExerciseGraph {
    fn from(graph: &Graph) -> Self {
        Self { graph: QueryGraph::from_graph(graph), prefixes: graph.prefixes().clone() }
    }
}

/// Reads the document of a graph.
type Source = Box<dyn Fn() -> Result<Vec<u8>, String> + Send + Sync>;

struct NamedGraph {
    format: RdfFormat,
    source: Source,
    loaded: OnceLock<Result<Arc<ExerciseGraph>, CaseError>>,
}

/// Graphs by name. Cheap to clone.
#[derive(Clone, Default)]
pub struct GraphLibrary {
    graphs: Arc<BTreeMap<String, NamedGraph>>,
    deferred: bool,
    /// Whether cases may refer to graphs that are not there.
    incomplete: bool,
}

impl fmt::Debug for GraphLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.graphs.keys()).finish()
    }
}

/// Collects the graphs of a [`GraphLibrary`].
#[derive(Default)]
pub struct GraphLibraryBuilder {
    graphs: BTreeMap<String, NamedGraph>,
}

impl GraphLibraryBuilder {
    /// Adds a graph; `source` reads its document when it is first needed. A later graph of the same name replaces it.
    #[must_use]
    pub fn with(
        mut self,
        name: impl Into<String>,
        format: RdfFormat,
        source: impl Fn() -> Result<Vec<u8>, String> + Send + Sync + 'static,
    ) -> Self {
        let graph = NamedGraph { format, source: Box::new(source), loaded: OnceLock::new() };
        self.graphs.insert(name.into(), graph);
        self
    }

    /// The library. A case that refers to a graph reads it while it is built.
    pub fn build(self) -> GraphLibrary {
        GraphLibrary { graphs: Arc::new(self.graphs), deferred: false, incomplete: false }
    }

    /// A library for processes that ask questions and do not judge answers: building a case only checks that its graph is
    /// known; the graph is read when the case is [prepared](crate::Exercise::prepare) or first judged.
    pub fn build_deferred(self) -> GraphLibrary {
        GraphLibrary { graphs: Arc::new(self.graphs), deferred: true, incomplete: false }
    }
}

impl GraphLibrary {
    /// An empty builder.
    pub fn builder() -> GraphLibraryBuilder {
        GraphLibraryBuilder::default()
    }

    /// A library for reading answers without judging them: it has no graph, and builds cases that refer to one all the same.
    pub fn absent() -> Self {
        Self { graphs: Arc::default(), deferred: true, incomplete: true }
    }

    /// The graph of that name. The first caller reads and indexes it; others wait for it.
    pub fn get(&self, name: &str) -> Result<Arc<ExerciseGraph>, CaseError> {
        let named = self.named(name)?;
        named.loaded.get_or_init(|| named.load(name)).clone()
    }

    /// Checks that there is a graph of that name, without reading it.
    pub(crate) fn check(&self, name: &str) -> Result<(), CaseError> {
        if self.incomplete { Ok(()) } else { self.named(name).map(|_| ()) }
    }

    /// Whether cases defer reading their graph.
    pub(crate) fn is_deferred(&self) -> bool {
        self.deferred
    }

    fn named(&self, name: &str) -> Result<&NamedGraph, CaseError> {
        self.graphs.get(name).ok_or_else(|| CaseError::MissingGraph { name: name.to_owned() })
    }
}

impl NamedGraph {
    fn load(&self, name: &str) -> Result<Arc<ExerciseGraph>, CaseError> {
        let bad = |message: String| CaseError::BadGraph { name: name.to_owned(), message };
        let document = (self.source)().map_err(bad)?;
        let graph = Graph::parse_bytes(&document, self.format, None).map_err(|e| bad(e.to_string()))?;
        Ok(Arc::new((&graph).into()))
    }
}
