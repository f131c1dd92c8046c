//! Templates of prompts, filled when a file is compiled: a template takes bounded steps, makes a bounded text, and reads
//! nothing but the fields of its case.

use std::rc::Rc;
use std::sync::Arc;

use minijinja::value::{Serde, Value as TemplateValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use rdf::PrefixTable;
use serde_json::{Map, Value};

use crate::task_files::mistake::hint;

/// Most steps of one template.
const STEPS_MAX: u64 = 200_000;

/// Deepest nesting within a template.
const NESTING_MAX: usize = 64;

/// Longest prompt, in bytes.
const PROMPT_BYTES_MAX: usize = 1 << 20;

/// The functions that templates may call.
const FUNCTIONS: [&str; 4] = ["graph", "prefixes", "fence", "schema"];

/// What a template may see of a case.
pub(crate) struct PromptInput<'a> {
    /// The fields that prompts may show.
    pub(crate) fields: &'a Map<String, Value>,
    /// The graph as it is shown; empty if the case has none.
    pub(crate) graph: Rc<str>,
    /// Which classes of it have which properties.
    pub(crate) schema: &'a dyn Fn() -> String,
    pub(crate) prefixes: &'a PrefixTable,
}

/// The names that a template uses and that must be fields of its case.
///
/// # Errors
/// The template cannot be read.
pub(crate) fn names_of(template: &str) -> Result<Vec<String>, String> {
    let environment = environment();
    let parsed = environment.template_from_str(template).map_err(|error| explained(&error))?;
    let names = parsed.undeclared_variables(false);
    let mut names: Vec<String> =
        names.into_iter().filter(|name| !FUNCTIONS.contains(&name.as_str())).collect();
    names.sort();
    Ok(names)
}

/// How often a template shows a name by itself: `{{ name }}`.
pub(crate) fn uses_of(name: &str, template: &str) -> usize {
    let shown = template.split("{{").skip(1).filter_map(|rest| rest.split("}}").next());
    shown.filter(|shown| shown.trim_matches(|c: char| c == '-' || c.is_whitespace()) == name).count()
}

/// Fills a template for one case.
///
/// # Errors
/// The template cannot be read, names what the case does not have, takes too many steps, or becomes too long.
pub(crate) fn fill(template: &str, input: &PromptInput<'_>) -> Result<String, String> {
    let mut environment = environment();
    // Values of functions must outlive the template, so they own what they give.
    let (graph, prefixes): (Arc<str>, PrefixTable) = (Arc::from(&*input.graph), input.prefixes.clone());
    environment.add_function("graph", move || TemplateValue::from(&graph));
    if template.contains("schema") {
        let schema: Arc<str> = (input.schema)().into();
        environment.add_function("schema", move || TemplateValue::from(&schema));
    }
    environment.add_function("prefixes", move |language: &str| -> Result<String, Error> {
        let line = |(prefix, namespace): (&str, &str)| match language {
            "sparql" => Ok(format!("PREFIX {prefix}: <{namespace}>")),
            "turtle" => Ok(format!("@prefix {prefix}: <{namespace}> .")),
            other => Err(Error::new(
                ErrorKind::InvalidOperation,
                format!("prefixes() writes \"sparql\" or \"turtle\", not \"{other}\""),
            )),
        };
        Ok(prefixes.iter().map(line).collect::<Result<Vec<_>, _>>()?.join("\n"))
    });
    environment.add_function("fence", |text: &str, language: &str| {
        format!("```{language}\n{}\n```", text.trim_end())
    });
    let parsed = environment.template_from_str(template).map_err(|error| explained(&error))?;
    // A field of a function's name would take its place.
    let mut fields = input.fields.clone();
    fields.retain(|name, _| !FUNCTIONS.contains(&name.as_str()));
    let filled = parsed.render(TemplateValue::from(Serde(&fields))).map_err(|error| {
        if error.kind() != ErrorKind::UndefinedError {
            return explained(&error);
        }
        let names = names_of(template).unwrap_or_default();
        let missing = names.into_iter().filter(|name| !input.fields.contains_key(name));
        let missing: Vec<String> = missing.map(|name| format!("`{name}`")).collect();
        format!("uses what the case does not have: {}", missing.join(", "))
    })?;
    if filled.len() > PROMPT_BYTES_MAX {
        return Err(format!("is {} bytes long; 1 MiB is the most", filled.len()));
    }
    if filled.trim().is_empty() {
        return Err("is empty".to_owned());
    }
    Ok(filled.trim().to_owned())
}

fn environment<'e>() -> Environment<'e> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(STEPS_MAX));
    environment.set_recursion_limit(NESTING_MAX);
    // Prompts are no HTML.
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_formatter(|out, state, value| {
        if value.kind() == ValueKind::Plain {
            let message = "a function is used without its brackets, as in `graph()`; a field of the same name needs another \
                           one, which `cases.fields` gives";
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
        minijinja::escape_formatter(out, state, value)
    });
    environment
}

fn explained(error: &Error) -> String {
    let line = error.line().map(|line| format!(" in its line {line}")).unwrap_or_default();
    match error.kind() {
        ErrorKind::OutOfFuel => format!("needs more than {STEPS_MAX} steps"),
        _ => {
            let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
            format!("cannot be worded{line}: {detail}")
        }
    }
}

/// A message for a name that no case has.
pub(crate) fn unknown_name(name: &str, fields: &[String]) -> String {
    format!(
        "`{name}` is no field of the cases{}",
        hint(name, fields.iter().map(String::as_str).chain(FUNCTIONS))
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(template: &str) -> Result<String, String> {
        let fields = json!({"question": "Who?", "names": ["a", "b"], "prefixes": "of the case"});
        let mut prefixes = PrefixTable::new();
        prefixes.insert("", "http://e/");
        let input = PromptInput {
            fields: fields.as_object().unwrap(),
            graph: ":a :b :c .".into(),
            schema: &|| ":C :p :D 1".to_owned(),
            prefixes: &prefixes,
        };
        fill(template, &input)
    }

    #[test]
    fn templates_see_fields_and_the_graph() {
        assert_eq!(
            filled("{{ question }} {{ names | join(\", \") }}\n{{ fence(graph(), \"turtle\") }}").unwrap(),
            "Who? a, b\n```turtle\n:a :b :c .\n```"
        );
        assert_eq!(filled("{{ prefixes(\"sparql\") }}").unwrap(), "PREFIX : <http://e/>");
        assert_eq!(filled("{{ schema() }}").unwrap(), ":C :p :D 1");
        // A field that is called like a function is not in its way.
        assert_eq!(filled("{{ prefixes(\"turtle\") }}").unwrap(), "@prefix : <http://e/> .");
        assert!(filled("{{ prefixes }}").unwrap_err().contains("without its brackets, as in `graph()`"));
        assert_eq!(filled("{{ \"<b>\" }}").unwrap(), "<b>", "nothing is escaped");
        assert_eq!(
            names_of("{{ question }}{% for n in names %}{{ n }}{% endfor %}{{ graph() }}").unwrap(),
            ["names", "question"]
        );
    }

    #[test]
    fn hostile_templates_end_and_say_why() {
        for (template, expected) in [
            ("{{ qestion }}", "qestion"),
            (
                "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
                "200000 steps",
            ),
            ("{% for a in range(9000) %}{{ \"0123456789abcdef\" * 1000 }}{% endfor %}", ""),
            ("{% include \"other\" %}", "cannot be worded"),
            ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "cannot be worded"),
            ("{{ prefixes(\"xml\") }}", "not \"xml\""),
            ("{{ question", "cannot be worded"),
            ("{{ \"\" }}", "empty"),
        ] {
            let message = filled(template).unwrap_err();
            assert!(message.contains(expected), "{template}: {message}");
        }
        let nested = format!("{}{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(filled(&format!("{{{{ {nested} }}}}")).is_err());
    }

    #[test]
    fn a_near_field_is_offered() {
        let message = unknown_name("qestion", &["question".to_owned()]);
        assert_eq!(message, "`qestion` is no field of the cases; did you mean `question`?");
    }
}
