//! The content of a dashboard, independent of Grafana's format.

pub struct Dashboard {
    /// Name of its file and its address.
    pub uid: &'static str,
    pub title: &'static str,
    /// The question that it answers.
    pub about: &'static str,
    pub variables: &'static [Variable],
    pub rows: &'static [PanelRow],
}

/// Something that a reader chooses. Its name is that of the label that it chooses by.
#[derive(Clone, Copy)]
pub struct Variable {
    pub name: &'static str,
    pub label: &'static str,
    /// The metric whose values of the label are offered.
    pub from: &'static str,
    pub choice: VariableChoice,
}

/// How many values a reader may choose.
#[derive(Clone, Copy, PartialEq)]
pub enum VariableChoice {
    /// Several, or all: also the series without the label.
    Several,
    /// One; those with the largest value of the metric are offered first.
    Latest,
}

/// Panels under one heading.
pub struct PanelRow {
    pub title: &'static str,
    pub panels: &'static [Panel],
}

/// How values are drawn.
#[derive(Clone, Copy, PartialEq)]
pub enum PanelKind {
    /// One number, or a few.
    Stat,
    /// The name of the series that has a value, such as a phase.
    Word,
    /// Lines over time.
    Lines,
    /// Areas on top of each other.
    Stacked,
    /// For each series, a bar over time that is coloured by what the value stands for.
    States(&'static [(u32, &'static str, &'static str)]),
    /// Horizontal bars of the values now.
    Bars,
    /// Rows of labels and values now.
    Table,
    /// A coloured table of one label by another.
    Matrix { rows: &'static str, columns: &'static str },
}

/// The unit of a value.
#[derive(Clone, Copy, PartialEq)]
pub enum Is {
    Number,
    PerSecond,
    Seconds,
    Bytes,
    /// 0 to 1.
    Share,
    /// 0 or 1, and 1 is bad.
    Fault,
}

pub struct Panel {
    pub title: &'static str,
    pub help: &'static str,
    pub kind: PanelKind,
    pub is: Is,
    /// Columns of 24.
    pub width: u32,
    /// Expressions, each with the legend of its series; in a table, with the name of the column of its values.
    pub queries: &'static [(&'static str, &'static str)],
    /// From which values on the colour says that something is wrong, in their order.
    pub steps: &'static [ColourStep],
    /// Below the first of them.
    pub base: &'static str,
    /// Whether a panel without series shows that nothing is wrong.
    pub none_is_good: bool,
    /// Whether its series lead to the servers of their model.
    pub leads_to_servers: bool,
}

/// From this value on, this colour.
#[derive(Clone, Copy)]
pub struct ColourStep(pub f64, pub &'static str);

pub const RELEASE: Variable = several("release", "Release", "kgfleet_build_info");
pub const RUN: Variable = Variable {
    name: "run",
    label: "Run",
    from: "kgfleet_run_created_timestamp_seconds",
    choice: VariableChoice::Latest,
};
pub const MODEL: Variable = several("model", "Model", "kgfleet_run_model_remaining_dialogues");
pub const POOL: Variable = several("pool", "Pool", "kgfleet_worker_phase");
pub const INSTANCE: Variable = several("instance", "Pod or process", "kgfleet_build_info");
pub const SERVES: Variable = several("serves", "Served model", "kgfleet_worker_concurrency_limit");

const fn several(name: &'static str, label: &'static str, from: &'static str) -> Variable {
    Variable { name, label, from, choice: VariableChoice::Several }
}

/// A panel in short.
pub const fn panel(
    title: &'static str,
    kind: PanelKind,
    is: Is,
    width: u32,
    help: &'static str,
    queries: &'static [(&'static str, &'static str)],
) -> Panel {
    let none: &[ColourStep] = &[];
    let steps = if matches!(is, Is::Fault) { &[ColourStep(1.0, "red")] } else { none };
    let base = if matches!(is, Is::Fault) { "green" } else { "blue" };
    let none_is_good = matches!(is, Is::Fault);
    Panel { title, help, kind, is, width, queries, steps, base, none_is_good, leads_to_servers: false }
}

impl Panel {
    /// Says by colours which values are good.
    pub const fn with(self, base: &'static str, steps: &'static [ColourStep]) -> Self {
        Self { steps, base, ..self }
    }

    /// Says that nothing is wrong where it has no series.
    pub const fn none_is_good(self) -> Self {
        Self { none_is_good: true, ..self }
    }

    /// Leads from each series to the servers of its model.
    pub const fn to_servers(self) -> Self {
        Self { leads_to_servers: true, ..self }
    }
}

/// The expression for the readers of a dashboard: each series is restricted to what they chose.
pub fn chosen(expression: &str, variables: &[Variable]) -> String {
    let mut written = String::with_capacity(expression.len() * 2);
    let mut rest = expression;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic()) {
        let end = rest[start..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let end = end.map_or(rest.len(), |end| start + end);
        let name = &rest[start..end];
        written.push_str(&rest[..end]);
        rest = &rest[end..];
        let selectors: Vec<String> = variables
            .iter()
            .filter(|variable| is_chosen_by(name, variable.name))
            .map(|variable| format!("{0}=~\"${0}\"", variable.name))
            .collect();
        if selectors.is_empty() {
            continue;
        }
        let selectors = selectors.join(", ");
        match rest.strip_prefix('{') {
            Some(more) => {
                written.push_str(&format!("{{{selectors}, "));
                rest = more;
            }
            None => written.push_str(&format!("{{{selectors}}}")),
        }
    }
    written.push_str(rest);
    written
}

/// Whether series of this name are restricted by a variable of that name, which the expression does not name itself.
fn is_chosen_by(series: &str, variable: &str) -> bool {
    let of_server = series.starts_with("kgfleet_server_")
        || ["kgfleet_worker_inflight", "kgfleet_worker_concurrency"]
            .iter()
            .any(|one| series.starts_with(one));
    let of_worker = series.starts_with("kgfleet_worker_") || series.starts_with("kgfleet_server_");
    let of_process = ["kgfleet_build_info", "process_"].iter().any(|one| series.starts_with(one));
    let ours = series.starts_with("kgfleet_") || of_process || series == "ALERTS";
    match variable {
        "release" => ours || series == "scrape_samples_scraped",
        "pool" => of_worker,
        "instance" => of_worker || of_process,
        "serves" => of_server,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_is_restricted_to_what_was_chosen() {
        let all = [RELEASE, POOL, INSTANCE, SERVES];
        for (expression, expected) in [
            ("max(kgfleet_workers)", "max(kgfleet_workers{release=~\"$release\"})"),
            (
                "sum by (run) (rate(kgfleet_worker_rounds_total{kind=\"first\"}[5m])) > 0",
                "sum by (run) (rate(kgfleet_worker_rounds_total{release=~\"$release\", pool=~\"$pool\", \
                 instance=~\"$instance\", kind=\"first\"}[5m])) > 0",
            ),
            (
                "a / kgfleet_server_up",
                "a / kgfleet_server_up{release=~\"$release\", pool=~\"$pool\", instance=~\"$instance\", \
                 serves=~\"$serves\"}",
            ),
        ] {
            assert_eq!(chosen(expression, &all), expected);
        }
        assert_eq!(chosen("max(kgfleet_workers)", &[RUN]), "max(kgfleet_workers)");
    }
}
