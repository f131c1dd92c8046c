//! Task files from text to pack.

use std::path::{Path, PathBuf};

use packs::task_files::{CompiledFile, Mistakes, compile, is_task_file};

/// A folder with files.
struct Ground(tempfile::TempDir);

impl Ground {
    fn new(files: &[(&str, &str)]) -> Self {
        let ground = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            std::fs::write(ground.path(name), text).unwrap();
        }
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn compiled(&self, text: &str) -> Result<CompiledFile, Mistakes> {
        std::fs::write(self.path("t.toml"), text).unwrap();
        compile(&self.path("t.toml"))
    }

    /// The mistakes of a file, a line for each: `LINE:COLUMN: message`.
    fn refused(&self, text: &str) -> String {
        let refused = self.compiled(text).unwrap_err().to_string();
        refused.replace(&format!("{}:", self.path("t.toml").display()), "")
    }
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata").join(name)
}

const SMALL: &str = "task_file = 1\nname = 'small'\n[[task]]\nlabel = 'words'\nlike = 'answer-word'\n";
const CASE: &str = "[[task.case]]\nid = 'a'\nquestion = 'Which?'\nanswer = 'this'\n";

#[test]
fn the_eight_lines_make_a_pack_of_their_rows() {
    let ground = Ground::new(&[
        ("mine.ttl", "@prefix : <http://e/> . :a a :C ; :p 1 . :b a :C ; :p 2 ."),
        (
            "questions.jsonl",
            "{\"question\": \"Which?\", \"sparql\": \"SELECT ?x { ?x a :C }\"}\n\
             {\"question\": \"Is there one?\", \"sparql\": \"ASK { ?x a :C }\"}\n",
        ),
    ]);
    let text = "task_file = 1\nname = \"my-graph\"\ngraphs.mine.file = \"mine.ttl\"\n[[task]]\nlabel = \"mine-sparql\"\n\
                like = \"text-to-sparql\"\ngraph = \"mine\"\ncases.file = \"questions.jsonl\"\n";
    let compiled = ground.compiled(text).unwrap();
    assert_eq!(compiled.tasks[0].data.cases.len(), 2);
    let proofs = compiled.prove().unwrap();
    assert_eq!((proofs[0].references, &proofs[0].failures), (2, &vec![]));
    let again = ground.compiled(text).unwrap();
    assert_eq!(compiled.pack.hash(), again.pack.hash(), "the same bytes give the same pack");
    let report = packs::verify(&compiled.pack);
    assert!(report.is_clean(), "{:?}", report.findings);
    assert_eq!(report.answers_missing, 0, "simulated models know all answers");
    assert!(is_task_file(&ground.path("t.toml")) && !is_task_file(&ground.path("mine.ttl")));
    let prompt = compiled.tasks[0].data.cases[0].prompt["prompt"].as_str().unwrap().to_owned();
    assert!(prompt.contains("Question: Which?") && prompt.contains("```turtle"), "{prompt}");
}

#[test]
fn the_examples_score_what_they_say_and_no_hundredth_more() {
    for (file, tests, stated) in [
        ("lab-questions.toml", 1, vec!["score = 0.6\n", "rows = 0.5", "rows_recall = 0.5", "readable = 1"]),
        (
            "parcel-facts.toml",
            2,
            vec![
                "score = 1\n",
                "score = 0.6166667",
                "graph = 0.6666667",
                "rules = 0.5",
                "graph_recall = 0.625",
            ],
        ),
        ("loan-shapes.toml", 1, vec!["score = 0.6\n", "shapes_accept = 1", "shapes_reject = 0.6"]),
    ] {
        let text = std::fs::read_to_string(testdata(file)).unwrap();
        let compiled = Ground::new(&[]).compiled(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let proofs = compiled.prove().unwrap();
        let proof = &proofs[0];
        assert_eq!(
            (proof.tests_passed, proof.references, &proof.failures),
            (tests, 1, &vec![]),
            "{file}: {proof:?}"
        );
        assert!(packs::verify(&compiled.pack).is_clean(), "{file}");
        for stated in stated {
            let (name, value) = stated.trim().split_once(" = ").unwrap();
            let changed = format!(
                "{name} = {}{}",
                value.parse::<f64>().unwrap() - 0.01,
                if stated.ends_with('\n') { "\n" } else { "" }
            );
            assert!(text.contains(stated), "{file} says {stated}");
            let changed =
                Ground::new(&[]).compiled(&text.replacen(stated, &changed, 1)).unwrap().prove().unwrap();
            assert_eq!(changed[0].failures.len(), 1, "{file}: {stated}");
        }
    }
}

#[test]
fn a_proof_shows_which_parts_of_an_answer_are_not_measured() {
    let proofs = compile(&testdata("loan-shapes.toml")).unwrap().prove().unwrap();
    assert_eq!((proofs[0].mutants, proofs[0].mutants_right), (9, 4), "{:?}", proofs[0].notes);
    assert_eq!(
        proofs[0].notes,
        [
            "4 of 9 reference answers with one part less score 1, so these parts are not measured: `loan`: :item sh:minCount 1; \
          `loan`: :due sh:maxCount 1; `loan`: :fee sh:maxCount 1; `loan`: :fee sh:datatype xsd:decimal"
        ]
    );
    let proofs = compile(&testdata("lab-questions.toml")).unwrap().prove().unwrap();
    assert_eq!((proofs[0].mutants, proofs[0].mutants_right), (1, 0), "{:?}", proofs[0].notes);
}

#[test]
fn shapes_that_find_no_node_in_any_reference_answer_are_noted() {
    let notes = |shape: &str| {
        let text = format!(
            "task_file = 1\nname = 's'\nprefixes.e = 'http://e/'\n[[task]]\nlabel = 'w'\nprompt = 'x'\nanswer.as = 'turtle'\n\
             [[task.check]]\nkind = 'graph'\nexpect.field = 'g'\n[[task.check]]\nkind = 'conforms'\nshapes = '{shape}'\n\
             [[task.case]]\nid = 'a'\ng = '[] a e:K ; e:p 1 .'\n"
        );
        let compiled = Ground::new(&[]).compiled(&text).unwrap_or_else(|error| panic!("{error}"));
        compiled.prove().unwrap()[0].notes.join("\n")
    };
    let idle = "the shapes of `conforms` find no node in any reference answer";
    let shape = "sh:property [ sh:path e:p ; sh:minCount 1 ] .";
    assert!(notes(&format!("e:K a owl:Class, sh:NodeShape ; {shape}")).contains(idle));
    assert!(!notes(&format!("e:S a sh:NodeShape ; sh:targetClass e:K ; {shape}")).contains(idle));
}

#[test]
fn every_preset_makes_a_task_whose_reference_answers_score_1() {
    let ground = Ground::new(&[]);
    for preset in &packs::task_files::presets::ALL {
        let value = |field: &str| match field {
            "sparql" => "'SELECT ?x { ?x a :C }'",
            "answers" => "['a', 'b']",
            "answer" => "'yes'",
            "records" => "[{ a = 1 }, { a = 2 }]",
            "facts" | "repaired" => "':a :p 1 ; :q 2 .'",
            "broken" => "':a :p 1 .'",
            "shapes" => "':S sh:targetSubjectsOf :p ; sh:property [ sh:path :q ; sh:minCount 1 ] .'",
            "accept" => "[':a :p 1 ; :q 2 .']",
            "reject" => "{ none = ':a :p 1 .' }",
            _ => "'some words'",
        };
        let fields: String =
            preset.needs.iter().map(|field| format!("{field} = {}\n", value(field))).collect();
        let text = format!(
            "task_file = 1\nname = 'p'\nprefixes = {{ '' = 'http://e/' }}\ngraphs.g.text = ':x a :C .'\n[[task]]\nlabel = 't'\n\
             like = '{}'\ngraph = 'g'\n[[task.case]]\nid = 'a'\n{fields}",
            preset.name
        );
        let compiled = ground.compiled(&text).unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        let proofs = compiled.prove().unwrap();
        assert_eq!((proofs[0].references, &proofs[0].failures), (1, &vec![]), "{}", preset.name);
    }
}

#[test]
fn mistakes_in_checks_over_documents_are_told_with_their_place() {
    let ground = Ground::new(&[("s.json", "{\"$ref\": \"#/x\"}")]);
    let task = |read_as: &str, check: &str, fields: &str| {
        format!(
            "task_file = 1\nname = 's'\n[[task]]\nlabel = 'w'\nprompt = 'x'\nanswer.as = '{read_as}'\n[[task.check]]\n{check}\n\
             [[task.case]]\nid = 'a'\n{fields}\n"
        )
    };
    for (text, expected) in [
        (
            task("turtle", "kind = 'graph'\nexpect.field = 'g'", "g = ':a'"),
            "10:1: case `a`, `g`: Parser error at line 1",
        ),
        (
            task("json", "kind = 'schema'\nschema_file = 's.json'", ""),
            "7:1: the check `schema`: version 1 has no `$ref` in schemas",
        ),
        (task("json", "kind = 'schema'", ""), "7:1: the check `schema` needs one of: schema, schema_file"),
        (
            task("turtle", "kind = 'assert'\nask.a = 'SELECT * {}'", ""),
            "7:1: the check `assert`: `a`: it is no ASK",
        ),
        (task("turtle", "kind = 'assert'", ""), "7:1: the check `assert` needs queries"),
        (
            task("turtle", "kind = 'conforms'", ""),
            "7:1: the check `conforms` needs one of: shapes, shapes_file, shapes_field",
        ),
        (
            task("turtle", "kind = 'conforms'\nshapes = '[] sh:sparql [] .'", ""),
            "7:1: the check `conforms`: `sh:sparql` is not SHACL Core",
        ),
        (task("shapes", "kind = 'shapes'", ""), "9:1: case `a`, `shapes`: the case has no field `accept`"),
        (
            task("turtle", "kind = 'graph'\nby = 'node'\nexpect.field = 'g'", "g = ''"),
            "9:6: `by` is no key of `graph`, which has: literals, blank, ignore",
        ),
        (
            task("text", "kind = 'conforms'\nshapes = ''", ""),
            "8:8: the check `conforms` cannot judge answers that are read as `text`: say what it reads in `answer.as`",
        ),
        (
            task("jsonld", "kind = 'graph'\nexpect.field = 'g'", "g = ''")
                .replace("answer.as", "answer.wrap = '{}'\nanswer.as"),
            "6:15: `wrap` does not say where the answer stands: `{{ answer }}`",
        ),
    ] {
        let refused = ground.refused(&text);
        assert!(refused.starts_with(expected), "{text}\n--- expected\n{expected}\n--- found\n{refused}");
    }
}

#[test]
fn examples_are_no_cases_and_prompts_show_the_part_around_a_node() {
    let ground = Ground::new(&[("shots.jsonl", "{\"question\": \"One?\", \"answer\": \"uno\"}\n")]);
    let cases: String = ["a", "b", "c"]
        .iter()
        .map(|id| {
            format!("[[task.case]]\nid = '{id}'\nquestion = 'Q{id}?'\nanswer = 'A{id}'\nnode = ':{id}'\n")
        })
        .collect();
    let task = |keys: &str| {
        format!(
            "task_file = 1\nname = 's'\nprefixes = {{ '' = 'http://e/' }}\ngraphs.g.text = ':a :p :b . :b :p :c . :c :p :d .'\n\
             [[task]]\nlabel = 'w'\nlike = 'answer-word'\ngraph = 'g'\n{keys}\n\
             prompt = '{{% for shot in shots %}}{{{{ shot.question }}}}{{{{ shot.answer }}}} {{% endfor %}}{{{{ question }}}} {{{{ graph() }}}}'\n{cases}"
        )
    };
    let prompts = |keys: &str| -> Vec<String> {
        let compiled = ground.compiled(&task(keys)).unwrap_or_else(|error| panic!("{error}"));
        let cases = &compiled.tasks[0].data.cases;
        cases.iter().map(|case| case.prompt["prompt"].as_str().unwrap().to_owned()).collect()
    };
    let own =
        prompts("few_shot = { n = 1, from_cases = true }\nshown = { as = 'nt', around = 'node', hops = 1 }");
    assert_eq!(own.len(), 2, "an example is no case");
    let line = |s: &str, o: &str| format!("<http://e/{s}> <http://e/p> <http://e/{o}> .");
    assert_eq!(own[0], format!("Qa?Aa Qb? {}\n{}", line("a", "b"), line("b", "c")));
    assert!(prompts("few_shot.file = 'shots.jsonl'")[0].starts_with("One?uno Qa? "));
    assert_eq!(
        prompts("few_shot = { n = 1, from_cases = true, pick = 'seeded' }"),
        prompts("few_shot = { n = 1, from_cases = true, pick = 'seeded' }"),
        "what is drawn depends on the file only"
    );
    for (keys, expected) in [
        ("few_shot = { n = 3, from_cases = true }", "with 3 examples from 3 cases, no case is left"),
        ("few_shot = { n = 1 }", "`few_shot` needs one of: file, from_cases = true"),
        ("few_shot = { n = 0, from_cases = true }", "`n` is 0; it must be between 1 and 50"),
        ("shown = { hops = 1 }", "`hops` needs `around`, the field of a node"),
        (
            "shown = { around = 'nodes' }",
            "case `a`: there is no `nodes`, the node around which the graph is shown",
        ),
    ] {
        let refused = ground.refused(&task(keys));
        assert!(refused.contains(expected), "{keys}: {refused}");
    }
}

#[test]
fn a_judge_may_see_what_checks_expect_and_no_model_under_test_does() {
    let judge = "[task.judge]\nquestion = 'Is {{ answer }} as good as {{ expected_word }}, asked {{ question }}'\n\
                 weight = 0.25\nwhen = 'imperfect'\n";
    let task = |judge: &str| {
        format!(
            "{SMALL}{judge}[[task.check]]\nkind = 'text'\nexpect.field = 'expected_word'\n{CASE}expected_word = 'this'\n"
        )
    };
    let ground = Ground::new(&[("judge.txt", "Grade {{ answer }}.")]);
    let case = |text: &str| ground.compiled(text).unwrap().tasks[0].data.cases[0].clone();
    let found = case(&task(judge));
    assert_eq!(
        found.data["judge"],
        serde_json::json!({"question": "Is {{answer}} as good as this, asked Which?", "weight": 0.25, "when": "imperfect"})
    );
    assert!(!found.prompt.contains_key("judge"), "{:?}", found.prompt);
    let found = case(&task("[task.judge]\nquestion_file = 'judge.txt'\n"));
    assert_eq!(
        found.data["judge"],
        serde_json::json!({"question": "Grade {{answer}}.", "weight": 0.5, "when": "readable"})
    );
    let found = case(&task("[task.judge]\nquestion = '{{ answer }}, and right is {{ case.answer }}'\n"));
    assert_eq!(found.data["judge"]["question"], "{{answer}}, and right is this");
    assert!(!case(&task("")).data.contains_key("judge"));
    for (judge, expected) in [
        ("[task.judge]\nweight = 0.5\n", "the judge needs one of: question, question_file"),
        (
            "[task.judge]\nquestion = 'Good?'\n",
            "`question` does not say where the answer stands: `{{ answer }}`",
        ),
        (
            "[task.judge]\nquestion = '{{ answer }} {{ qestion }}'\n",
            "`qestion` is no field of the cases; did you mean `question`?",
        ),
        (
            "[task.judge]\nquestion = '{{ answer }}'\nweight = 2\n",
            "`weight` is 2; it must be between 0 and 1",
        ),
        (
            "[task.judge]\nquestion = '{{ answer }}, and right is {{ answer }}'\n",
            "stands for what the model answered, 2 times here; the field of that name is `{{ case.answer }}`",
        ),
        (
            "[task.judge]\nquestion = '{{ answer }}'\nwhen = 'never'\n",
            "`when` is `never`; it may be: readable, imperfect, always",
        ),
    ] {
        let refused = ground.refused(&task(judge));
        assert!(refused.contains(expected), "{judge}: {refused}");
    }
}

#[test]
fn data_may_lie_deep_in_rows_of_any_format() {
    let ground = Ground::new(&[
        (
            "ck.yaml",
            "questions:\n  - id: q1\n    question: {en: Which?, de: Welche?}\n    query: {sparql: 'SELECT ?x { ?x a :C }'}\n  \
             - id: q2\n    question: {en: How many?}\n    query: {sparql: 'SELECT (COUNT(?x) AS ?n) { ?x a :C }'}\n",
        ),
        ("words.tsv", "id\tq\tanswer\tset\n1\tOne?\tuno\ttest\n2\tTwo?\tdos\ttrain\n3\tThree?\ttres\ttest\n"),
    ]);
    let text = "task_file = 1\nname = 'deep'\nprefixes = { '' = 'http://e/' }\ngraphs.g.text = ':a a :C .'\n\
        [[task]]\nlabel = 'ck'\nlike = 'text-to-sparql'\ngraph = 'g'\n\
        cases = { file = 'ck.yaml', rows = 'questions', fields = { question = 'question.en', sparql = 'query.sparql' } }\n\
        [[task]]\nlabel = 'words'\nlike = 'answer-word'\n\
        cases = { file = 'words.tsv', fields = { question = 'q' }, where = { set = 'test' }, skip = 1 }\n";
    let compiled = ground.compiled(text).unwrap();
    let ids = |task: usize| {
        compiled.tasks[task].data.cases.iter().map(|case| case.uid.as_str()).collect::<Vec<_>>()
    };
    assert_eq!((ids(0), ids(1)), (vec!["q1", "q2"], vec!["3"]));
    assert!(compiled.prove().unwrap().iter().all(|proof| proof.failures.is_empty()));
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let ground = Ground::new(&[
        (
            "q.jsonl",
            "{\"id\": \"q4\", \"question\": \"a\", \"answer\": \"b\"}\n{\"id\": \"q4\", \"question\": \"c\", \"answer\": \"d\"}\n",
        ),
        ("broken.jsonl", "{}\n{\"a\n"),
    ]);
    let small = |more: &str| format!("{SMALL}{more}");
    let with_case = |more: &str| format!("{SMALL}{more}{CASE}");
    let check = |rule: &str| {
        format!(
            "task_file = 1\nname = 's'\n[[task]]\nlabel = 'w'\nprompt = '{{{{ question }}}}'\n[[task.check]]\n{rule}{CASE}"
        )
    };
    let queries = |query: &str| {
        format!(
            "task_file = 1\nname = 's'\ngraphs.g.text = '<a:a> a <a:C>, <a:D> .'\n[[task]]\nlabel = 'w'\nlike = \
             'text-to-sparql'\ngraph = 'g'\n[[task.case]]\nid = 'a'\nquestion = 'Which?'\nsparql = '''{query}'''\n"
        )
    };
    for (text, expected) in [
        (
            "task_file = 2\nnew = 1".to_owned(),
            "1:13: this kgfleet reads version 1 of task files, and this is 2",
        ),
        ("name = 'x'".to_owned(), "1:1: a task file begins with `task_file = 1`"),
        (with_case("chek = 1\n"), "6:1: unknown key `chek` in [[task]]; did you mean `check`?"),
        (
            with_case("prompt = 'a'\nprompt = 'b'\n"),
            "7:1: the key `prompt` is given twice; the first is in line 6",
        ),
        (with_case("readable = '2'\n"), "6:12: `readable` is a text; a number from 0 is expected"),
        (with_case("rounds = 9\n"), "6:10: `rounds` is 9; it must be between 1 and 5"),
        (
            SMALL.replace("answer-word", "answer-wort") + CASE,
            "5:8: no preset `answer-wort`; did you mean `answer-word`? `kgfleet task show --presets` lists them",
        ),
        (
            format!("{SMALL}{CASE}[[task]]\nlabel = 'words'\nlike = 'answer-word'\n{CASE}"),
            "11:9: the label `words` is taken by the task in line 3",
        ),
        (with_case("graph = 'labs'\n"), "6:9: no graph `labs`; the file has: none"),
        (
            small("cases.file = '../gold.csv'\n"),
            "6:14: `../gold.csv` is outside of the folder of this file; put it below",
        ),
        (
            "task_file = 1\nname = 's'\ngraphs.lab.text = '''\n<a:a> a\n oops .'''\n[[task]]\n".to_owned(),
            "3:8: graph `lab`, line 2, column 2: oops is not a valid RDF object",
        ),
        (small("cases.file = 'broken.jsonl'\n"), "6:14: `broken.jsonl:2`: "),
        (
            small("cases = { file = 'q.jsonl', fields = { question = 'question.de' } }\n"),
            "6:40: row 1 has nothing at `question.de`; it has: id, question, answer",
        ),
        (small("cases.file = 'q.jsonl'\n"), "6:14: the cases 1 and 2 have the id `q4`"),
        (
            with_case("prompt = '{{ qestion }}'\n"),
            "6:10: `qestion` is no field of the cases; did you mean `question`?",
        ),
        (
            with_case("prompt = '{{ answer }}'\n"),
            "6:10: the prompt shows `answer`, which `text` expects: it gives the answer away. If that is meant: `reveal = \
             [\"answer\"]`",
        ),
        (
            with_case(
                "prompt = '{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}'\n",
            ),
            "6:10: the prompt of case `a` needs more than 200000 steps",
        ),
        (queries("SELECT ?x {"), "8:1: case `a`, `sparql`: line 1: Expected SelectQuery, found end of text"),
        (
            queries("SELECT ?x { SERVICE <http://e/> { ?x a ?c } }"),
            "8:1: case `a`, `sparql`: SERVICE reaches nothing here: a task has one graph and no network",
        ),
        (
            queries("SELECT ?x { ?x a <a:E> }"),
            "8:1: case `a`, `sparql`: the expected result is empty, so a query that finds nothing would be right; `empty_ok = \
             true` in its `[[task.check]]` if so",
        ),
        (
            queries("SELECT ?c { ?x a ?c } LIMIT 1"),
            "8:1: case `a`, `sparql`: the expected result depends on the order of triples (run again on a reordered graph: \
             other rows); add a key to ORDER BY",
        ),
        (
            check("kind = 'rows'\nexpect.field = 'answer'\n"),
            "7:8: the check `rows` cannot judge answers that are read as `text`: say what it reads in `answer.as`",
        ),
        (
            check("kind = 'text'\nwithin = 1\nexpect.field = 'answer'\n"),
            "8:10: `within` is no key of `text`, which has none of its own",
        ),
        (check("kind = 'text'\n"), "6:1: the check `text` needs `expect`"),
        (
            check("kind = 'pattern'\nmatches = '(?=a)'\n"),
            "8:11: the regular expression cannot be used: look-around",
        ),
        (
            check("kind = 'text'\nweight = 0\nexpect.field = 'answer'\n"),
            "6:1: the weights of the checks add up to 0",
        ),
        (
            with_case("rounds = 2\nfollow_up.syntax = 'See {{message}}'\n"),
            "7:20: the follow-up `syntax`: no value for the placeholder `{{message}}`; it may have {{finding.message}} and \
             {{answer}}",
        ),
        (
            with_case("[[task.test]]\ncase = 'b'\nanswer.text = 'x'\nscore = 1\n"),
            "7:8: no case has the id `b`",
        ),
    ] {
        let refused = ground.refused(&text);
        assert!(refused.starts_with(expected), "{text}\n--- expected\n{expected}\n--- found\n{refused}");
    }
    std::fs::write(ground.path("t.yaml"), "task_file: 1\n").unwrap();
    let yaml = compile(&ground.path("t.yaml")).unwrap_err().to_string();
    assert!(yaml.ends_with("t.yaml:1:1: a task file is TOML; data may be YAML: `cases.file`"), "{yaml}");
    let several = ground.refused(&with_case("rounds = 9\nreadable = 3\n"));
    assert_eq!(several.lines().count(), 2, "all mistakes at once: {several}");
}

#[test]
fn files_outside_of_the_folder_are_not_read_whatever_leads_there() {
    let ground = Ground::new(&[]);
    std::os::unix::fs::symlink("/etc/hostname", ground.path("link.csv")).unwrap();
    for path in ["/etc/hostname", "link.csv", "a/../../x.csv"] {
        let refused = ground.refused(&format!("{SMALL}cases.file = '{path}'\n"));
        assert!(refused.contains("is outside of the folder"), "{path}: {refused}");
    }
    let refused = ground.refused(&format!("{SMALL}cases.file = '.'\n"));
    assert!(refused.contains("not a regular file"), "{refused}");
}

#[test]
fn an_expected_value_is_in_no_prompt_unless_it_is_revealed() {
    let ground = Ground::new(&[]);
    let shown = format!("{SMALL}reveal = ['answer']\nprompt = '{{{{ answer }}}}?'\n{CASE}");
    let compiled = ground.compiled(&shown).unwrap();
    assert_eq!(compiled.tasks[0].data.cases[0].prompt["prompt"], "this?");
    let whole = format!("{SMALL}prompt = '{{% for a in self %}}{{% endfor %}}x'\n{CASE}");
    assert!(!ground.refused(&whole).is_empty(), "no way round by another name");
}

#[test]
fn cases_that_contradict_each_other_fail_the_proof() {
    let text = format!("{SMALL}{CASE}{}", CASE.replace("'a'", "'b'").replace("'this'", "'that'"));
    let proofs = Ground::new(&[]).compiled(&text).unwrap().prove().unwrap();
    let failures: Vec<&str> = proofs[0].failures.iter().map(|(_, message)| message.as_str()).collect();
    assert_eq!(failures, ["cases `a` and `b` have the same prompt and expect different things"]);
}
