//! The keys of a task file: what each may hold and what it is for. Reading, refusals and the schema for editors use these
//! tables, so they cannot disagree.

/// What a key may hold.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    Text,
    /// One of these texts.
    Word(&'static [&'static str]),
    Number,
    /// A whole number from 0.
    Whole,
    Flag,
    Texts,
    /// A table with these keys.
    Table(&'static [Key]),
    /// A list of tables with these keys.
    Tables(&'static [Key]),
    /// A table of texts by free names.
    TextByName,
    /// A table of numbers by free names.
    NumberByName,
    /// A table of plain values by free names.
    ValueByName,
    /// A table of tables with these keys by free names.
    TableByName(&'static [Key]),
    /// A list of rows of data, whose keys are free.
    Rows,
}

/// A key with its meaning.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    pub name: &'static str,
    pub shape: Shape,
    /// A phrase for editors and for `kgfleet task schema`.
    pub about: &'static str,
}

const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, shape, about }
}

/// The keys at the top of a file.
pub const FILE: &[Key] = &[
    key("task_file", Shape::Whole, "Version of the format; marks the file. 1."),
    key("name", Shape::Text, "Short name of the pack."),
    key("version", Shape::Text, "Version of the content, for people."),
    key("description", Shape::Text, "What the file holds, in a sentence or two."),
    key("provenance", Shape::Text, "Where the content comes from."),
    key("licence", Shape::Text, "Licence of the content, as an SPDX expression."),
    key("canary", Shape::Text, "A random text that appears nowhere else. `kgfleet task new` draws one."),
    key("protected", Shape::Flag, "Whether texts may leave this machine only encrypted or redacted."),
    key("seed", Shape::Whole, "Seed of what is drawn, such as examples. Default: 0."),
    key("repeats", Shape::Whole, "How often each case is asked. Default: 1."),
    key("prefixes", Shape::TextByName, "Prefixes that graphs, queries and answers may use undeclared."),
    key("graphs", Shape::TableByName(GRAPH), "Graphs by name, on which queries run."),
    key("limits", Shape::Table(LIMITS), "Limits of one judgement."),
    key("task", Shape::Tables(TASK), "The tasks."),
];

/// The keys of a graph.
pub const GRAPH: &[Key] = &[
    key("file", Shape::Text, "Path of its document."),
    key("text", Shape::Text, "Its document."),
    key(
        "format",
        Shape::Word(&["turtle", "jsonld", "xml", "nt"]),
        "Syntax, if the ending does not say. Default: turtle.",
    ),
];

const LIMITS: &[Key] = &[
    key(
        "query_seconds",
        Shape::Number,
        "Processor time of all queries of one judgement, in seconds. Default: 10.",
    ),
    key("answer_bytes", Shape::Whole, "Size of an answer, in bytes. Default: 16 MiB."),
    key("nesting", Shape::Whole, "Nesting of brackets in an answer. Default: 256."),
    key("rows", Shape::Whole, "Rows of a result. Default: 1000000."),
];

/// The keys of a task.
pub const TASK: &[Key] = &[
    key("label", Shape::Text, "Name of the task in results: letters, digits and `._-`."),
    key("like", Shape::Text, "The preset that completes the task."),
    key("about", Shape::Text, "What the task measures, in a sentence."),
    key("graph", Shape::Text, "The graph of this file on which queries run."),
    key("graph_field", Shape::Text, "The field of a case that holds its graph in Turtle."),
    key("shown", Shape::Table(SHOWN), "What prompts show of the graph."),
    key("few_shot", Shape::Table(FEW_SHOT), "Examples, which templates have as `shots`."),
    key("cases", Shape::Table(CASES), "The file with the cases."),
    key("case", Shape::Rows, "Cases written here."),
    key("system", Shape::Text, "Template of the text above the conversation."),
    key("system_file", Shape::Text, "File with that template."),
    key("prompt", Shape::Text, "Template of the first prompt."),
    key("prompt_file", Shape::Text, "File with that template."),
    key("answer", Shape::Table(ANSWER), "Which part of an answer counts, and what it is read as."),
    key("readable", Shape::Number, "Share of the score for an answer that can be read, 0 to 1. Default: 0."),
    key("check", Shape::Tables(CHECK), "The checks that judge an answer."),
    key("rounds", Shape::Whole, "Most answers of a dialogue, 1 to 5. Default: 1."),
    key("headline", Shape::Word(&["max", "last"]), "Which answer stands in tables. Default: max."),
    key("follow_up", Shape::Table(FOLLOW_UP), "What is sent after an answer with a finding."),
    key("judge", Shape::Table(JUDGE), "What a model is asked about answers, in judged benchmarks."),
    key("reveal", Shape::Texts, "Fields that checks expect and prompts may show all the same."),
    key("test", Shape::Tables(TEST), "Answers of known score."),
];

const SHOWN: &[Key] = &[
    key(
        "as",
        Shape::Word(&["turtle", "jsonld", "xml", "nt", "schema"]),
        "The form; `schema` counts properties by class. Default: turtle.",
    ),
    key("around", Shape::Text, "The field with the IRI of a node; only what lies around it is shown."),
    key("hops", Shape::Whole, "How far that reaches. Default: 2."),
    key("triples_max", Shape::Whole, "Most triples of it. Default: 200."),
    key("judged", Shape::Flag, "Whether queries run on this part only."),
];

const FEW_SHOT: &[Key] = &[
    key("n", Shape::Whole, "How many, 1 to 50. Default: 3."),
    key("file", Shape::Text, "A file of rows: JSONL, JSON, CSV, TSV or YAML."),
    key("from_cases", Shape::Flag, "Whether they are cases, which are then not asked."),
    key("pick", Shape::Word(&["first", "seeded"]), "Which rows. Default: first."),
];

const CASES: &[Key] = &[
    key("file", Shape::Text, "Path of the data: JSONL, JSON, CSV, TSV or YAML."),
    key("rows", Shape::Text, "Path of the list of rows within the file."),
    key("fields", Shape::TextByName, "Fields of a case by their path in a row."),
    key(
        "id",
        Shape::Text,
        "Path of a case's identifier in a row. Default: `id`, or else the number of the row.",
    ),
    key("where", Shape::ValueByName, "Only rows with these values."),
    key("skip", Shape::Whole, "Rows that are left out at the beginning."),
    key("take", Shape::Whole, "Most rows that are taken."),
];

const ANSWER: &[Key] = &[
    key(
        "take",
        Shape::Word(&["block", "last-block", "text", "line", "json"]),
        "The part that counts. Default: text.",
    ),
    key("language", Shape::Texts, "Languages of blocks that count; an empty text for blocks without one."),
    key("containing", Shape::Texts, "Words one of which a block must contain."),
    key("after", Shape::Text, "Only the text behind the last such marker counts."),
    key(
        "as",
        Shape::Word(&["text", "number", "list", "json", "turtle", "jsonld", "xml", "nt", "sparql", "shapes"]),
        "What it is read as. Default: text.",
    ),
    key("one", Shape::Flag, "Whether a second block is a finding."),
    key(
        "wrap",
        Shape::Text,
        "Template of a document in which `{{ answer }}` stands for the part that counts; the whole is read.",
    ),
    key("wrap_file", Shape::Text, "File with that template."),
];

/// The keys that checks of every kind have.
pub const CHECK_OF_ALL: [&str; 6] = ["kind", "name", "weight", "gate", "empty_ok", "expect"];

/// The keys of a check.
pub const CHECK: &[Key] = &[
    key("kind", Shape::Word(KINDS), "What is compared, and how."),
    key("name", Shape::Text, "Name of its score. Default: its kind."),
    key("weight", Shape::Number, "Its share of the score, relative to the others. Default: 1; of a gate 0."),
    key("gate", Shape::Flag, "Whether the score is 0 when this check is not passed in full."),
    key("empty_ok", Shape::Flag, "Whether saying nothing is right where nothing is expected."),
    key("expect", Shape::Table(EXPECT), "What is expected."),
    key("matches", Shape::Text, "Of `pattern`: the regular expression."),
    key("within", Shape::Number, "Of `number`: the distance that is allowed."),
    key(
        "relative",
        Shape::Number,
        "Of `number`: the distance that is allowed, as a share of the expected number.",
    ),
    key("choices", Shape::Texts, "Of `choice`: the words."),
    key(
        "items",
        Shape::Word(&["text", "iri", "number", "record"]),
        "Of `list`: what its items are. Default: text.",
    ),
    key("ordered", Shape::Flag, "Of `list`: whether the order counts."),
    key("partial", Shape::Flag, "Of `list`: whether some right items are worth something. Default: true."),
    key(
        "compare",
        Shape::Word(&["rows", "cells"]),
        "Of `rows`: rows, or one set of all cells. Default: rows.",
    ),
    key("schema", Shape::Text, "Of `schema`: a JSON Schema of the keywords that version 1 has."),
    key("schema_file", Shape::Text, "Of `schema`: the file with it."),
    key(
        "literals",
        Shape::Word(&["value", "exact"]),
        "Of `graph`: whether 2.50 is 2.5, or texts must be the same. Default: value.",
    ),
    key(
        "blank",
        Shape::Word(&["mapped", "equal"]),
        "Of `graph`: whether each blank node stands for one of the other graph, or for any. Default: mapped.",
    ),
    key("ignore", Shape::Texts, "Of `graph`: properties that are left out, in full or with a prefix."),
    key("ask", Shape::TextByName, "Of `assert`: ASK queries by name, which must hold of the answer."),
    key("with_graph", Shape::Flag, "Of `assert`: whether queries see the graph of the case too."),
    key("shapes", Shape::Text, "Of `conforms`: SHACL shapes in Turtle, the same for all cases."),
    key("shapes_file", Shape::Text, "Of `conforms`: the file with them."),
    key("shapes_field", Shape::Text, "Of `conforms`: the field of a case that holds them."),
    key(
        "by",
        Shape::Word(&["graph", "node"]),
        "Of `conforms`: 1 or 0, or the share of the nodes that shapes are about. Default: graph.",
    ),
    key("accept", Shape::Text, "Of `shapes`: the field with the graphs to accept, a list. Default: accept."),
    key("reject", Shape::Text, "Of `shapes`: the field with the graphs to reject, by name. Default: reject."),
    key("focus", Shape::Text, "Of `shapes`: the field with the IRI of the node that must be reported."),
    key("reference", Shape::Text, "Of `shapes`: the field with shapes that are right. Default: shapes."),
];

/// The kinds of checks.
pub const KINDS: &[&str] = &[
    "exact", "text", "pattern", "number", "choice", "list", "rows", "schema", "graph", "assert", "conforms",
    "shapes", "similar",
];

/// The keys that only this kind of check has.
pub fn of_kind(kind: &str) -> &'static [&'static str] {
    match kind {
        "pattern" => &["matches"],
        "number" => &["within", "relative"],
        "choice" => &["choices"],
        "list" => &["items", "ordered", "partial"],
        "rows" => &["compare"],
        "schema" => &["schema", "schema_file"],
        "graph" => &["literals", "blank", "ignore"],
        "assert" => &["ask", "with_graph"],
        "conforms" => &["shapes", "shapes_file", "shapes_field", "by"],
        "shapes" => &["accept", "reject", "focus", "reference"],
        _ => &[],
    }
}

const EXPECT: &[Key] = &[
    key("field", Shape::Text, "The field of the case that holds it."),
    key("text", Shape::Text, "The same text for all cases."),
    key("file", Shape::Text, "A file with the same text for all cases."),
    key("query", Shape::Text, "The result of this query on the graph of the case."),
    key("query_field", Shape::Text, "The result of the query in this field of the case."),
];

const FOLLOW_UP: &[Key] = &[
    key("structure", Shape::Text, "When the part that counts is not there."),
    key("syntax", Shape::Text, "When it cannot be read."),
    key("empty-result", Shape::Text, "When it leads to nothing where something is expected."),
    key("content", Shape::Text, "When it can be read and is not right. Without these words nothing is sent."),
];

const JUDGE: &[Key] = &[
    key(
        "question",
        Shape::Text,
        "Template of the question. It may show what checks expect, and `{{ answer }}` stands for the answer.",
    ),
    key("question_file", Shape::Text, "File with that template."),
    key("weight", Shape::Number, "Share of the grade in the result, 0 to 1. Default: 0.5."),
    key(
        "when",
        Shape::Word(&["readable", "imperfect", "always"]),
        "Which answers are graded: those that can be read, those with a score below 1, or all. Default: readable.",
    ),
];

const TEST: &[Key] = &[
    key("case", Shape::Text, "Identifier of the case."),
    key("answer", Shape::Table(TEST_ANSWER), "The answer."),
    key("score", Shape::Number, "Its score."),
    key("scores", Shape::NumberByName, "Other scores by name."),
];

const TEST_ANSWER: &[Key] = &[
    key("text", Shape::Text, "The answer as it is."),
    key("block", Shape::Text, "The body of a fenced code block."),
];
