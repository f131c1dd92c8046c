//! Text2Sparql: turn a question into a SPARQL query over a knowledge graph (LLM-KG-Bench 3, Meyer et al., ESWC 2025;
//! the older name of the classes is Text2SparqlExecEvalList).
//!
//! The query is run and judged by its result, see [`super::query`] for the rules. The data sets differ in the source of
//! their graph ([`graphs`]) and in the prefixes that queries may use undeclared ([`prefixes`]).
//!
//! Fields of a case: `uid`, `question`, `refSparql`, `refResultSet`; a graph as `graphTurtle`, `graph` or
//! `graphName` where the data set has none of its own; optionally `prefixes` and the limits of the dialogue
//! (`multishotLimit`, `multishotSyntaxLimit`, `multishotResultLimit`).
//!
//! Placeholders of the first prompt: `{{question}}` and `{{kgInfo}}`, both fields of the case.

use domain::PromptKind;
use rdf::{Dialect, PrefixTable};

use super::query::{QueryCase, QuerySetting, ValueTexts, case_graph};
use crate::class::{AnswerForm, ClassSpec, Published, ReadCase};
use crate::exercise::{CaseError, CaseInput, Compat, Exercise};
use crate::families::case_fields;
use crate::graphs::{ExerciseGraph, GraphLibrary};

mod graphs;
mod prefixes;

/// The data sets of Text2Sparql. They differ in prefix table, graph and (in the published run) a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text2SparqlSet {
    /// The organisational graph with readable IRIs.
    Organizational,
    /// Its twin with numeric IRIs.
    OrgaNumerical,
    /// A supply-chain graph.
    CoypuMini,
    /// A large bestiary, shown in parts.
    Beastiary,
    /// Wikidata.
    LcQuad,
    /// Prefixes and graph are in the data of the case.
    Generic,
}

/// Turn a question into a SPARQL query: one class per data set.
pub(crate) const CLASSES: [ClassSpec; 6] = [
    class(&[("Text2SparqlList", &["3.1.2"])], &[], |input, graphs, compat| {
        exercise(input, Text2SparqlSet::Generic, graphs, compat)
    }),
    class(&[("Text2SparqlExecEvalListOrganizational", &["3.1.2"])], LABELS, |input, graphs, compat| {
        exercise(input, Text2SparqlSet::Organizational, graphs, compat)
    }),
    class(&[("Text2SparqlExecEvalListOrgaNumerical", &["4.0"])], LABELS, |input, graphs, compat| {
        exercise(input, Text2SparqlSet::OrgaNumerical, graphs, compat)
    }),
    class(&[("Text2SparqlExecEvalListCoypuMini", &["3.0"])], LABELS, |input, graphs, compat| {
        exercise(input, Text2SparqlSet::CoypuMini, graphs, compat)
    }),
    class(
        &[("Text2SparqlExecEvalListBeastiary", &["2.4.2"])],
        &["entityLabelMapping", "iris", "subGraph", "subSchema"],
        |input, graphs, compat| exercise(input, Text2SparqlSet::Beastiary, graphs, compat),
    ),
    class(&[("Text2SparqlExecEvalListLcQuad", &["3.0"])], LABELS, |input, graphs, compat| {
        exercise(input, Text2SparqlSet::LcQuad, graphs, compat)
    }),
];

/// The key that published cases have beside those that are read.
const LABELS: &[&str] = &["entityLabelMapping"];

const fn class(
    names: &'static [(&'static str, &'static [&'static str])],
    case_keys: &'static [&'static str],
    exercise: ReadCase,
) -> ClassSpec {
    ClassSpec {
        follow_ups: &[PromptKind::Syntax, PromptKind::EmptyResult],
        published: Published { estimated_size: Some(2000), case_keys, ..Published::NOTHING },
        ..ClassSpec::new(names, &["max", "combined"], AnswerForm::Query, exercise)
    }
}

/// Reads a case of a data set.
fn exercise(
    input: &CaseInput<'_>,
    set: Text2SparqlSet,
    library: &GraphLibrary,
    compat: Compat,
) -> Result<Box<dyn Exercise>, CaseError> {
    case_fields::text(input.data, "question")?;
    let graph = graphs::graph(input, set, library)?;
    let of_case = case_graph::prefixes_of_case(input.data)?;
    let setting = move |loaded: &ExerciseGraph| setting(loaded, set, &of_case, compat);
    Ok(Box::new(QueryCase::read(input.data, graph, setting)?))
}

fn setting(
    loaded: &ExerciseGraph,
    set: Text2SparqlSet,
    of_case: &PrefixTable,
    compat: Compat,
) -> QuerySetting {
    let of_set = prefixes::of_set(set);
    let layers = [&PrefixTable::rdflib_defaults(), &loaded.prefixes, &of_set, of_case];
    let mut queries = PrefixTable::layered(&layers);
    if compat.prefix_defect {
        prefixes::spoil(&mut queries, set);
    }
    let (dialect, value_texts) = match set {
        Text2SparqlSet::LcQuad => (Dialect::Wikidata, ValueTexts::Raw),
        Text2SparqlSet::Organizational
        | Text2SparqlSet::OrgaNumerical
        | Text2SparqlSet::CoypuMini
        | Text2SparqlSet::Beastiary
        | Text2SparqlSet::Generic => {
            (compat.dialect(), ValueTexts::Compact(case_graph::compact_table(&layers)))
        }
    };
    QuerySetting { graph: loaded.graph.clone(), prefixes: queries, dialect, value_texts }
}

#[cfg(test)]
mod tests {
    use domain::Infos;
    use serde_json::{Map, Value, json};

    use super::*;
    use crate::exercise::{Effort, EvaluationLimits, EvaluationStage, Limit, ReadOnce, Verdict};

    const AVIARY: &str = "@prefix zoo: <http://example.org/zoo#> .\n\
        @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n\
        zoo:heron a zoo:Bird ; zoo:cage zoo:c1 ; rdfs:label \"Heron\" ; zoo:weight 2 .\n\
        zoo:owl a zoo:Bird ; zoo:cage zoo:c2 ; rdfs:label \"Owl\" ; zoo:weight 1 .\n\
        zoo:newt a zoo:Amphibian ; zoo:cage <http://elsewhere.example/pond> .";

    fn data(reference: &str, result: &Value) -> Map<String, Value> {
        let data = json!({
            "uid": "aviary-1", "question": "Which birds are there?",
            "refSparql": reference, "refResultSet": result, "graphTurtle": AVIARY,
        });
        data.as_object().unwrap().clone()
    }

    fn birds() -> Map<String, Value> {
        data("SELECT ?b WHERE { ?b a zoo:Bird }", &json!(["zoo:heron", "zoo:owl"]))
    }

    fn exercise_of(
        class: &str,
        data: &Map<String, Value>,
        compat: Compat,
    ) -> Result<Box<dyn Exercise>, CaseError> {
        exercise_with(class, data, compat, &GraphLibrary::default())
    }

    fn exercise_with(
        class: &str,
        data: &Map<String, Value>,
        compat: Compat,
        library: &GraphLibrary,
    ) -> Result<Box<dyn Exercise>, CaseError> {
        let version = crate::TaskClass::version_of(class).unwrap();
        let parameters = Map::new();
        let input = CaseInput {
            class,
            version,
            parameters: &parameters,
            data,
            first_prompt: None,
            once: &ReadOnce::default(),
        };
        crate::families::exercise(&input, library, compat)
    }

    fn judge_with(data: &Map<String, Value>, answer: &str, effort: &Effort) -> Verdict {
        exercise_of("Text2SparqlList", data, Compat::default()).unwrap().judge(answer, effort)
    }

    fn judge(data: &Map<String, Value>, query: &str) -> Verdict {
        let effort = Effort::full(EvaluationLimits::default());
        judge_with(data, &format!("Here you are:\n```sparql\n{query}\n```"), &effort)
    }

    fn kind(verdict: &Verdict) -> Option<PromptKind> {
        verdict.follow_up.as_ref().map(|follow_up| follow_up.kind)
    }

    #[test]
    fn queries_and_results_are_shown_beside_each_other() {
        let case = exercise_of("Text2SparqlList", &birds(), Compat::default()).unwrap();
        let effort = Effort::full(EvaluationLimits::default());
        let shown = |answer: &str| {
            let infos = case.judge(answer, &effort).infos;
            case.compared(answer, &infos, &effort)
        };
        let (query, other) = ("SELECT ?b WHERE { ?b a zoo:Bird }", "SELECT ?c WHERE { ?c zoo:cage zoo:c2 }");
        let parts = shown(&format!("So:\n```sparql\n{other}\n```"));
        assert_eq!((&*parts[0].what, &*parts[1].what), ("query", "result"));
        assert_eq!((parts[0].expected.as_deref(), parts[0].extracted.as_deref()), (Some(query), Some(other)));
        assert_eq!(parts[1].expected.as_deref(), Some("zoo:heron\nzoo:owl"));
        assert_eq!(parts[1].extracted.as_deref(), Some("zoo:owl"));
        assert!(parts.iter().all(|part| part.by_line));
        assert!(shown("I do not know.").iter().all(|part| part.extracted.is_none()));
    }

    #[test]
    fn a_long_result_is_cut_and_its_lines_are_not_compared() {
        let names: Vec<String> = (0..20).map(|number| format!("zoo:b{number:02}")).collect();
        let case = data("SELECT ?b WHERE { ?b a zoo:Bird }", &json!(names));
        let case = exercise_of("Text2SparqlList", &case, Compat::default()).unwrap();
        let parts = case.compared("", &Infos::new(), &Effort::full(EvaluationLimits::default()));
        assert!(parts[0].by_line && !parts[1].by_line);
        assert!(parts[1].expected.as_deref().unwrap().ends_with("zoo:b14\n..."));
    }

    #[test]
    fn limits_are_verdicts_that_name_themselves() {
        let answer = "```sparql\nSELECT ?b WHERE { ?b a zoo:Bird }\n```";
        let at = |stage| judge_with(&birds(), answer, &Effort { limits: EvaluationLimits::default(), stage });
        let unexecuted = at(EvaluationStage::WithoutExecution(Limit::CpuTime));
        assert_eq!(unexecuted.scores["combined"], 0.2);
        assert_eq!(unexecuted.infos["EvaluationException"], Limit::CpuTime.message());
        assert_eq!(kind(&unexecuted), Some(PromptKind::EmptyResult));
        let unparsed = at(EvaluationStage::WithoutParsing(Limit::Memory));
        assert_eq!(unparsed.scores["answerParse"], 0.0);
        assert_eq!(unparsed.infos["parseError"], Limit::Memory.message());
        assert_eq!(unparsed.infos["parseErrorEmpty"], false);

        let small = EvaluationLimits { answer_bytes_max: 20, ..EvaluationLimits::default() };
        let large = judge_with(&birds(), answer, &Effort::full(small));
        assert_eq!(large.infos["parseError"], Limit::Size.message());
        let deep = format!("SELECT * {}{}", "{".repeat(100_000), "}".repeat(100_000));
        assert_eq!(judge(&birds(), &deep).infos["parseError"], Limit::Nesting.message());
    }

    #[test]
    fn the_published_prefix_defect_hides_labels_in_three_sets() {
        let case = data("SELECT ?l WHERE { zoo:owl rdfs:label ?l }", &json!(["Owl"]));
        let combined = |class: &str, query: &str, compat: Compat| {
            let effort = Effort::full(EvaluationLimits::default());
            let exercise = exercise_of(class, &case, compat).unwrap();
            exercise.judge(&format!("```\n{query}\n```"), &effort).scores["combined"].clone()
        };
        let bare = "SELECT ?l WHERE { zoo:owl rdfs:label ?l }";
        let declared = format!("PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> {bare}");
        for class in [
            "Text2SparqlExecEvalListOrganizational",
            "Text2SparqlExecEvalListOrgaNumerical",
            "Text2SparqlExecEvalListCoypuMini",
        ] {
            assert_eq!(combined(class, bare, Compat::PUBLISHED), 0.2, "{class}");
            assert_eq!(combined(class, &declared, Compat::PUBLISHED), 1.0, "{class}");
            assert_eq!(combined(class, bare, Compat::default()), 1.0, "{class}");
        }
        assert_eq!(combined("Text2SparqlExecEvalListBeastiary", bare, Compat::PUBLISHED), 1.0);
    }

    #[test]
    fn graphs_come_from_the_prompt_or_the_library_where_the_case_has_none() {
        let mut case = birds();
        case.remove("graphTurtle");
        let parameters = Map::new();
        let prompt = format!("End with ```.\n```sparql\nSELECT ...\n```\n\ngraph:\n```turtle\n{AVIARY}\n```");
        let input = |class: &'static str, first_prompt: Option<&'static str>| {
            let version = crate::TaskClass::version_of(class).unwrap();
            (class, version, first_prompt)
        };
        let prompt: &'static str = Box::leak(prompt.into_boxed_str());
        let aviary = GraphLibrary::builder()
            .with("beastiary", rdf::RdfFormat::Turtle, || Ok(AVIARY.as_bytes().to_vec()))
            .build();
        let answer = "```\nSELECT ?b WHERE { ?b a zoo:Bird }\n```";
        for ((class, version, first_prompt), library) in [
            (input("Text2SparqlExecEvalListCoypuMini", Some(prompt)), GraphLibrary::default()),
            (input("Text2SparqlExecEvalListBeastiary", None), aviary),
        ] {
            let input = CaseInput {
                class,
                version,
                parameters: &parameters,
                data: &case,
                first_prompt,
                once: &ReadOnce::default(),
            };
            let exercise = crate::families::exercise(&input, &library, Compat::PUBLISHED).unwrap();
            let verdict = exercise.judge(answer, &Effort::full(EvaluationLimits::default()));
            assert_eq!(verdict.scores["combined"], 1.0, "{class}");
        }
        let missing = exercise_of("Text2SparqlExecEvalListBeastiary", &case, Compat::default()).err();
        assert_eq!(missing, Some(CaseError::MissingGraph { name: "beastiary".into() }));
        let deferred = GraphLibrary::builder().build_deferred();
        let missing = exercise_with("Text2SparqlExecEvalListBeastiary", &case, Compat::default(), &deferred);
        assert_eq!(missing.err(), Some(CaseError::MissingGraph { name: "beastiary".into() }));
        let missing = exercise_of("Text2SparqlExecEvalListCoypuMini", &case, Compat::default()).err();
        assert!(matches!(missing, Some(CaseError::Field { field: "graphTurtle", .. })), "{missing:?}");
    }

    #[test]
    fn a_deferred_graph_is_read_when_it_is_needed_and_judges_the_same() {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicUsize, Ordering};

        const CLASS: &str = "Text2SparqlExecEvalListBeastiary";
        let mut case = birds();
        case.remove("graphTurtle");
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        let builder = GraphLibrary::builder().with("beastiary", rdf::RdfFormat::Turtle, move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(AVIARY.as_bytes().to_vec())
        });
        let exercise = exercise_with(CLASS, &case, Compat::default(), &builder.build_deferred()).unwrap();
        assert_eq!(
            exercise.shots(),
            exercise_of("Text2SparqlList", &birds(), Compat::default()).unwrap().shots()
        );
        assert_eq!(reads.load(Ordering::Relaxed), 0);
        let answer = "```\nSELECT ?b WHERE { ?b a zoo:Bird }\n```";
        let effort = Effort::full(EvaluationLimits::default());
        assert_eq!(exercise.judge(answer, &effort), judge_with(&birds(), answer, &effort));
        exercise.prepare().unwrap();
        assert_eq!(reads.load(Ordering::Relaxed), 1);

        let broken = GraphLibrary::builder()
            .with("beastiary", rdf::RdfFormat::Turtle, || Err("no such file".to_owned()))
            .build_deferred();
        let exercise = exercise_with(CLASS, &case, Compat::default(), &broken).unwrap();
        assert!(matches!(exercise.prepare(), Err(CaseError::BadGraph { .. })));
    }
}
