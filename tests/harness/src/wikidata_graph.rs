//! An invented knowledge graph in Wikidata's shape and of any size, as N-Triples: items and properties with Wikidata's IRIs, labels
//! in two languages, properties of every kind (items, times, quantities, strings, identifiers, files), items of two types, and
//! blank nodes for values that nobody knows. It is read by the mapping `wikidata` of `kgfleet halu generate`.
//!
//! [`write`] is a pure function of its arguments and holds nothing in memory.

use std::io::{self, Write};

use domain::seed::SplitMix64;

const ENTITY: &str = "http://www.wikidata.org/entity/";
const DIRECT: &str = "http://www.wikidata.org/prop/direct/";
const LABEL: &str = "http://www.w3.org/2000/01/rdf-schema#label";
const DESCRIPTION: &str = "http://schema.org/description";
const ONTOLOGY: &str = "http://wikiba.se/ontology#";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// The first number of an item: those below are types.
const FIRST: u64 = 20_000_000;

/// Types: number, label, how many of a thousand items have it.
const TYPES: [(u64, &str, u64); 12] = [
    (5, "human", 340),
    (11_424, "film", 160),
    (515, "city", 120),
    (532, "village", 110),
    (482_994, "album", 80),
    (4_022, "river", 60),
    (571, "book", 50),
    (23_397, "lake", 30),
    (33_506, "museum", 20),
    (8_502, "mountain", 15),
    (1_344, "opera", 10),
    (9_143, "programming language", 5),
];

/// A property: number, label, kind of its objects.
type Property = (u64, &'static str, &'static str);

/// Properties whose objects are items.
const ITEMS: [Property; 6] = [
    (17, "country", "WikibaseItem"),
    (131, "located in the administrative territorial entity", "WikibaseItem"),
    (138, "named after", "WikibaseItem"),
    (361, "part of", "WikibaseItem"),
    (112, "founded by", "WikibaseItem"),
    (276, "location", "WikibaseItem"),
];

/// All others.
const OTHERS: [Property; 8] = [
    (569, "date of birth", "Time"),
    (571, "inception", "Time"),
    (2_048, "height", "Quantity"),
    (373, "Commons category", "String"),
    (18, "image", "CommonsMedia"),
    (856, "official website", "Url"),
    (214, "VIAF cluster ID", "ExternalId"),
    (646, "Freebase ID", "ExternalId"),
];

/// The statistics that the dumps lack.
const STATISTICS: [&str; 6] =
    ["page_views", "site_links", "external_ids", "page_tokens", "statements", "references"];

/// What a graph is like.
#[derive(Clone, Copy, Debug)]
pub struct WikidataShape {
    /// Number of items.
    pub entities: u64,
    pub seed: u64,
    /// Whether pages' statistics are stated, as in no official dump.
    pub has_statistics: bool,
}

/// IRI of the item of this place.
pub fn item(place: u64) -> String {
    format!("{ENTITY}Q{}", FIRST + place)
}

/// Writes the graph.
///
/// # Errors
/// The output cannot be written to.
pub fn write(shape: WikidataShape, out: &mut dyn Write) -> io::Result<()> {
    for (number, label, _) in TYPES {
        writeln!(out, "<{ENTITY}Q{number}> <{LABEL}> \"{label}\"@en .")?;
    }
    for (number, label, kind) in ITEMS.iter().chain(&OTHERS) {
        writeln!(out, "<{ENTITY}P{number}> <{LABEL}> \"{label}\"@en .")?;
        writeln!(out, "<{ENTITY}P{number}> <{ONTOLOGY}propertyType> <{ONTOLOGY}{kind}> .")?;
    }
    (0..shape.entities).try_for_each(|place| write_item(shape, place, out))
}

fn write_item(shape: WikidataShape, place: u64, out: &mut dyn Write) -> io::Result<()> {
    let mut random = SplitMix64::new(SplitMix64::mix(shape.seed) ^ place);
    let mut below = |bound: u64| random.next_u64() % bound;
    let subject = format!("<{}>", item(place));
    let of_thousand = below(1_000);
    let mut sum = 0;
    let (type_number, type_label, _) = TYPES
        .into_iter()
        .find(|(_, _, share)| {
            sum += share;
            of_thousand < sum
        })
        .unwrap_or(TYPES[0]);
    writeln!(out, "{subject} <{DIRECT}P31> <{ENTITY}Q{type_number}> .")?;
    if below(10) == 0 {
        // Some are of two types.
        let (another, _, _) = TYPES[below(TYPES.len() as u64) as usize];
        writeln!(out, "{subject} <{DIRECT}P31> <{ENTITY}Q{another}> .")?;
    }
    let name = name_of(shape.seed, place);
    writeln!(out, "{subject} <{LABEL}> \"{name}\"@en .")?;
    writeln!(out, "{subject} <{LABEL}> \"{name} (deutsch)\"@de .")?;
    let mut sentences = format!("{name} is a {type_label}.");
    let fame = below(14);
    for (number, label, _) in ITEMS {
        if below(16) > 8 + fame / 2 {
            continue;
        }
        let object = below(shape.entities);
        writeln!(out, "{subject} <{DIRECT}P{number}> <{}> .", item(object))?;
        sentences.push_str(&format!(" Its {label} is {}.", name_of(shape.seed, object)));
    }
    let year = 1_200 + below(800);
    let dated = if type_number == 5 { 569 } else { 571 };
    match below(20) {
        // A date that is there and that nobody knows.
        0 => writeln!(out, "{subject} <{DIRECT}P{dated}> _:unknown{place} .")?,
        _ => writeln!(out, "{subject} <{DIRECT}P{dated}> \"{year}-01-01T00:00:00Z\"^^<{XSD}dateTime> .")?,
    }
    writeln!(out, "{subject} <{DIRECT}P2048> \"+{}\"^^<{XSD}decimal> .", 1 + below(300))?;
    writeln!(out, "{subject} <{DIRECT}P373> \"{name}\" .")?;
    writeln!(out, "{subject} <{DIRECT}P214> \"{}\" .", below(1 << 40))?;
    writeln!(out, "{subject} <{DIRECT}P646> \"/m/{:x}\" .", below(1 << 30))?;
    writeln!(out, "{subject} <{DIRECT}P856> <https://site.example/{place}> .")?;
    if below(30) > 0 {
        writeln!(out, "{subject} <{DESCRIPTION}> \"{sentences} It has number {place}.\"@en .")?;
        writeln!(out, "{subject} <{DESCRIPTION}> \"{name} ist eine Sache.\"@de .")?;
    }
    if shape.has_statistics {
        for statistic in STATISTICS {
            let value = 1 + below(10 << fame);
            writeln!(out, "{subject} <urn:kgfleet:statistic:{statistic}> \"{value}\"^^<{XSD}integer> .")?;
        }
    }
    Ok(())
}

/// The name of an item: a word of its own and its number, so that no other has it.
fn name_of(seed: u64, place: u64) -> String {
    const SYLLABLES: [&str; 16] = [
        "ba", "cor", "del", "fen", "gar", "hol", "is", "kel", "lor", "mar", "nev", "os", "pel", "ras", "tun",
        "vey",
    ];
    let mut bits = SplitMix64::mix(seed ^ SplitMix64::mix(place));
    let mut word = String::new();
    for _ in 0..3 {
        word.push_str(SYLLABLES[(bits % 16) as usize]);
        bits /= 16;
    }
    word[..1].make_ascii_uppercase();
    format!("{word} {place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_gives_one_graph() {
        let text = |seed: u64| {
            let mut text = Vec::new();
            write(WikidataShape { entities: 50, seed, has_statistics: true }, &mut text).unwrap();
            text
        };
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }
}
