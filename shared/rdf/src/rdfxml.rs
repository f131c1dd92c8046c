//! RDF/XML, with limits on entity declarations.

use crate::prefixes::{PrefixTable, sorted_prefixes};
use crate::syntax_error::{SyntaxError, bad_base};
use oxrdf::Triple;
use oxrdfxml::{RdfXmlParser, RdfXmlSerializer};
use std::io;

/// Maximum size to which the entity references of a document may expand, in bytes.
pub const ENTITY_EXPANSION_BYTES_MAX: usize = 64 << 20;

/// The triples of an RDF/XML document in its order, and the prefixes that it declares.
pub(crate) fn parse(text: &str, base: &str) -> Result<(Vec<Triple>, PrefixTable), SyntaxError> {
    refuse_entity_bombs(text)?;
    let mut parser = RdfXmlParser::new()
        .with_base_iri(base)
        .map_err(|error| bad_base(base, error))?
        .for_slice(text.as_bytes());
    let mut triples = Vec::new();
    for triple in parser.by_ref() {
        triples.push(triple.map_err(|error| SyntaxError::new(error.to_string()))?);
    }
    let prefixes = sorted_prefixes(parser.prefixes());
    Ok((triples, prefixes))
}

/// Refuses documents whose entities expand too far. Ontology editors declare namespaces as entities, so they cannot be
/// refused altogether. An entity whose value refers to no other entity expands in proportion to its references, which are
/// counted here.
pub(crate) fn refuse_entity_bombs(text: &str) -> Result<(), SyntaxError> {
    const KEYWORD: &[u8] = b"<!ENTITY";
    let bytes = text.as_bytes();
    let mut longest = 0;
    let mut from = 0;
    while let Some(found) = bytes[from..].iter().position(|byte| *byte == b'<') {
        let at = from + found;
        from = at + 1;
        if !bytes[at..].get(..KEYWORD.len()).is_some_and(|word| word.eq_ignore_ascii_case(KEYWORD)) {
            continue;
        }
        let declaration = &bytes[at + KEYWORD.len()..];
        let Some(open) = declaration.iter().position(|byte| matches!(byte, b'"' | b'\'')) else { break };
        let value = &declaration[open + 1..];
        let length = value.iter().position(|byte| *byte == declaration[open]).unwrap_or(value.len());
        let parameter_entity = declaration[..open].contains(&b'%');
        if parameter_entity || value[..length].iter().any(|byte| matches!(byte, b'&' | b'%')) {
            return Err(SyntaxError::new("XML entities that refer to other entities are not allowed"));
        }
        longest = longest.max(length);
    }
    let references = if longest == 0 { 0 } else { bytes.iter().filter(|byte| **byte == b'&').count() };
    if references.saturating_mul(longest) > ENTITY_EXPANSION_BYTES_MAX {
        return Err(SyntaxError::new(format!(
            "the XML entities may expand to more than {ENTITY_EXPANSION_BYTES_MAX} bytes"
        )));
    }
    Ok(())
}

/// Writes triples as RDF/XML.
pub(crate) fn serialize(triples: &[Triple], prefixes: &PrefixTable) -> io::Result<Vec<u8>> {
    let mut serializer = RdfXmlSerializer::new();
    for (prefix, namespace) in prefixes.iter() {
        serializer = serializer.clone().with_prefix(prefix, namespace).unwrap_or(serializer);
    }
    let mut writer = serializer.for_writer(Vec::new());
    for triple in triples {
        writer.serialize_triple(triple)?;
    }
    writer.finish()
}

#[cfg(test)]
mod tests {
    use crate::{Graph, RdfFormat};

    const HEAD: &str =
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>";

    fn parse(text: &str) -> Result<Graph, crate::SyntaxError> {
        Graph::parse(text, RdfFormat::RdfXml, None)
    }

    #[test]
    fn namespace_entities_are_allowed() {
        let text = format!(
            "<!DOCTYPE rdf:RDF [ <!ENTITY e \"http://e/\"> ]>{HEAD}<e:C rdf:about='&e;s'><e:p>x</e:p></e:C></rdf:RDF>"
        );
        assert_eq!(parse(&text).unwrap().len(), 2);
    }

    #[test]
    fn entity_bombs_are_refused() {
        let nested = "<!DOCTYPE d [ <!ENTITY a 'ha'> <!ENTITY b \"&a;&a;\"> ]>";
        assert!(parse(&format!("{nested}{HEAD}</rdf:RDF>")).is_err());
        let parameter = "<!DOCTYPE d [ <!ENTITY % a 'ha'> ]>";
        assert!(parse(&format!("{parameter}{HEAD}</rdf:RDF>")).is_err());
        let quadratic = format!("<!DOCTYPE d [ <!ENTITY a '{}'> ]>{HEAD}", "x".repeat(100_000));
        assert!(
            parse(&format!("{quadratic}<e:C><e:p>{}</e:p></e:C></rdf:RDF>", "&a;".repeat(10_000))).is_err()
        );
    }
}
