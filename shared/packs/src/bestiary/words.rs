//! The vocabulary of the bestiary. Order matters: the generator draws by position.

/// Kinds of creature with their class and the nouns that name their species.
pub(super) const KINDS: [(&str, [&str; 5]); 12] = [
    ("Wyrm", ["Wyrm", "Drake", "Lindworm", "Cockatrice", "Basilisk"]),
    ("Revenant", ["Ghoul", "Wraith", "Barrowman", "Bonewalker", "Mourner"]),
    ("Automaton", ["Golem", "Clockhound", "Sentinel", "Gearling", "Homunculus"]),
    ("Sprite", ["Pixie", "Willowisp", "Brownie", "Nixie", "Dryad"]),
    ("Colossus", ["Troll", "Ettin", "Ogre", "Jotun", "Cyclops"]),
    ("Chimera", ["Gryphon", "Manticore", "Hippogriff", "Owlbear", "Sphinx"]),
    ("Serpent", ["Amphisbaena", "Hydra", "Seaserpent", "Viper", "Lamia"]),
    ("Elemental", ["Salamander", "Undine", "Sylph", "Gnome", "Magmite"]),
    ("Shapeshifter", ["Werewolf", "Selkie", "Doppelganger", "Kitsune", "Mimic"]),
    ("Slime", ["Jelly", "Pudding", "Cube", "Mold", "Creeper"]),
    ("Seraph", ["Angel", "Valkyrie", "Phoenix", "Unicorn", "Lantern"]),
    ("Fiend", ["Imp", "Succubus", "Hellhound", "Nightmare", "Balrogue"]),
];

/// What distinguishes one species from the next: every kind's noun is combined with each.
pub(super) const EPITHETS: [&str; 50] = [
    "Amber",
    "Ashen",
    "Bitter",
    "Blind",
    "Brazen",
    "Burrowing",
    "Carrion",
    "Cinder",
    "Coral",
    "Crested",
    "Crooked",
    "Dappled",
    "Dusk",
    "Elder",
    "Emerald",
    "Fenland",
    "Feral",
    "Frost",
    "Gilded",
    "Gloom",
    "Granite",
    "Hollow",
    "Horned",
    "Hungry",
    "Iron",
    "Ivory",
    "Jade",
    "Lesser",
    "Marble",
    "Mire",
    "Moonlit",
    "Mottled",
    "Obsidian",
    "Pale",
    "Quiet",
    "Rimed",
    "Rust",
    "Sable",
    "Saltwater",
    "Scarlet",
    "Singing",
    "Sleepless",
    "Stone",
    "Storm",
    "Tidal",
    "Twilight",
    "Umber",
    "Veiled",
    "Weeping",
    "Winged",
];

/// Moral outlooks: local name and label.
pub(super) const ALIGNMENTS: [(&str, &str); 9] = [
    ("lawfulGood", "lawful good"),
    ("neutralGood", "neutral good"),
    ("chaoticGood", "chaotic good"),
    ("lawfulNeutral", "lawful neutral"),
    ("trueNeutral", "true neutral"),
    ("chaoticNeutral", "chaotic neutral"),
    ("lawfulEvil", "lawful evil"),
    ("neutralEvil", "neutral evil"),
    ("chaoticEvil", "chaotic evil"),
];

pub(super) const LANGUAGES: [&str; 24] = [
    "Ancestral",
    "Barrowspeech",
    "Birdsong",
    "Brine",
    "Cindertongue",
    "Clicking",
    "Cogcant",
    "Court",
    "Deepchant",
    "Dirge",
    "Feycant",
    "Goatherd",
    "High",
    "Hiss",
    "Infernal",
    "Lowland",
    "Moonwhistle",
    "Mountain",
    "Old",
    "Rootwhisper",
    "Runic",
    "Seraphic",
    "Trade",
    "Wyrmish",
];

/// Size categories, small to large.
pub(super) const SIZES: [&str; 6] = ["Minute", "Small", "Medium", "Large", "Huge", "Towering"];

pub(super) const HABITATS: [&str; 16] = [
    "Bog",
    "Canyon",
    "Cavern",
    "CoralReef",
    "Desert",
    "Dune",
    "Estuary",
    "Forest",
    "Glacier",
    "Heath",
    "Marsh",
    "Meadow",
    "Ruin",
    "Sewer",
    "Steppe",
    "Volcano",
];

/// Regions: every habitat lies in three of them.
pub(super) const REGIONS: [&str; 12] = [
    "Aldermoor",
    "Brackwater",
    "Corvane",
    "Drumlin",
    "Eastreach",
    "Fallowmark",
    "Greywold",
    "Hartsea",
    "Isenvale",
    "Jarrow",
    "Kelmarch",
    "Lowenfell",
];

/// Kinds of damage.
pub(super) const DAMAGE_TYPES: [&str; 10] =
    ["Acid", "Cold", "Fire", "Lightning", "Necrotic", "Piercing", "Poison", "Radiant", "Slashing", "Thunder"];

/// Schools of magic.
pub(super) const SCHOOLS: [&str; 8] =
    ["Binding", "Charm", "Divining", "Flame", "Mending", "Phantasm", "Transmuting", "Warding"];

/// First words of spells.
pub(super) const SPELL_FORMS: [&str; 20] = [
    "Aura", "Blade", "Breath", "Chain", "Circle", "Cloak", "Curse", "Echo", "Eye", "Gate", "Hand", "Hymn",
    "Lance", "Mask", "Mirror", "Rain", "Shroud", "Song", "Veil", "Word",
];

/// Second words of spells.
pub(super) const SPELL_THEMES: [&str; 20] = [
    "Ashes", "Bone", "Calm", "Dawn", "Dread", "Embers", "Frost", "Gravity", "Honey", "Iron", "Knots",
    "Light", "Mist", "Needles", "Night", "Roots", "Silence", "Sparks", "Thorns", "Tides",
];

/// Names of scholars who report sightings.
pub(super) const OBSERVERS: [&str; 30] = [
    "Abelard",
    "Brigid",
    "Casimir",
    "Dorothea",
    "Emeric",
    "Fenna",
    "Gottfrid",
    "Hedwig",
    "Isidor",
    "Jutta",
    "Konrad",
    "Leocadia",
    "Matthis",
    "Nerea",
    "Odalric",
    "Petronel",
    "Quirin",
    "Richildis",
    "Severin",
    "Thekla",
    "Ulrica",
    "Valdemar",
    "Walburga",
    "Xaver",
    "Ysolde",
    "Zdenko",
    "Agnes",
    "Bertram",
    "Clementia",
    "Dietmar",
];
