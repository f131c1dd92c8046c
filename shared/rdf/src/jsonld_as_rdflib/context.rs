//! What the contexts of a document say, as rdflib keeps it.
//!
//! Where Python would raise (a number where a text must be, a definition that never ends), the document is refused.

use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Map, Value};

use super::iris;
use crate::syntax_error::SyntaxError;

pub(super) type JsonObject = Map<String, Value>;

pub(super) const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// The keywords that may have other names.
const NODE_KEYS: [&str; 12] = [
    "@graph",
    "@id",
    "@included",
    "@json",
    "@language",
    "@list",
    "@nest",
    "@none",
    "@reverse",
    "@set",
    "@type",
    "@value",
];
/// Characters at the end of a text that make it the beginning of names.
const ENDS_OF_PREFIXES: [char; 7] = [':', '/', '?', '#', '[', ']', '@'];
/// Steps after which the meaning of a name is taken to have no end, as Python gives up then.
const STEPS_MAX: usize = 300;

/// What a term stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Its definition does not say.
    Unsaid,
    /// Nothing: what stands under it is left out.
    Nothing,
    Name(String),
}

impl Meaning {
    /// The name, unless it is empty.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) if !name.is_empty() => Some(name),
            _ => None,
        }
    }

    /// The name as the beginning of another. Python cannot join the two where a definition says nothing.
    fn beginning(self) -> Result<Option<String>, SyntaxError> {
        match self {
            Self::Unsaid => Err(refused("a term that stands for nothing is the beginning of a name")),
            Self::Nothing => Ok(None),
            Self::Name(name) => Ok(Some(name)),
        }
    }
}

#[derive(Debug)]
pub(super) struct Term {
    pub(super) meaning: Meaning,
    /// The type of its values, never empty.
    pub(super) datatype: Option<String>,
    pub(super) containers: Vec<String>,
    /// The property that takes the key of each value.
    pub(super) index: Option<String>,
    /// The language of its values; `None` where the definition does not say.
    pub(super) language: Option<Value>,
    pub(super) reverse: bool,
    /// The context of what stands under it.
    pub(super) context: Option<Value>,
    begins_names: bool,
    protected: bool,
}

impl Term {
    pub(super) fn is(&self, container: &str) -> bool {
        self.containers.iter().any(|one| one == container)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) version: f64,
    pub(super) language: Value,
    pub(super) vocabulary: Option<String>,
    base: Option<String>,
    document_base: String,
    pub(super) terms: HashMap<String, Rc<Term>>,
    /// The other names of keywords, in the order of their definitions.
    aliases: HashMap<String, Vec<String>>,
    parent: Option<Rc<Context>>,
    propagates: bool,
}

pub(super) fn refused(why: &str) -> SyntaxError {
    SyntaxError::new(why)
}

/// Whether Python takes a value for true.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(object) => !object.is_empty(),
    }
}

impl Context {
    pub(super) fn new(base: &str) -> Self {
        Self {
            version: 1.1,
            language: Value::Null,
            vocabulary: None,
            base: Some(without_fragment(base).to_owned()),
            document_base: base.to_owned(),
            terms: HashMap::new(),
            aliases: HashMap::new(),
            parent: None,
            propagates: true,
        }
    }

    /// A context without what the document says.
    pub(super) fn emptied(&self) -> Self {
        Self::new(&self.document_base)
    }

    /// This context, and then another.
    pub(super) fn with(self: &Rc<Self>, source: &Value, propagates: bool) -> Result<Rc<Self>, SyntaxError> {
        let mut inner = Self { parent: Some(Rc::clone(self)), propagates, ..(**self).clone() };
        inner.load(source)?;
        Ok(Rc::new(inner))
    }

    /// [`Self::with`] what a node says itself.
    pub(super) fn within_node(
        self: &Rc<Self>,
        source: &Value,
        propagates: bool,
    ) -> Result<Rc<Self>, SyntaxError> {
        self.lasting()?.with(source, propagates)
    }

    /// The context without what holds for one node only.
    fn lasting(self: &Rc<Self>) -> Result<Rc<Self>, SyntaxError> {
        if self.propagates {
            return Ok(Rc::clone(self));
        }
        self.parent.clone().ok_or_else(|| refused("the first context does not propagate"))
    }

    pub(super) fn of_term(self: &Rc<Self>, term: Option<&Term>) -> Result<Rc<Self>, SyntaxError> {
        match term.and_then(|term| term.context.as_ref()) {
            Some(source) => self.with(source, true),
            None => Ok(Rc::clone(self)),
        }
    }

    /// The context of a node by its types.
    pub(super) fn of_type(self: &Rc<Self>, node: &JsonObject) -> Result<Rc<Self>, SyntaxError> {
        if self.version >= 1.1 {
            let types = match self.get(node, "@type") {
                Some(Value::Array(types)) => types.as_slice(),
                Some(one) => std::slice::from_ref(one),
                None => &[],
            };
            let term = types.iter().filter_map(Value::as_str).find_map(|name| self.terms.get(name));
            if let Some(source) = term.and_then(|term| term.context.as_ref()).filter(|source| is_true(source))
            {
                return self.within_node(source, false);
            }
        }
        self.lasting()
    }

    /// The value of a keyword, under the first of its names that the object has.
    pub(super) fn get<'a>(&self, object: &'a JsonObject, keyword: &str) -> Option<&'a Value> {
        let aliases = self.aliases.get(keyword).into_iter().flatten();
        aliases.map(String::as_str).chain([keyword]).find_map(|name| object.get(name))
    }

    /// Whether a key is a keyword or another name of it.
    pub(super) fn is(&self, key: &str, keyword: &str) -> bool {
        key == keyword || self.aliases.get(keyword).is_some_and(|names| names.iter().any(|name| name == key))
    }

    /// Whether an object has a value: under the first name of that keyword, or the keyword itself.
    pub(super) fn has_value(&self, object: &JsonObject) -> bool {
        let first = self.aliases.get("@value").and_then(|names| names.first());
        first.is_some_and(|name| object.contains_key(name)) || object.contains_key("@value")
    }

    /// An IRI or a shortened one, in full; empty if it has a blank.
    pub(super) fn resolved(&self, name: &str) -> String {
        let full = match self.expanded(name, false) {
            Meaning::Name(full) => full,
            _ => String::new(),
        };
        match () {
            () if full.starts_with("_:") => full,
            () if full.contains(' ') => String::new(),
            () => self.resolved_iri(&full),
        }
    }

    pub(super) fn resolved_iri(&self, iri: &str) -> String {
        iris::resolved(self.base.as_deref(), iri)
    }

    /// What a name stands for: a term if it is `in_vocabulary`, a shortened IRI, or an IRI.
    pub(super) fn expanded(&self, name: &str, in_vocabulary: bool) -> Meaning {
        if !self.accepts(name) {
            return Meaning::Name(String::new());
        }
        if in_vocabulary && let Some(term) = self.terms.get(name) {
            return term.meaning.clone();
        }
        match parted(name) {
            Some(("_", _)) => return Meaning::Name(name.to_owned()),
            Some((prefix, local)) => {
                if let Some(term) = self.terms.get(prefix).filter(|term| term.begins_names)
                    && let Some(namespace) = term.meaning.name()
                {
                    return Meaning::Name(format!("{namespace}{local}"));
                }
            }
            None if in_vocabulary && !name.contains(':') => {
                return match &self.vocabulary {
                    Some(vocabulary) => Meaning::Name(format!("{vocabulary}{name}")),
                    None => Meaning::Nothing,
                };
            }
            None => {}
        }
        Meaning::Name(self.resolved_iri(name))
    }

    /// Since version 1.1, what looks like a keyword must be one.
    fn accepts(&self, name: &str) -> bool {
        let looks_like_keyword =
            name.strip_prefix('@').is_some_and(|word| word.starts_with(char::is_alphanumeric));
        self.version < 1.1 || !looks_like_keyword || NODE_KEYS.contains(&name)
    }

    pub(super) fn load(&mut self, source: &Value) -> Result<(), SyntaxError> {
        match source {
            Value::Array(list) => list.iter().try_for_each(|one| self.load(one)),
            Value::Object(object) => match object.get("@context") {
                Some(inner) => self.load(inner),
                None => self.read(object),
            },
            Value::Null => {
                self.language = Value::Null;
                self.vocabulary = None;
                self.terms.clear();
                self.aliases.clear();
                self.propagates = true;
                Ok(())
            }
            Value::String(_) => Err(refused("contexts of other documents are not fetched")),
            _ => Err(refused("a context is an object")),
        }
    }

    fn read(&mut self, source: &JsonObject) -> Result<(), SyntaxError> {
        if source.get("@import").is_some_and(is_true) {
            return Err(refused("contexts of other documents are not fetched"));
        }
        match source.get("@vocab") {
            None => {}
            Some(Value::String(vocabulary)) => {
                self.vocabulary = Some(vocabulary.clone()).filter(|text| !text.is_empty());
            }
            Some(other) if is_true(other) => return Err(refused("`@vocab` is a text")),
            Some(_) => self.vocabulary = None,
        }
        if let Some(version) = source.get("@version") {
            self.version = match version {
                Value::Bool(is_one) => f64::from(u8::from(*is_one)),
                version => version.as_f64().ok_or_else(|| refused("`@version` is a number"))?,
            };
        }
        let protected = source.get("@protected").is_some_and(is_true);
        for (key, value) in source {
            match (key.as_str(), value) {
                ("@vocab" | "@version" | "@import" | "@protected", _) => {}
                ("@propagate", Value::Bool(propagates)) => self.propagates = *propagates,
                ("@language", language) => self.language = language.clone(),
                ("@base", Value::Null) => self.base = None,
                ("@base", Value::String(base)) => {
                    self.base = Some(self.resolved_iri(without_fragment(base)));
                }
                ("@base", _) => return Err(refused("`@base` is a text")),
                (name, definition) => self.define(source, name, definition, protected)?,
            }
        }
        Ok(())
    }

    fn define(
        &mut self,
        source: &JsonObject,
        name: &str,
        definition: &Value,
        protected: bool,
    ) -> Result<(), SyntaxError> {
        let plain = |meaning| Term {
            meaning,
            datatype: None,
            containers: Vec::new(),
            index: None,
            language: None,
            reverse: false,
            context: None,
            begins_names: false,
            protected,
        };
        let term = match definition {
            Value::Object(definition) => self.defined(source, name, definition, plain(Meaning::Unsaid))?,
            Value::String(text) if !self.accepts(text) => return Ok(()),
            Value::String(text) => plain(self.full(source, text)?),
            _ => plain(Meaning::Nothing),
        };
        let meaning = term.meaning.clone();
        self.add(name, term, definition.get("@prefix").filter(|is_prefix| !is_prefix.is_null()));
        match meaning {
            Meaning::Name(keyword) if NODE_KEYS.contains(&keyword.as_str()) => {
                self.aliases.entry(keyword).or_default().push(name.to_owned());
            }
            // A name of a keyword can get another meaning.
            _ => self.aliases.values_mut().for_each(|names| names.retain(|one| one != name)),
        }
        Ok(())
    }

    fn defined(
        &self,
        source: &JsonObject,
        name: &str,
        definition: &JsonObject,
        mut term: Term,
    ) -> Result<Term, SyntaxError> {
        let reverse = definition.get("@reverse").filter(|reverse| is_true(reverse));
        if let Some(protected) = definition.get("@protected") {
            term.protected = is_true(protected);
        }
        let mut datatype = match definition.get("@type").filter(|datatype| is_true(datatype)) {
            Some(Value::String(keyword)) if matches!(keyword.as_str(), "@id" | "@type" | "@vocab") => {
                Some(keyword.clone())
            }
            Some(Value::String(text)) => self.full(source, text)?.name().map(str::to_owned),
            Some(_) => return Err(refused("a type is a text")),
            None => None,
        };
        term.meaning = match reverse.or_else(|| definition.get("@id")) {
            Some(Value::String(keyword)) if keyword == "@type" => {
                datatype = Some("@vocab".to_owned());
                Meaning::Name(RDF_TYPE.to_owned())
            }
            Some(Value::String(text)) => self.full(source, text)?,
            Some(Value::Null) => Meaning::Nothing,
            Some(_) => return Err(refused("`@id` is a text")),
            None if name.contains(':') => self.full(source, name)?,
            None => match &self.vocabulary {
                Some(vocabulary) => Meaning::Name(format!("{vocabulary}{name}")),
                None => Meaning::Unsaid,
            },
        };
        term.containers = match definition.get("@container") {
            Some(Value::String(one)) => vec![one.clone()],
            Some(Value::Array(list)) if list.iter().any(|one| one.is_array() || one.is_object()) => {
                return Err(refused("a container is a text"));
            }
            Some(Value::Array(list)) => {
                list.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect()
            }
            Some(Value::Object(_)) => return Err(refused("a container is a text")),
            _ => Vec::new(),
        };
        term.language = definition.get("@language").cloned();
        if datatype.is_none() && term.language.as_ref().is_some_and(|tag| tag.is_array() || tag.is_object()) {
            return Err(refused("a language is a text"));
        }
        term.index =
            definition.get("@index").and_then(Value::as_str).filter(|key| !key.is_empty()).map(str::to_owned);
        term.reverse = reverse.is_some();
        term.context = definition.get("@context").cloned();
        term.datatype = datatype;
        Ok(term)
    }

    fn add(&mut self, name: &str, mut term: Term, is_prefix: Option<&Value>) {
        term.begins_names = match is_prefix {
            Some(is_prefix) if self.version >= 1.1 => is_true(is_prefix),
            _ => term.meaning.name().is_some_and(|name| name.ends_with(ENDS_OF_PREFIXES)),
        };
        let is_protected = self.version >= 1.1 && self.terms.get(name).is_some_and(|term| term.protected);
        if self.accepts(name) && !is_protected {
            self.terms.insert(name.to_owned(), Rc::new(term));
        }
    }

    /// A name in a context in full, by the definitions of the context itself first.
    fn full(&self, source: &JsonObject, name: &str) -> Result<Meaning, SyntaxError> {
        let mut name = name.to_owned();
        for _ in 0..STEPS_MAX {
            if NODE_KEYS.contains(&name.as_str()) {
                return Ok(Meaning::Name(name));
            }
            let next = match parted(&name) {
                Some((prefix, local)) if !prefix.is_empty() => {
                    let known = match self.said(source, prefix)?.beginning()? {
                        None if self.vocabulary.as_deref() == Some(&name[..=prefix.len()]) => {
                            return Ok(Meaning::Name(name));
                        }
                        None => match self.terms.get(prefix) {
                            Some(term) => term.meaning.clone().beginning()?,
                            None => None,
                        },
                        known => known,
                    };
                    known.map_or_else(|| name.clone(), |namespace| format!("{namespace}{local}"))
                }
                other => {
                    let key = other.map_or(name.as_str(), |(_, local)| local);
                    let next = match self.said(source, key)? {
                        Meaning::Name(text) if !text.is_empty() => text,
                        _ => key.to_owned(),
                    };
                    match &self.vocabulary {
                        Some(vocabulary) if !next.contains(':') => {
                            return Ok(Meaning::Name(format!("{vocabulary}{next}")));
                        }
                        _ => next,
                    }
                }
            };
            if next == name {
                return Ok(Meaning::Name(name));
            }
            name = next;
        }
        Err(refused("the meaning of a term has no end"))
    }

    /// What a context says that a key stands for, or what is known of it.
    fn said(&self, source: &JsonObject, key: &str) -> Result<Meaning, SyntaxError> {
        let said = match source.get(key) {
            None | Some(Value::Null) => {
                return Ok(self.terms.get(key).map_or(Meaning::Nothing, |term| term.meaning.clone()));
            }
            Some(Value::Object(definition)) => definition.get("@id"),
            said => said,
        };
        match said {
            None | Some(Value::Null) => Ok(Meaning::Nothing),
            Some(Value::String(text)) => Ok(Meaning::Name(text.clone())),
            Some(_) => Err(refused("a term stands for a text")),
        }
    }
}

fn without_fragment(base: &str) -> &str {
    base.split_once('#').map_or(base, |(before, _)| before)
}

/// The prefix of a name and what follows it. An IRI with an authority has no prefix.
fn parted(name: &str) -> Option<(&str, &str)> {
    name.split_once(':').filter(|(_, local)| !local.starts_with("//"))
}
