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

/// Something that a reader chooses.
#[derive(Clone, Copy)]
pub struct Variable {
    pub name: &'static str,
    pub label: &'static str,
    /// The metric and the label whose values are offered.
    pub from: (&'static str, &'static str),
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
    /// Expressions, each with the legend of its series.
    pub queries: &'static [(&'static str, &'static str)],
}

pub const RUN: Variable = Variable { name: "run", label: "Run", from: ("kgfleet_run_dialogues", "run") };
pub const MODEL: Variable =
    Variable { name: "model", label: "Model", from: ("kgfleet_run_model_remaining_dialogues", "model") };
pub const NODE: Variable = Variable { name: "node", label: "Node", from: ("kgfleet_build_info", "instance") };

/// A panel in short.
pub const fn panel(
    title: &'static str,
    kind: PanelKind,
    is: Is,
    width: u32,
    help: &'static str,
    queries: &'static [(&'static str, &'static str)],
) -> Panel {
    Panel { title, help, kind, is, width, queries }
}
