//! JSON-LD as rdflib reads it.
//!
//! rdflib goes through the JSON once and makes triples as it meets them; it neither expands the document first nor checks it.
//! Much that the standard forbids has a meaning therefore, or is passed over. Names that cannot be written are refused at the
//! end, as rdflib refuses to write them.

mod context;
mod iris;
mod json;

use std::rc::Rc;

use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term as RdfTerm, Triple};
use serde_json::Value;
use serde_json::json as made;

use crate::literal::{python_float, rdflib_lexical};
use crate::prefixes::{PrefixTable, sorted_prefixes};
use crate::syntax_error::SyntaxError;
use crate::turtle_as_rdflib::{FOREIGN, is_language};
use context::{Context, JsonObject, Meaning, RDF_TYPE, Term, is_true, refused};

const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The triples of a document and the prefixes of its context. Literals have the form in which rdflib keeps them.
pub(crate) fn parse(document: &Value, base: &str) -> Result<(Vec<Triple>, PrefixTable), SyntaxError> {
    let mut context = Context::new(base);
    let mut has_context = false;
    if let Some(source) = document.get("@context").filter(|source| is_true(source)) {
        context.load(source)?;
        has_context = true;
    }
    let is_prefix = |(_, term): &(&String, &Rc<Term>)| {
        term.meaning.name().is_some_and(|name| name.ends_with(['#', '/', ':']))
    };
    let prefixes: Vec<_> = context.terms.iter().filter(is_prefix).collect();
    if prefixes.iter().any(|(name, _)| name.contains(' ')) {
        return Err(refused("a prefix contains a blank"));
    }
    let named = |(name, term): (&'_ String, &'_ Rc<Term>)| {
        (name.clone(), term.meaning.name().unwrap_or_default().to_owned())
    };
    let prefixes: Vec<_> = prefixes.into_iter().map(named).collect();
    let prefixes =
        sorted_prefixes(prefixes.iter().map(|(name, namespace)| (name.as_str(), namespace.as_str())));
    let mut reader = Reader { triples: Vec::new(), made: 0 };
    let context = Rc::new(context);
    for node in one_or_all(document) {
        reader.node(Graph::Default, &context, node, has_context)?;
    }
    Ok((reader.triples, prefixes))
}

/// Where triples go. Those of a graph with a name are no part of the document's own graph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Graph {
    Default,
    Named,
}

/// A value of a property.
enum Item<'a> {
    Given(&'a Value),
    Made(Value),
    /// A text with its language.
    Tagged(&'a Value, &'a str),
}

impl Item<'_> {
    fn value(&self) -> &Value {
        match self {
            Self::Given(value) | Self::Tagged(value, _) => value,
            Self::Made(value) => value,
        }
    }
}

struct Reader {
    triples: Vec<Triple>,
    /// Number of blank nodes without a label.
    made: usize,
}

impl Reader {
    fn fresh(&mut self) -> RdfTerm {
        self.made += 1;
        BlankNode::new_unchecked(format!("made.{}", self.made)).into()
    }

    fn add(
        &mut self,
        graph: Graph,
        subject: &RdfTerm,
        predicate: &str,
        object: RdfTerm,
    ) -> Result<(), SyntaxError> {
        if graph == Graph::Named {
            return Ok(());
        }
        let is_foreign =
            |term: &RdfTerm| matches!(term, RdfTerm::NamedNode(name) if name.as_str().contains(FOREIGN));
        if is_foreign(subject) || is_foreign(&object) || predicate.contains(FOREIGN) {
            return Err(refused("a name has characters that no IRI has"));
        }
        let subject: NamedOrBlankNode = match subject {
            RdfTerm::NamedNode(name) => name.clone().into(),
            RdfTerm::BlankNode(node) => node.clone().into(),
            // A literal as a subject stands as a name that no document has.
            RdfTerm::Literal(literal) => NamedNode::new_unchecked(literal.to_string()).into(),
        };
        self.triples.push(Triple::new(subject, NamedNode::new_unchecked(predicate), object));
        Ok(())
    }

    /// Reads a node; `None` if it is none, or has a name that is passed over.
    fn node(
        &mut self,
        graph: Graph,
        context: &Rc<Context>,
        node: &Value,
        is_context_read: bool,
    ) -> Result<Option<RdfTerm>, SyntaxError> {
        let Value::Object(node) = node else { return Ok(None) };
        if context.get(node, "@value").is_some_and(is_true) {
            return Ok(None);
        }
        let context = match node.get("@context").filter(|_| !is_context_read) {
            Some(source) if is_true(source) => context.within_node(source, true)?,
            Some(_) => Rc::new(context.emptied()),
            None => Rc::clone(context),
        };
        let context = context.of_type(node)?;
        let mut name = context.get(node, "@id").filter(|name| !name.is_null()).cloned();
        if name.is_none() {
            name = nested_name(&context, node)?.filter(|name| !name.is_empty()).map(Value::from);
        }
        let subject = match &name {
            Some(Value::String(name)) => match named(&context, name) {
                Some(subject) => subject,
                None => return Ok(None),
            },
            _ => self.fresh(),
        };
        let within = if name.is_some() { Graph::Named } else { graph };
        for (key, value) in node {
            if key == "@context" || context.is(key, "@id") {
                continue;
            }
            if context.is(key, "@reverse") {
                let Value::Object(reversed) = value else {
                    return Err(refused("`@reverse` holds an object"));
                };
                for (key, value) in reversed {
                    self.property([graph, within], &context, &subject, (key, value), true)?;
                }
            } else {
                self.property([graph, within], &context, &subject, (key, value), false)?;
            }
        }
        Ok(Some(subject))
    }

    /// Reads a key of a node with its value. The graphs are that of the node, and that which it names.
    fn property(
        &mut self,
        graphs: [Graph; 2],
        context: &Rc<Context>,
        subject: &RdfTerm,
        (key, value): (&str, &Value),
        reverse: bool,
    ) -> Result<(), SyntaxError> {
        let [graph, within] = graphs;
        let term = context.terms.get(key).map(Rc::clone);
        let mut items: Vec<Item<'_>> = one_or_all(value).iter().map(Item::Given).collect();
        if let Some(term) = &term {
            if term.datatype.as_deref() == Some("@json") {
                items = vec![Item::Made(json_literal(value))];
            } else if term.is("@list") {
                items = vec![Item::Made(nested_list(value))];
            } else if let Value::Object(object) = value {
                items = contained(context, term, value, object);
            }
        }
        let keyword = term.as_ref().and_then(|term| term.meaning.name()).unwrap_or_default();
        let is = |word: &str| key == word || keyword == word;
        if is("@graph") || is("@set") || is("@included") {
            let graph = if is("@graph") { within } else { graph };
            for item in &items {
                self.node(graph, context, item.value(), false)?;
            }
            return Ok(());
        }
        let is_type = is("@type");
        let term = term.as_deref().filter(|_| !is_type);
        if context.version >= 1.1 && context.is(key, "@nest") {
            return self.nested(graph, context, subject, value, term);
        }
        let meaning = match term {
            _ if is_type => Meaning::Name(RDF_TYPE.to_owned()),
            Some(term) => term.meaning.clone(),
            None => context.expanded(key, true),
        };
        let context = context.of_term(term)?;
        let Some(predicate) = meaning.name() else { return Ok(()) };
        if predicate.len() > 2 && predicate.starts_with("_:") {
            return Ok(());
        }
        let of_values = ValuesOf {
            datatype: if is_type { Some("@vocab") } else { term.and_then(|term| term.datatype.as_deref()) },
            language: term.and_then(|term| term.language.as_ref()),
        };
        let reverse = reverse != term.is_some_and(|term| term.reverse);
        for item in &items {
            self.values((graph, &context), of_values, item, &mut |reader, object| {
                if reverse {
                    reader.add(graph, &object, predicate, subject.clone())
                } else {
                    reader.add(graph, subject, predicate, object)
                }
            })?;
        }
        Ok(())
    }

    fn nested(
        &mut self,
        graph: Graph,
        context: &Rc<Context>,
        subject: &RdfTerm,
        value: &Value,
        term: Option<&Term>,
    ) -> Result<(), SyntaxError> {
        if term.is_some_and(|term| term.meaning == Meaning::Nothing) {
            return Ok(());
        }
        for part in one_or_all(value).iter().filter_map(Value::as_object) {
            let inner = context.of_type(part)?;
            for (key, value) in part.iter().filter(|(key, _)| !context.is(key, "@id")) {
                self.property([graph, Graph::Named], &inner, subject, (key, value), false)?;
            }
        }
        Ok(())
    }

    /// Calls `found` with the values of an item, without the sets and lists in which they lie.
    fn values(
        &mut self,
        (graph, context): (Graph, &Rc<Context>),
        of_values: ValuesOf<'_>,
        item: &Item<'_>,
        found: &mut dyn FnMut(&mut Self, RdfTerm) -> Result<(), SyntaxError>,
    ) -> Result<(), SyntaxError> {
        let object = match item {
            Item::Tagged(value, language) => {
                if value.is_null() || language.contains(' ') {
                    return Ok(());
                }
                Some(literal(value, Some(language), None)?)
            }
            item => {
                let value = item.value();
                let set = value.as_object().and_then(|object| context.get(object, "@set"));
                match set.filter(|set| !set.is_null()).unwrap_or(value) {
                    Value::Array(list) => {
                        for one in list {
                            self.values((graph, context), of_values, &Item::Given(one), found)?;
                        }
                        return Ok(());
                    }
                    value => self.object(graph, context, of_values, value)?,
                }
            }
        };
        object.map_or(Ok(()), |object| found(self, object))
    }

    fn object(
        &mut self,
        graph: Graph,
        context: &Rc<Context>,
        of_values: ValuesOf<'_>,
        value: &Value,
    ) -> Result<Option<RdfTerm>, SyntaxError> {
        let coerced;
        let whole = match (value, of_values.datatype) {
            (Value::Object(object), _) => {
                if let Some(list) = context.get(object, "@list").filter(|list| !list.is_null()) {
                    return self.list(graph, context, of_values, list).map(Some);
                }
                value
            }
            (value, None) => {
                let language = of_values.language.unwrap_or(&context.language);
                return match value {
                    Value::Null => Ok(None),
                    // Of these rdflib does not look at the language.
                    Value::Number(number) if number.is_f64() => literal(value, None, None).map(Some),
                    value => literal(value, tag(language)?, None).map(Some),
                };
            }
            (value, Some(datatype)) => {
                let Some(object) = with_datatype(context, value, datatype) else { return Ok(None) };
                coerced = object;
                &coerced
            }
        };
        let Value::Object(node) = whole else { return Ok(None) };
        let language = match context.get(node, "@language") {
            Some(language) if is_true(language) => tag(language)?,
            _ => None,
        };
        let datatype = context.get(node, "@type").filter(|datatype| language.is_none() && is_true(datatype));
        let value = context.get(node, "@value");
        if datatype.and_then(Value::as_str).is_some_and(|datatype| context.is(datatype, "@json")) {
            let text = json::written(value.unwrap_or(&Value::Null));
            return Ok(Some(typed(text, &format!("{RDF}JSON"))));
        }
        if language.is_none() && !context.has_value(node) {
            return self.node(graph, context, whole, false);
        }
        let Some(value) = value.filter(|value| !value.is_null()) else { return Ok(None) };
        let datatype = match datatype {
            None => None,
            Some(Value::String(name)) => match context.expanded(name, true) {
                Meaning::Name(full) => Some(full),
                Meaning::Nothing => None,
                Meaning::Unsaid => return Err(refused("a type stands for nothing")),
            },
            Some(Value::Array(_) | Value::Object(_)) => datatype.map(json::in_python),
            Some(_) => return Err(refused("a type is a text")),
        };
        match language {
            Some(language) if language.contains(' ') => Ok(None),
            language => literal(value, language, datatype.as_deref()).map(Some),
        }
    }

    fn list(
        &mut self,
        graph: Graph,
        context: &Rc<Context>,
        of_values: ValuesOf<'_>,
        list: &Value,
    ) -> Result<RdfTerm, SyntaxError> {
        let first = self.fresh();
        let mut last = first.clone();
        let mut rest: Option<RdfTerm> = None;
        for value in one_or_all(list).iter().filter(|value| !value.is_null()) {
            // A value that is passed over leaves its place in the list behind.
            if let Some(next) = &rest {
                self.add(graph, &last, &format!("{RDF}rest"), next.clone())?;
                last = next.clone();
            }
            if let Some(object) = self.object(graph, context, of_values, value)? {
                self.add(graph, &last, &format!("{RDF}first"), object)?;
                rest = Some(self.fresh());
            }
        }
        let nil: RdfTerm = NamedNode::new_unchecked(format!("{RDF}nil")).into();
        if rest.is_none() {
            return Ok(nil);
        }
        self.add(graph, &last, &format!("{RDF}rest"), nil)?;
        Ok(first)
    }
}

/// The values of a list, or the one value.
fn one_or_all(value: &Value) -> &[Value] {
    value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice)
}

/// What a term says of its values.
#[derive(Clone, Copy)]
struct ValuesOf<'a> {
    datatype: Option<&'a str>,
    language: Option<&'a Value>,
}

/// The name that a node has within what is nested in it.
fn nested_name<'a>(context: &Rc<Context>, node: &'a JsonObject) -> Result<Option<&'a str>, SyntaxError> {
    if context.version < 1.1 {
        return Ok(None);
    }
    for (key, value) in node.iter().filter(|(key, _)| context.is(key, "@nest")) {
        let term = context.terms.get(key);
        if term.is_some_and(|term| term.meaning == Meaning::Nothing) {
            continue;
        }
        for part in one_or_all(value).iter().filter_map(Value::as_object) {
            let name = match context.get(part, "@id").filter(|name| is_true(name)) {
                Some(name) => name.as_str(),
                None => nested_name(&context.of_term(term.map(Rc::as_ref))?, part)?,
            };
            if name.is_some() {
                return Ok(name);
            }
        }
    }
    Ok(None)
}

/// The node of a name; `None` where rdflib passes over it.
fn named(context: &Context, name: &str) -> Option<RdfTerm> {
    if let Some(label) = name.strip_prefix("_:").filter(|label| !label.is_empty()) {
        return Some(BlankNode::new_unchecked(format!("named.{label}")).into());
    }
    let full = context.resolved(name);
    full.contains(':').then(|| NamedNode::new_unchecked(full).into())
}

/// The values under a term whose container has keys of its own.
fn contained<'a>(context: &Context, term: &Term, value: &'a Value, object: &'a JsonObject) -> Vec<Item<'a>> {
    let is_none = |key: &str| context.is(key, "@none");
    let is_new = context.version >= 1.1;
    let (by_graph, by_id, by_type) = (term.is("@graph"), term.is("@id"), term.is("@type"));
    let entry = |(key, value): (&'a String, &'a Value)| match value {
        value if by_graph && (!by_id || is_none(key)) => Item::Made(made!({ "@graph": value })),
        Value::Object(_) if by_graph => Item::Made(made!({ "@id": key, "@graph": value })),
        value if by_graph || is_none(key) => Item::Given(value),
        Value::Object(node) if by_id => {
            let mut named = JsonObject::from_iter([("@id".to_owned(), key.as_str().into())]);
            named.extend(node.clone());
            Item::Made(Value::Object(named))
        }
        Value::Object(_) | Value::String(_) if by_type && !by_id => {
            Item::Made(with_type(context, term, value, key))
        }
        value => Item::Given(value),
    };
    match () {
        () if term.is("@language") => {
            let entry = |(language, values): (&'a String, &'a Value)| {
                let is_plain = is_none(language);
                one_or_all(values).iter().map(move |value| match is_plain {
                    true => Item::Given(value),
                    false => Item::Tagged(value, language),
                })
            };
            object.iter().flat_map(entry).collect()
        }
        () if is_new && by_graph && !by_id && !term.is("@index") => {
            vec![Item::Made(made!({ "@graph": value }))]
        }
        () if is_new && (by_graph || by_id || by_type) => object.iter().map(entry).collect(),
        () if term.is("@index") => {
            let entry = |(key, values): (&'a String, &'a Value)| {
                let index = term.index.as_deref().filter(|_| is_new && !is_none(key));
                one_or_all(values).iter().map(move |value| match index {
                    Some(index) => Item::Made(with_index(value, index, key)),
                    None => Item::Given(value),
                })
            };
            object.iter().flat_map(entry).collect()
        }
        () => vec![Item::Given(value)],
    }
}

/// A node with one more type.
fn with_type(context: &Context, term: &Term, node: &Value, key: &str) -> Value {
    let mut node = match node {
        Value::Object(node) => node.clone(),
        Value::String(name) if term.datatype.as_deref() == Some("@vocab") => {
            let full = context.expanded(name, true);
            JsonObject::from_iter([("@id".to_owned(), full.name().map_or(Value::Null, Value::from))])
        }
        name => JsonObject::from_iter([("@id".to_owned(), name.clone())]),
    };
    let types = context.get(&node, "@type").filter(|types| is_true(types)).cloned();
    node.insert("@type".to_owned(), with_one_more(types, key));
    Value::Object(node)
}

/// The values of a key and another one.
fn with_one_more(values: Option<Value>, one_more: &str) -> Value {
    let values = values.iter().flat_map(one_or_all).cloned();
    values.chain([one_more.into()]).collect()
}

/// A node with the key under which it is listed as a value of a property.
fn with_index(node: &Value, property: &str, key: &str) -> Value {
    let mut node = match node {
        Value::Object(node) => node.clone(),
        name => JsonObject::from_iter([("@id".to_owned(), name.clone())]),
    };
    let values = node.remove(property);
    node.insert(property.to_owned(), with_one_more(values, key));
    Value::Object(node)
}

/// A list, and the lists within it.
fn nested_list(value: &Value) -> Value {
    let list: Vec<Value> = one_or_all(value)
        .iter()
        .map(|one| if one.is_array() { nested_list(one) } else { one.clone() })
        .collect();
    made!({ "@list": list })
}

/// A value that is no object, with the type that its term says; `None` for nothing.
fn with_datatype(context: &Context, value: &Value, datatype: &str) -> Option<Value> {
    Some(match (datatype, value) {
        ("@json", value) => json_literal(value),
        (_, Value::Null) => return None,
        ("@id", Value::String(name)) => made!({ "@id": context.resolved(name) }),
        ("@vocab", Value::String(name)) => match context.expanded(name, true).name() {
            Some(full) => made!({ "@id": full }),
            None => made!({ "@id": context.resolved_iri(name) }),
        },
        (datatype, value) => made!({ "@type": datatype, "@value": value }),
    })
}

fn json_literal(value: &Value) -> Value {
    made!({ "@type": format!("{RDF}JSON"), "@value": json::written(value) })
}

/// A language tag, which must be a text where it is used.
fn tag(language: &Value) -> Result<Option<&str>, SyntaxError> {
    match language {
        Value::Null => Ok(None),
        Value::String(tag) => Ok(Some(tag)),
        _ => Err(refused("a language is a text")),
    }
}

fn typed(text: String, datatype: &str) -> RdfTerm {
    match datatype {
        "" => Literal::new_simple_literal(text),
        datatype => Literal::new_typed_literal(text, NamedNode::new_unchecked(datatype)),
    }
    .into()
}

/// A literal as Python's values become one: what is no text has the type of its value, and no language.
fn literal(value: &Value, language: Option<&str>, datatype: Option<&str>) -> Result<RdfTerm, SyntaxError> {
    let language = language.filter(|tag| !tag.is_empty());
    if let Some(tag) = language.filter(|tag| !is_language(tag)) {
        return Err(SyntaxError::new(format!("`{tag}` is no language tag")));
    }
    let (text, own) = match value {
        Value::String(text) => match datatype {
            // Only texts are read as values of their type, and written again.
            Some(datatype) => return Ok(typed(rdflib_lexical(text, datatype).into_owned(), datatype)),
            None => (text.clone(), None),
        },
        Value::Bool(value) => (value.to_string(), Some("boolean")),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(double) => (python_float(double), Some("double")),
            None => (number.to_string(), Some("integer")),
        },
        other => (json::in_python(other), None),
    };
    Ok(match (datatype, own, language) {
        (Some(datatype), ..) => typed(text, datatype),
        (None, Some(own), _) => typed(text, &format!("{XSD}{own}")),
        (None, None, Some(tag)) => {
            // rdflib keeps the case of tags.
            Literal::new_language_tagged_literal_unchecked(text, tag).into()
        }
        (None, None, None) => Literal::new_simple_literal(text).into(),
    })
}
