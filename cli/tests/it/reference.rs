//! The pages of `docs/reference` are made from the program itself and must not lag behind it.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};

use crate::harness::kept_text::compare;

const METRICS_HEAD: &str = "\
# Metrics

<!-- Made by `KGFLEET_BLESS=1 cargo test -p cli --test it reference`; edit the tables in coordinator/src/metrics/table.rs and worker/src/metrics/table.rs instead. -->

What `/metrics` of a coordinator and of a worker tells, in Prometheus's text format. Labels come from configurations,
closed lists and the names of runs that are not over; no metric has more than 5000 series in one process. How to read
them together, and what to do when something is wrong: [monitoring.md](../monitoring.md).
";

const HEAD: &str = "\
# Command line

<!-- Made by `KGFLEET_BLESS=1 cargo test -p cli --test it reference`; edit the doc comments in cli/src/verbs instead. -->

Standard output is data, standard error is talk. Exit codes are explained in [exit-codes.md](../exit-codes.md).
";

#[test]
fn the_reference_describes_the_command_line() {
    let mut root = cli::command_line();
    root.build();
    compare("docs/reference/cli.md", &page(&root), "reference");
}

#[test]
fn the_reference_describes_the_metrics() {
    let mut made = METRICS_HEAD.to_owned();
    let every = [service_kit::metrics::DEFINITIONS, service_kit::metrics::process::DEFINITIONS].concat();
    for (who, table) in [
        ("Coordinator", coordinator::metrics::DEFINITIONS),
        ("Worker", worker::metrics::DEFINITIONS),
        ("Conductor", conductor::metrics::DEFINITIONS),
        ("Every process", &every),
    ] {
        assert_eq!(service_kit::metrics::violations(table), [""; 0], "names and labels keep the conventions");
        writeln!(made, "\n## {who}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|").unwrap();
        for metric in table {
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let (name, kind) = (metric.name, metric.kind.as_str());
            writeln!(made, "| `{name}` | {kind} | {} | {} |", labels.join(", "), cell(metric.help)).unwrap();
        }
    }
    compare("docs/reference/metrics.md", &made, "reference");
}

/// The whole page.
fn page(root: &Command) -> String {
    let mut out = HEAD.to_owned();
    let verbs: Vec<&Command> = verbs(root).collect();
    out.push_str("\n| verb | what it does |\n|---|---|\n");
    for verb in &verbs {
        let name = verb.get_name();
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(out, "| [`{name}`](#kgfleet-{name}) | {about} |").unwrap();
    }
    out.push_str("\nOptions of every verb:\n\n| argument | meaning |\n|---|---|\n");
    for argument in root.get_arguments().filter(|argument| argument.is_global_set()) {
        writeln!(out, "| {} | {} |", cell(&synopsis(argument)), cell(&meaning(argument))).unwrap();
    }
    for verb in verbs {
        section(verb, "kgfleet", 2, &mut out);
    }
    out
}

/// What a command offers, without what clap adds.
fn verbs(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
}

fn section(command: &Command, parent: &str, level: usize, out: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    writeln!(out, "\n{} {name}\n", "#".repeat(level)).unwrap();
    let about = command.get_long_about().or_else(|| command.get_about());
    writeln!(out, "{}", about.map(ToString::to_string).unwrap_or_default().trim_end()).unwrap();
    let usage = command.clone().render_usage().to_string();
    writeln!(out, "\n```text\n{}\n```", usage.trim_start_matches("Usage: ").trim_end()).unwrap();
    let arguments: Vec<&Arg> =
        command.get_arguments().filter(|arg| is_ours(arg) && !arg.is_global_set()).collect();
    if !arguments.is_empty() {
        out.push_str("\n| argument | meaning |\n|---|---|\n");
        for argument in arguments {
            writeln!(out, "| {} | {} |", cell(&synopsis(argument)), cell(&meaning(argument))).unwrap();
        }
    }
    for verb in verbs(command) {
        section(verb, &name, level + 1, out);
    }
}

fn is_ours(argument: &Arg) -> bool {
    !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
}

/// How an argument is written.
fn synopsis(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let value = names.iter().map(|name| format!("<{name}>")).collect::<Vec<_>>().join(" ");
    match argument.get_long() {
        Some(long) if argument.get_action().takes_values() => format!("`--{long} {value}`"),
        Some(long) => format!("`--{long}`"),
        None if matches!(argument.get_action(), ArgAction::Append) => format!("`{value}...`"),
        None => format!("`{value}`"),
    }
}

/// What an argument says about itself, in one line.
fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut parts = vec![help.map(ToString::to_string).unwrap_or_default()];
    let values = argument.get_possible_values();
    if argument.get_action().takes_values() && !values.is_empty() {
        let names: Vec<String> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        parts.push(format!("One of {}.", names.join(", ")));
    }
    let defaults = argument.get_default_values();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        let defaults: Vec<String> = defaults.iter().map(|value| format!("`{}`", value.display())).collect();
        parts.push(format!("Default: {}.", defaults.join(", ")));
    }
    if let Some(variable) = argument.get_env() {
        parts.push(format!("Environment: `{}`.", variable.display()));
    }
    for part in parts.iter_mut().filter(|part| !part.is_empty() && !part.ends_with('.')) {
        part.push('.');
    }
    parts.join(" ")
}

/// A text as one cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
