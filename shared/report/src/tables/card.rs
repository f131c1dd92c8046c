//! Model cards: the results of one model, in Markdown.

use std::io::{self, Write};

use crate::analysis::scheme::Scheme;
use crate::dialogues::{Column, ColumnId, Dialogues, Origin};
use crate::table::{Table, printable};
use crate::tables::sources;
use crate::views::{combined, preferences, statistics};

/// Writes the card of a model.
pub fn write(all: &Dialogues, column: ColumnId, schemes: &[&Scheme], out: &mut dyn Write) -> io::Result<()> {
    let Column { name, origin, exercises, size, active, family, model } = &all.columns[column];
    let origin = match origin {
        Origin::Published => "published result files of LLM-KG-Bench".to_owned(),
        Origin::Exported => "result files of kgfleet".to_owned(),
        Origin::Run(run) => format!("run {run}"),
    };
    writeln!(out, "# {}\n", plain(name))?;
    writeln!(out, "- Asked for as: {}\n- Family: {}", plain(model), plain(family))?;
    if let Some(size) = size {
        let active = active.map_or(String::new(), |active| format!(", {active} of them active"));
        writeln!(out, "- Billions of parameters, as its name states them: {size}{active}")?;
    }
    writeln!(out, "- From: {origin}\n- Exercises: {exercises}\n")?;
    let one = all.clone().select(|other| other == &all.columns[column], |_| true);
    let mut tables: Vec<Table> = vec![statistics::by_model(&one)];
    tables.extend(schemes.iter().map(|scheme| combined::table(&one, scheme)));
    tables.extend([preferences::tests(&one), statistics::by_task(&one), sources::configuration(&one)]);
    for table in tables.iter().filter(|table| !table.rows().is_empty()) {
        table.write_markdown(out)?;
        writeln!(out)?;
    }
    Ok(())
}

/// The text on one line and without markup.
fn plain(text: &str) -> String {
    printable(text).replace(['\n', '`', '<', '>', '[', ']', '*'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::scheme::bundled;
    use crate::dialogues::testing::matrix;

    #[test]
    fn a_card_is_about_one_model() {
        let all = matrix(&["ours", "rival"], &["T-turtle", "T-jsonld"], 5, |_, _, n| f64::from(n) / 5.0);
        let schemes = bundled();
        let mut out = Vec::new();
        write(&all, 0, &[&schemes[0]], &mut out).unwrap();
        let card = String::from_utf8(out).unwrap();
        assert!(card.starts_with("# ours\n") && !card.contains("rival"), "{card}");
        assert!(card.contains("### Tests of formats") && !card.contains("SPARQL capabilities"));
    }
}
