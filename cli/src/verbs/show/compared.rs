//! Writes what a task expected and what was extracted from the answer.

use std::fmt::{self, Write};

use tasks::compared::{LineDifference, LineSide};
use tasks::{ComparedAnswer, ComparedPart};

use crate::kit::output::printable;
use crate::kit::screen::{Screen, Tint};

/// Writes each part with what differs.
pub(super) fn write(compared: &ComparedAnswer, screen: Screen, out: &mut String) -> fmt::Result {
    for part in &compared.parts {
        write_part(part, &compared.place, screen, out)?;
    }
    match &compared.reference {
        Some(reference) => section("an answer with full marks", reference, screen, out),
        None if compared.parts.is_empty() => {
            writeln!(out, "\nexpected: nothing that answers are compared with")
        }
        None => Ok(()),
    }
}

fn write_part(part: &ComparedPart, place: &str, screen: Screen, out: &mut String) -> fmt::Result {
    let ComparedPart { what, expected, extracted, .. } = part;
    let found = extracted.as_deref().unwrap_or("(nothing)");
    if part.is_met() {
        return section(&format!("expected and extracted {what}{place}"), found, screen, out);
    }
    if let Some(expected) = expected {
        section(&format!("expected {what}"), expected, screen, out)?;
    }
    section(&format!("extracted {what}{place}"), found, screen, out)?;
    part.difference().map_or(Ok(()), |difference| write_difference(difference, screen, out))
}

fn write_difference(difference: LineDifference<'_>, screen: Screen, out: &mut String) -> fmt::Result {
    writeln!(out, "\n{}", screen.heading("difference: - expected, + extracted"))?;
    for (side, line) in difference.lines {
        let line = printable(line);
        match side {
            LineSide::Both => writeln!(out, "  {line}")?,
            LineSide::Expected => writeln!(out, "{}", screen.tinted(&format!("- {line}"), Tint::Bad))?,
            LineSide::Extracted => writeln!(out, "{}", screen.tinted(&format!("+ {line}"), Tint::Good))?,
        }
    }
    if difference.left_out > 0 {
        writeln!(out, "  and {} lines more", difference.left_out)?;
    }
    Ok(())
}

fn section(title: &str, text: &str, screen: Screen, out: &mut String) -> fmt::Result {
    writeln!(out, "\n{}\n{}", screen.heading(&printable(title)), printable(text))
}
