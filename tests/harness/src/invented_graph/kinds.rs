//! The types of the graph, with how many of a thousand entities have them and what is said about these.

use super::names::Naming;

/// A type of entities.
pub struct EntityType {
    /// Local name of its IRI.
    pub id: &'static str,
    /// What it is called.
    pub label: &'static str,
    /// Of a thousand entities.
    pub per_mille: usize,
    /// How its entities are named.
    pub naming: Naming,
    /// What can be said about them.
    pub relations: &'static [GraphRelation],
}

/// A relation of a type.
pub struct GraphRelation {
    /// Local name of its IRI.
    pub id: &'static str,
    /// What it is called.
    pub label: &'static str,
    /// What it leads to.
    pub object: Object,
}

/// What a relation leads to.
pub enum Object {
    /// An entity of the kind of this id.
    Of(&'static str),
    /// One of these words, which a comma and a space part.
    Word(&'static str),
    /// A whole number between two, both included.
    Number(u64, u64),
}

const fn kind(id: &'static str, label: &'static str, per_mille: usize, naming: Naming) -> EntityType {
    EntityType { id, label, per_mille, naming, relations: &[] }
}

impl EntityType {
    const fn with(self, relations: &'static [GraphRelation]) -> Self {
        Self { relations, ..self }
    }
}

const fn relation(id: &'static str, label: &'static str, object: Object) -> GraphRelation {
    GraphRelation { id, label, object }
}

/// All types, the most frequent first.
pub const KINDS: &[EntityType] = &[
    kind("Human", "human", 340, Naming::Person).with(&[
        relation("birthplace", "place of birth", Object::Of("City")),
        relation("occupation", "occupation", Object::Word(OCCUPATIONS)),
        relation("employer", "employer", Object::Of("Company")),
        relation("educated_at", "educated at", Object::Of("University")),
        relation("residence", "residence", Object::Of("City")),
        relation("instrument", "instrument", Object::Word(INSTRUMENTS)),
        relation("award", "award received", Object::Of("Award")),
    ]),
    kind("City", "city", 200, Naming::Place("")).with(&[
        relation("country", "country", Object::Of("Country")),
        relation("river_of", "located next to", Object::Of("River")),
        relation("population", "population", Object::Number(800, 900_000)),
        relation("elevation", "elevation above sea level", Object::Number(1, 2400)),
        relation("mayor", "head of government", Object::Of("Human")),
        relation("twin", "twin town", Object::Of("City")),
    ]),
    kind("Company", "company", 80, Naming::Place("Works")).with(&[
        relation("founder", "founded by", Object::Of("Human")),
        relation("headquarters", "headquarters location", Object::Of("City")),
        relation("inception", "year of inception", Object::Number(1780, 2015)),
        relation("industry", "industry", Object::Word(INDUSTRIES)),
        relation("employees", "number of employees", Object::Number(4, 90_000)),
        relation("parent", "parent organization", Object::Of("Company")),
    ]),
    kind("Film", "film", 70, Naming::Title).with(&[
        relation("director", "director", Object::Of("Human")),
        relation("cast", "cast member", Object::Of("Human")),
        relation("genre", "genre", Object::Word(GENRES)),
        relation("released", "year of publication", Object::Number(1920, 2020)),
        relation("filmed_in", "filming location", Object::Of("City")),
        relation("minutes", "duration in minutes", Object::Number(61, 210)),
    ]),
    kind("Book", "book", 60, Naming::Title).with(&[
        relation("author", "author", Object::Of("Human")),
        relation("publisher", "publisher", Object::Of("Company")),
        relation("genre", "genre", Object::Word(GENRES)),
        relation("published", "year of publication", Object::Number(1600, 2020)),
        relation("set_in", "narrative location", Object::Of("City")),
        relation("pages", "number of pages", Object::Number(48, 1100)),
    ]),
    kind("River", "river", 50, Naming::Place("River")).with(&[
        relation("mouth", "mouth of the watercourse", Object::Of("Lake")),
        relation("length", "length in kilometres", Object::Number(9, 2900)),
        relation("crosses", "basin country", Object::Of("Country")),
        relation("source", "origin of the watercourse", Object::Of("Mountain")),
        relation("discharge", "discharge in cubic metres per second", Object::Number(1, 7000)),
    ]),
    kind("University", "university", 40, Naming::Place("University")).with(&[
        relation("located", "located in", Object::Of("City")),
        relation("founded", "year of inception", Object::Number(1200, 2000)),
        relation("rector", "rector", Object::Of("Human")),
        relation("students", "students count", Object::Number(300, 60_000)),
        relation("motto", "motto", Object::Word(MOTTOS)),
    ]),
    kind("Painting", "painting", 30, Naming::Title).with(&[
        relation("creator", "creator", Object::Of("Human")),
        relation("collection", "collection", Object::Of("Museum")),
        relation("material", "made from material", Object::Word(MATERIALS)),
        relation("painted", "year of inception", Object::Number(1400, 1990)),
        relation("depicts", "depicts", Object::Of("Mountain")),
    ]),
    kind("Species", "species", 25, Naming::Person).with(&[
        relation("habitat", "habitat", Object::Word(HABITATS)),
        relation("endemic", "endemic to", Object::Of("Country")),
        relation("described_by", "taxon author", Object::Of("Human")),
        relation("described", "year of taxon publication", Object::Number(1750, 2010)),
        relation("food", "main food source", Object::Word(FOODS)),
    ]),
    kind("Band", "band", 20, Naming::Title).with(&[
        relation("formed_in", "location of formation", Object::Of("City")),
        relation("member", "has part", Object::Of("Human")),
        relation("formed", "year of inception", Object::Number(1955, 2015)),
        relation("style", "genre", Object::Word(STYLES)),
        relation("label", "record label", Object::Of("Company")),
    ]),
    kind("Mountain", "mountain", 15, Naming::Place("Peak")).with(&[
        relation("range", "mountain range", Object::Word(RANGES)),
        relation("height", "elevation above sea level", Object::Number(400, 7900)),
        relation("in_country", "country", Object::Of("Country")),
        relation("first_climber", "first ascent by", Object::Of("Human")),
    ]),
    kind("Country", "country", 12, Naming::Place("Republic")).with(&[
        relation("capital", "capital", Object::Of("City")),
        relation("language", "official language", Object::Word(LANGUAGES)),
        relation("currency", "currency", Object::Word(CURRENCIES)),
        relation("head", "head of state", Object::Of("Human")),
    ]),
    kind("Museum", "museum", 10, Naming::Place("Museum")).with(&[
        relation("museum_in", "located in", Object::Of("City")),
        relation("opened", "year of opening", Object::Number(1750, 2015)),
        relation("director_of", "director", Object::Of("Human")),
        relation("visitors", "visitors per year", Object::Number(900, 3_000_000)),
    ]),
    kind("Lake", "lake", 10, Naming::Place("Lake")).with(&[
        relation("depth", "maximum depth in metres", Object::Number(3, 900)),
        relation("inflow", "inflow", Object::Of("River")),
        relation("lake_country", "country", Object::Of("Country")),
        relation("area", "area in square kilometres", Object::Number(1, 9000)),
    ]),
    kind("Award", "award", 10, Naming::Place("Prize")).with(&[
        relation("conferred_by", "conferred by", Object::Of("University")),
        relation("first_given", "year of inception", Object::Number(1850, 2010)),
        relation("field", "field of work", Object::Word(FIELDS)),
        relation("winner", "winner", Object::Of("Human")),
    ]),
    kind("Ship", "ship", 8, Naming::Title).with(&[
        relation("builder", "manufacturer", Object::Of("Company")),
        relation("home_port", "home port", Object::Of("City")),
        relation("launched", "year of launch", Object::Number(1800, 2010)),
        relation("captain", "captain", Object::Of("Human")),
    ]),
    kind("Opera", "opera", 6, Naming::Title).with(&[
        relation("composer", "composer", Object::Of("Human")),
        relation("premiere_in", "location of first performance", Object::Of("City")),
        relation("premiere", "year of first performance", Object::Number(1640, 1990)),
        relation("acts", "number of acts", Object::Number(1, 5)),
    ]),
    kind("Bridge", "bridge", 6, Naming::Place("Bridge")).with(&[
        relation("spans", "crosses", Object::Of("River")),
        relation("bridge_city", "located in", Object::Of("City")),
        relation("engineer", "structural engineer", Object::Of("Human")),
        relation("bridge_length", "length in metres", Object::Number(20, 4000)),
    ]),
    kind("Asteroid", "asteroid", 4, Naming::Place("Minor")).with(&[
        relation("discoverer", "discoverer", Object::Of("Human")),
        relation("discovered", "year of discovery", Object::Number(1801, 2010)),
        relation("observatory", "site of discovery", Object::Of("University")),
        relation("diameter", "diameter in kilometres", Object::Number(1, 400)),
    ]),
    kind("Manuscript", "manuscript", 4, Naming::Place("Codex")).with(&[
        relation("scribe", "scribe", Object::Of("Human")),
        relation("kept_at", "collection", Object::Of("Museum")),
        relation("leaves", "number of leaves", Object::Number(20, 600)),
        relation("script", "writing system", Object::Word(SCRIPTS)),
    ]),
];

const OCCUPATIONS: &str = "astronomer, baker, botanist, carpenter, composer, engineer, goldsmith, historian, judge, \
    mathematician, midwife, painter, pilot, poet, printer, sailor, singer, surgeon, teacher, weaver";

const INSTRUMENTS: &str = "bassoon, cello, clarinet, drum, flute, guitar, harp, lute, oboe, organ, piano, trumpet, viola, \
    violin, zither";

const INDUSTRIES: &str = "brewing, ceramics, chemicals, fishing, glassmaking, insurance, mining, paper making, printing, \
    railways, shipbuilding, telegraphy, textiles, watchmaking";

const GENRES: &str = "adventure, comedy, crime, drama, fantasy, horror, mystery, romance, satire, science fiction, \
    tragedy, war, western";

const MOTTOS: &str = "Ask first, Light from work, Measure twice, Never by chance, Read on, Slowly and surely, \
    Through the night";

const MATERIALS: &str = "chalk on paper, egg tempera on wood, gouache on board, ink on silk, oil on canvas, oil on copper, \
    watercolour on paper";

const HABITATS: &str = "alpine meadow, brackish marsh, cave, coral reef, dry steppe, mangrove, pine forest, rainforest, \
    river bank, salt flat, tundra";

const FOODS: &str = "acorns, algae, beetles, berries, fish, grass, leaves, nectar, seeds, snails, termites";

const STYLES: &str =
    "ambient, bluegrass, folk rock, funk, garage rock, jazz, krautrock, polka, punk, reggae, ska, soul";

const RANGES: &str = "Ashen Range, Borrow Hills, Crown Range, Drift Mountains, Fold Alps, Grey Teeth, Long Ridge, \
    Salt Range";

const LANGUAGES: &str = "Arvenian, Belish, Cadric, Dunsk, Ettarian, Fennal, Gorish, Heldic, Istran, Jorvic";

const CURRENCIES: &str = "ark, belan, crown, denar, florin, groat, lira, mark, penny, shell, thaler";

const FIELDS: &str =
    "architecture, astronomy, botany, chemistry, history, literature, logic, medicine, music, physics";

const SCRIPTS: &str =
    "angular minuscule, book cursive, long hand, round uncial, square capitals, tall script";

/// A last sentence of descriptions, so that texts differ in more than their facts.
pub const REMARKS: &[&str] = &[
    "Little else has been written about it.",
    "It is mentioned in several encyclopaedias of the period.",
    "Its reputation has grown steadily over the years.",
    "Scholars disagree about many details.",
    "A small exhibition was once devoted to it.",
    "Local schools teach about it.",
    "It appears in a number of popular songs.",
    "Two short studies have been published about it.",
];
