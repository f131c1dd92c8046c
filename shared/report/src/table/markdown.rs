//! Tables as Markdown, with their notes below.

use std::io::{self, Write};

use super::{Align, Table, TopPlace, printable};

impl Table {
    /// Writes the table as Markdown.
    pub fn write_markdown(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.title.is_empty() {
            writeln!(out, "### {}\n", cell(&self.title))?;
        }
        let line = |cells: &[String], out: &mut dyn Write| writeln!(out, "| {} |", cells.join(" | "));
        line(&self.headings.iter().map(|heading| cell(&heading.name)).collect::<Vec<_>>(), out)?;
        let rule = |align| match align {
            Align::Left => "---".to_owned(),
            Align::Right => "---:".to_owned(),
        };
        line(&self.headings.iter().map(|heading| rule(heading.align)).collect::<Vec<_>>(), out)?;
        for (index, row) in self.rows.iter().enumerate() {
            let last = self.total && index + 1 == self.rows.len();
            let shown = row.iter().map(|found| placed(cell(&found.shown()), found.place()));
            let cells: Vec<String> = if last {
                shown.map(|text| if text.is_empty() { text } else { format!("**{text}**") }).collect()
            } else {
                shown.collect()
            };
            line(&cells, out)?;
        }
        for note in &self.notes {
            writeln!(out, "\n{}", cell(note))?;
        }
        Ok(())
    }
}

/// The best in bold, the second underlined.
fn placed(text: String, place: Option<TopPlace>) -> String {
    match place {
        None => text,
        Some(TopPlace::First) => format!("**{text}**"),
        Some(TopPlace::Second) => format!("<u>{text}</u>"),
    }
}

/// A text that stays in its cell and contains no markup.
fn cell(text: &str) -> String {
    let mut escaped = String::new();
    for c in printable(text).chars() {
        match c {
            '\n' | '\t' => escaped.push(' '),
            '|' | '*' | '_' | '`' | '[' | ']' | '<' | '>' | '\\' => {
                escaped.push('\\');
                escaped.push(c);
            }
            _ => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use crate::table::tests::example;

    #[test]
    fn markup_in_cells_stays_text() {
        let mut out = Vec::new();
        example().write_markdown(&mut out).unwrap();
        let expected = "### Example\n\n| task | n | mean |\n| --- | ---: | ---: |\n| a\\|b | 20 | 0.123 |\n\
                        | =1+1 | - | 0.500 (7/20) |\n| **all** | **20** | **-** |\n\nRead with care.\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
