//! Reads shapes from a graph, and refuses a graph that cannot be used: what is ill-formed, what is not SHACL Core, shapes that
//! refer to themselves, and nesting beyond [`NESTING_MAX`].

use std::collections::{BTreeSet, HashMap};

use crate::{Graph, QueryGraph, Term};
use regex::{Regex, RegexBuilder};

use crate::shacl::constraint::{Constraint, NamedConstraint, NodeKinds};
use crate::shacl::error::{NESTING_MAX, SHAPES_MAX, ShapesError};
use crate::shacl::path::ShapePath;
use crate::shacl::terms::{ShapesGraph, rdf_type, rdfs_class, sh, subclass};

/// Maximum size of a compiled regular expression, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Properties of SHACL beyond Core: silently passing them over would be a wrong verdict.
const BEYOND_CORE: [&str; 9] =
    ["sparql", "target", "js", "rule", "expression", "select", "ask", "targetShape", "entailment"];

/// Properties that make a shape of the node that has them.
const PARAMETERS: [&str; 32] = [
    "class",
    "datatype",
    "nodeKind",
    "minCount",
    "maxCount",
    "minExclusive",
    "minInclusive",
    "maxExclusive",
    "maxInclusive",
    "minLength",
    "maxLength",
    "pattern",
    "languageIn",
    "uniqueLang",
    "equals",
    "disjoint",
    "lessThan",
    "lessThanOrEquals",
    "not",
    "and",
    "or",
    "xone",
    "node",
    "property",
    "qualifiedValueShape",
    "closed",
    "hasValue",
    "in",
    "targetNode",
    "targetClass",
    "targetSubjectsOf",
    "targetObjectsOf",
];

/// Shapes of a graph, ready to be used.
#[derive(Clone, Debug, Default)]
pub struct ShaclShapes {
    pub(crate) list: Vec<ShaclShape>,
}

#[derive(Clone, Debug)]
pub(crate) struct ShaclShape {
    /// Its name, as N-Triples write it.
    pub(crate) name: String,
    /// The path of a property shape.
    pub(crate) path: Option<ShapePath>,
    pub(crate) targets: Vec<ShapeTarget>,
    pub(crate) constraints: Vec<NamedConstraint>,
    pub(crate) deactivated: bool,
}

/// What a shape is about.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ShapeTarget {
    Node(Term),
    Class(String),
    SubjectsOf(String),
    ObjectsOf(String),
}

impl ShaclShapes {
    /// Reads the shapes of a graph.
    ///
    /// # Errors
    /// The graph cannot be used as shapes; the first reason that is found.
    pub fn read(graph: &Graph) -> Result<Self, ShapesError> {
        let indexed = QueryGraph::from_graph(graph);
        let graph = ShapesGraph { graph: indexed.as_rdflib() };
        for local in BEYOND_CORE {
            if !graph.subjects(&sh(local)).is_empty() {
                return Err(ShapesError::BeyondCore(local));
            }
        }
        let mut reader = ShapesReader { graph, places: HashMap::new(), list: Vec::new() };
        for node in reader.roots() {
            reader.place(node, 0)?;
        }
        let shapes = Self { list: reader.list.into_iter().flatten().collect() };
        shapes.check_recursion()?;
        Ok(shapes)
    }

    /// The number of shapes, those within others included.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is no shape.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether any shape says what it is about. Without one, every graph conforms.
    pub fn have_target(&self) -> bool {
        self.list.iter().any(|shape| !shape.targets.is_empty())
    }

    /// References form no circle, and no chain longer than [`NESTING_MAX`].
    fn check_recursion(&self) -> Result<(), ShapesError> {
        let mut heights: Vec<Option<usize>> = vec![None; self.list.len()];
        for start in 0..self.list.len() {
            self.height(start, &mut heights, &mut Vec::new())?;
        }
        Ok(())
    }

    fn height(
        &self,
        at: usize,
        heights: &mut Vec<Option<usize>>,
        above: &mut Vec<usize>,
    ) -> Result<usize, ShapesError> {
        if above.contains(&at) {
            return Err(ShapesError::Recursive(self.list[at].name.clone()));
        }
        if let Some(height) = heights[at] {
            return Ok(height);
        }
        if above.len() > NESTING_MAX {
            return Err(ShapesError::TooDeep);
        }
        above.push(at);
        let mut height = 0;
        for inner in self.list[at].constraints.iter().flat_map(|(_, constraint)| constraint.shapes()) {
            height = height.max(self.height(inner, heights, above)? + 1);
        }
        above.pop();
        heights[at] = Some(height);
        if height > NESTING_MAX { Err(ShapesError::TooDeep) } else { Ok(height) }
    }
}

struct ShapesReader<'g> {
    graph: ShapesGraph<'g>,
    /// The place of each node that is a shape.
    places: HashMap<u32, usize>,
    /// Shapes by place; `None` while one is being read.
    list: Vec<Option<ShaclShape>>,
}

impl ShapesReader<'_> {
    /// The nodes that are shapes whoever refers to them, in the order of the index.
    fn roots(&self) -> BTreeSet<u32> {
        let typed = ["NodeShape", "PropertyShape"].into_iter();
        let typed = typed.flat_map(|class| self.graph.subjects_of(&rdf_type(), &sh(class)));
        let having = PARAMETERS.into_iter().flat_map(|local| self.graph.subjects(&sh(local)));
        typed.chain(having).collect()
    }

    /// The place of a shape, which is read now if it was not.
    fn place(&mut self, node: u32, depth: usize) -> Result<usize, ShapesError> {
        if let Some(place) = self.places.get(&node) {
            return Ok(*place);
        }
        if depth > NESTING_MAX {
            return Err(ShapesError::TooDeep);
        }
        if self.list.len() == SHAPES_MAX {
            return Err(ShapesError::TooMany);
        }
        let place = self.list.len();
        self.list.push(None);
        self.places.insert(node, place);
        let shape = self.shape(node, depth)?;
        self.list[place] = Some(shape);
        Ok(place)
    }

    fn places(&mut self, nodes: Vec<u32>, depth: usize) -> Result<Vec<usize>, ShapesError> {
        nodes.into_iter().map(|node| self.place(node, depth + 1)).collect()
    }

    fn shape(&mut self, node: u32, depth: usize) -> Result<ShaclShape, ShapesError> {
        if let Term::Literal(_) = self.graph.term(node) {
            return Err(self.graph.wrong(node, "is a literal".to_owned()));
        }
        let path = self.graph.one(node, "path")?;
        let path = path.map(|path| ShapePath::read(&self.graph, node, path)).transpose()?;
        let mut constraints = self.of_values(node)?;
        constraints.extend(self.of_numbers(node, path.is_some())?);
        constraints.extend(self.of_texts(node)?);
        constraints.extend(self.of_pairs(node, path.is_some())?);
        constraints.extend(self.of_shapes(node, depth)?);
        Ok(ShaclShape {
            name: self.graph.term(node).to_string(),
            path,
            targets: self.targets(node)?,
            constraints,
            deactivated: self.graph.is_true(node, "deactivated")?,
        })
    }

    fn targets(&self, node: u32) -> Result<Vec<ShapeTarget>, ShapesError> {
        let graph = &self.graph;
        let mut targets = Vec::new();
        for value in graph.values(node, &sh("targetNode")) {
            targets.push(ShapeTarget::Node(graph.term(value).clone()));
        }
        for (local, target) in [
            ("targetClass", ShapeTarget::Class as fn(String) -> ShapeTarget),
            ("targetSubjectsOf", ShapeTarget::SubjectsOf),
            ("targetObjectsOf", ShapeTarget::ObjectsOf),
        ] {
            for value in graph.values(node, &sh(local)) {
                targets.push(target(graph.iri(node, value, local)?));
            }
        }
        // A class that is a shape is about its own members.
        if let Term::NamedNode(class) = graph.term(node)
            && self.is_class(node)
        {
            targets.push(ShapeTarget::Class(class.as_str().to_owned()));
        }
        Ok(targets)
    }

    fn is_class(&self, node: u32) -> bool {
        let classes = self.graph.values(node, &rdf_type());
        let up = ShapePath::Repeated { path: ShapePath::Predicate(subclass()).into(), from_zero: true };
        let wanted = rdfs_class();
        classes.iter().any(|class| {
            let above = up.follow(self.graph.graph, *class);
            above.iter().any(
                |class| matches!(self.graph.term(*class), Term::NamedNode(node) if node.as_str() == wanted),
            )
        })
    }

    /// What values are.
    fn of_values(&self, node: u32) -> Result<Vec<NamedConstraint>, ShapesError> {
        let graph = &self.graph;
        let mut found = Vec::new();
        for value in graph.values(node, &sh("class")) {
            found.push(("class", Constraint::Class(graph.iri(node, value, "class")?)));
        }
        if let Some(value) = graph.one(node, "datatype")? {
            found.push(("datatype", Constraint::Datatype(graph.iri(node, value, "datatype")?)));
        }
        if let Some(value) = graph.one(node, "nodeKind")? {
            let name = graph.iri(node, value, "nodeKind")?;
            let kinds = name.strip_prefix(&sh("")).and_then(NodeKinds::named);
            let kinds =
                kinds.ok_or_else(|| graph.wrong(node, format!("has the unknown `sh:nodeKind` <{name}>")))?;
            found.push(("nodeKind", Constraint::NodeKind(kinds)));
        }
        for value in graph.values(node, &sh("hasValue")) {
            found.push(("hasValue", Constraint::HasValue(graph.term(value).clone())));
        }
        if let Some(list) = graph.one(node, "in")? {
            let items = graph.list(list, "sh:in")?;
            let terms = items.into_iter().map(|item| graph.term(item).clone());
            found.push(("in", Constraint::In(terms.collect())));
        }
        Ok(found)
    }

    /// How many values there are, and between which bounds.
    fn of_numbers(&self, node: u32, has_path: bool) -> Result<Vec<NamedConstraint>, ShapesError> {
        let graph = &self.graph;
        let mut found = Vec::new();
        for (local, constraint) in
            [("minCount", Constraint::MinCount as fn(u64) -> Constraint), ("maxCount", Constraint::MaxCount)]
        {
            let Some(count) = graph.count(node, local)? else { continue };
            if !has_path {
                return Err(graph.wrong(node, format!("has a `sh:{local}` and no `sh:path`")));
            }
            found.push((local, constraint(count)));
        }
        for (local, least, inclusive) in [
            ("minExclusive", true, false),
            ("minInclusive", true, true),
            ("maxExclusive", false, false),
            ("maxInclusive", false, true),
        ] {
            let Some(value) = graph.one(node, local)? else { continue };
            let value = graph.term(value).clone();
            if !matches!(value, Term::Literal(_)) {
                return Err(graph.wrong(node, format!("has a `sh:{local}` that is no literal")));
            }
            found.push((local, Constraint::Bound { least, inclusive, value }));
        }
        Ok(found)
    }

    /// How texts look.
    fn of_texts(&self, node: u32) -> Result<Vec<NamedConstraint>, ShapesError> {
        let graph = &self.graph;
        let mut found = Vec::new();
        let least = graph.count(node, "minLength")?;
        found.extend(least.map(|least| ("minLength", Constraint::MinLength(least))));
        let most = graph.count(node, "maxLength")?;
        found.extend(most.map(|most| ("maxLength", Constraint::MaxLength(most))));
        let flags = graph.text(node, "flags")?.unwrap_or_default();
        for value in graph.values(node, &sh("pattern")) {
            let Term::Literal(text) = graph.term(value) else {
                return Err(graph.wrong(node, "has a `sh:pattern` that is no text".to_owned()));
            };
            let pattern = pattern(text.value(), &flags).map_err(|message| {
                graph.wrong(node, format!("has a `sh:pattern` that cannot be used: {message}"))
            })?;
            found.push(("pattern", Constraint::Pattern(pattern)));
        }
        if let Some(list) = graph.one(node, "languageIn")? {
            let languages =
                graph.list(list, "sh:languageIn")?.into_iter().map(|item| match graph.term(item) {
                    Term::Literal(literal) => Ok(literal.value().to_ascii_lowercase()),
                    _ => Err(graph.wrong(node, "has a `sh:languageIn` with what is no text".to_owned())),
                });
            found.push(("languageIn", Constraint::LanguageIn(languages.collect::<Result<_, _>>()?)));
        }
        if graph.is_true(node, "uniqueLang")? {
            found.push(("uniqueLang", Constraint::UniqueLang));
        }
        Ok(found)
    }

    /// How values stand to those of another property, and which properties there may be.
    fn of_pairs(&self, node: u32, has_path: bool) -> Result<Vec<NamedConstraint>, ShapesError> {
        let graph = &self.graph;
        let mut found = Vec::new();
        let less = |or_equal| move |predicate| Constraint::LessThan { predicate, or_equal };
        let (strict, loose) = (less(false), less(true));
        let pairs: [(&'static str, &dyn Fn(String) -> Constraint); 4] = [
            ("equals", &Constraint::Equals),
            ("disjoint", &Constraint::Disjoint),
            ("lessThan", &strict),
            ("lessThanOrEquals", &loose),
        ];
        for (local, constraint) in pairs {
            for value in graph.values(node, &sh(local)) {
                if local.starts_with("less") && !has_path {
                    return Err(graph.wrong(node, format!("has a `sh:{local}` and no `sh:path`")));
                }
                found.push((local, constraint(graph.iri(node, value, local)?)));
            }
        }
        if graph.is_true(node, "closed")? {
            let mut allowed = BTreeSet::new();
            for property in graph.values(node, &sh("property")) {
                if let Some(path) = graph.one(property, "path")?
                    && let Term::NamedNode(predicate) = graph.term(path)
                {
                    allowed.insert(predicate.as_str().to_owned());
                }
            }
            if let Some(list) = graph.one(node, "ignoredProperties")? {
                for item in graph.list(list, "sh:ignoredProperties")? {
                    allowed.insert(graph.iri(node, item, "ignoredProperties")?);
                }
            }
            found.push(("closed", Constraint::Closed(allowed)));
        }
        Ok(found)
    }

    /// What depends on other shapes.
    fn of_shapes(&mut self, node: u32, depth: usize) -> Result<Vec<NamedConstraint>, ShapesError> {
        let mut found = Vec::new();
        for (local, constraint) in
            [("not", Constraint::Not as fn(usize) -> Constraint), ("node", Constraint::Node)]
        {
            for value in self.graph.values(node, &sh(local)) {
                found.push((local, constraint(self.place(value, depth + 1)?)));
            }
        }
        for (local, constraint) in [
            ("and", Constraint::And as fn(Vec<usize>) -> Constraint),
            ("or", Constraint::Or),
            ("xone", Constraint::Xone),
        ] {
            for list in self.graph.values(node, &sh(local)) {
                let items = self.graph.list(list, &format!("sh:{local}"))?;
                found.push((local, constraint(self.places(items, depth)?)));
            }
        }
        for value in self.graph.values(node, &sh("property")) {
            if self.graph.one(value, "path")?.is_none() {
                return Err(self.graph.wrong(node, "has a `sh:property` without `sh:path`".to_owned()));
            }
            found.push(("property", Constraint::Property(self.place(value, depth + 1)?)));
        }
        if let Some(value) = self.graph.one(node, "qualifiedValueShape")? {
            if self.graph.one(node, "path")?.is_none() {
                return Err(self
                    .graph
                    .wrong(node, "has a `sh:qualifiedValueShape` and no `sh:path`".to_owned()));
            }
            let (least, most) =
                (self.graph.count(node, "qualifiedMinCount")?, self.graph.count(node, "qualifiedMaxCount")?);
            let siblings = if self.graph.is_true(node, "qualifiedValueShapesDisjoint")? {
                self.siblings(node, value)
            } else {
                Vec::new()
            };
            let disjoint = self.places(siblings, depth)?;
            let shape = self.place(value, depth + 1)?;
            found.push(("qualifiedValueShape", Constraint::Qualified { shape, least, most, disjoint }));
        }
        Ok(found)
    }

    /// The qualified shapes of the other properties of the shapes that have this one.
    fn siblings(&self, node: u32, own: u32) -> Vec<u32> {
        let graph = &self.graph;
        let holders = graph
            .subjects(&sh("property"))
            .into_iter()
            .filter(|holder| graph.values(*holder, &sh("property")).contains(&node));
        let properties = holders.flat_map(|holder| graph.values(holder, &sh("property")));
        let shapes = properties.flat_map(|property| graph.values(property, &sh("qualifiedValueShape")));
        shapes.filter(|shape| *shape != own).collect::<BTreeSet<u32>>().into_iter().collect()
    }
}

/// A regular expression of SPARQL that takes linear time.
fn pattern(text: &str, flags: &str) -> Result<Regex, String> {
    let text = if flags.contains('q') { regex::escape(text) } else { text.to_owned() };
    if let Some(unknown) = flags.chars().find(|flag| !"smixq".contains(*flag)) {
        return Err(format!("the flag `{unknown}` is unknown"));
    }
    RegexBuilder::new(&text)
        .case_insensitive(flags.contains('i'))
        .multi_line(flags.contains('m'))
        .dot_matches_new_line(flags.contains('s'))
        .ignore_whitespace(flags.contains('x'))
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| {
            let message = error.to_string();
            message.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })
}
