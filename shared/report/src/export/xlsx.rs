//! Both [`tables`](super::table) as an Excel workbook: a summary, the dialogues, the scores, and the list of
//! provenances. Rows go to temporary files first, so that memory does not grow with their number.

use std::collections::BTreeMap;
use std::io::{Seek, Write};

use domain::Provenance;
use results::log::LogError;
use results::{RunManifest, Summary};
use rust_xlsxwriter::{Format, Workbook, Worksheet, XlsxError};

use super::ExportError;
use super::table::Layout;
use crate::export::rows::Provenances;
use crate::table::xlsx::{SheetRows, cell_text, excel_time, write_headings};

/// Excel's format of dates.
const DATE: &str = "yyyy-mm-dd hh:mm:ss";

/// Width of a column of texts, in characters.
const TEXT_WIDTH: f64 = 24.0;

/// Writes the workbook, and counts its dialogues; `layouts` are the wide and the long form.
pub fn write(
    writer: impl Write + Seek + Send,
    run: &RunManifest,
    layouts: &[Layout<'_>; 2],
    records: impl Iterator<Item = Result<Summary, LogError>>,
) -> Result<u64, ExportError> {
    let failed = |error: XlsxError| ExportError::Format { format: "XLSX", message: error.to_string() };
    let mut workbook = Workbook::new();
    workbook.add_worksheet().set_name("summary").map_err(failed)?;
    let date = Format::new().set_num_format(DATE);
    let [wide, long] = layouts;
    let mut sheets = [
        SheetRows::new(&mut workbook, "dialogues", wide.columns()).map_err(failed)?,
        SheetRows::new(&mut workbook, "scores", long.columns()).map_err(failed)?,
    ];
    let mut provenances = Provenances::default();
    let mut dialogues = 0;
    let mut outcomes: BTreeMap<String, u64> = BTreeMap::new();
    for record in records {
        let record = record?;
        dialogues += 1;
        let outcome = match record.outcome.failure() {
            None => record.outcome.state().to_owned(),
            Some(cause) => format!("{}: {cause}", record.outcome.state()),
        };
        *outcomes.entry(outcome).or_default() += 1;
        let provenance = provenances.number(&record.provenance);
        for (sheets, layout) in sheets.iter_mut().zip(layouts) {
            layout.rows(&record, provenance, |row| sheets.row(&mut workbook, row)).map_err(failed)?;
        }
    }
    write_provenances(workbook.add_worksheet(), &provenances).map_err(failed)?;
    let first = workbook.worksheet_from_index(0).map_err(failed)?;
    write_summary(first, run, &outcomes, layouts, &date).map_err(failed)?;
    workbook.save_to_writer(writer).map_err(failed)?;
    Ok(dialogues)
}

/// Writes the sheet with the run's facts, the outcomes of its dialogues and the meaning of the columns.
fn write_summary(
    sheet: &mut Worksheet,
    run: &RunManifest,
    outcomes: &BTreeMap<String, u64>,
    layouts: &[Layout<'_>; 2],
    date: &Format,
) -> Result<(), XlsxError> {
    let bold = Format::new().set_bold();
    let name = run.configuration.get("name").and_then(|name| name.as_str()).unwrap_or_default();
    let packs: Vec<String> = run.packs.iter().map(|pack| format!("{} {}", pack.name, pack.hash)).collect();
    let texts = [
        ("run", run.run.as_str()),
        ("name", name),
        ("kgfleet", &run.kgfleet),
        ("packs", &packs.join(", ")),
        ("configuration", &run.configuration_hash),
        ("plan", &run.plan_hash),
    ];
    let mut row = 0;
    sheet.set_column_width(0, TEXT_WIDTH)?.set_column_width(1, 2.0 * TEXT_WIDTH)?;
    for (name, text) in texts {
        sheet.write_string_with_format(row, 0, name, &bold)?;
        sheet.write_string(row, 1, cell_text(text))?;
        row += 1;
    }
    sheet.write_string_with_format(row, 0, "started", &bold)?;
    sheet.write_datetime_with_format(row, 1, excel_time(run.created_at)?, date)?;
    row += 1;
    let planned = ("planned", run.planned_dialogues);
    let counts = outcomes.iter().map(|(name, count)| (name.as_str(), *count));
    for (name, count) in std::iter::once(planned).chain(counts) {
        sheet.write_string_with_format(row, 0, name, &bold)?;
        sheet.write_number(row, 1, count as f64)?;
        row += 1;
    }
    let [wide, long] = layouts;
    for (name, layout) in [("dialogues", wide), ("scores", long)] {
        row += 1;
        sheet.write_string_with_format(row, 0, format!("columns of {name}"), &bold)?;
        row += 1;
        for column in layout.columns() {
            sheet.write_string(row, 0, cell_text(&column.name))?;
            sheet.write_string(row, 1, column.meaning)?;
            row += 1;
        }
    }
    Ok(())
}

fn write_provenances(sheet: &mut Worksheet, provenances: &Provenances) -> Result<(), XlsxError> {
    type Field = (&'static str, fn(&Provenance) -> Option<&str>);
    const FIELDS: [Field; 9] = [
        ("task_class", |of| Some(&of.task.class)),
        ("task_version", |of| Some(&of.task.version)),
        ("pack", |of| Some(&of.task.pack)),
        ("pack_hash", |of| Some(&of.task.pack_hash)),
        ("connector", |of| Some(&of.model.connector)),
        ("model_requested", |of| Some(&of.model.requested)),
        ("model_reported", |of| of.model.reported.as_deref()),
        ("kgfleet", |of| Some(&of.kgfleet)),
        ("scorer", |of| Some(&of.task.scorer)),
    ];
    sheet.set_name("provenance")?;
    sheet.set_freeze_panes(1, 1)?;
    write_headings(sheet, std::iter::once("provenance").chain(FIELDS.iter().map(|(name, _)| *name)))?;
    for (provenance, row) in provenances.iter().zip(1..) {
        sheet.write_number(row, 0, f64::from(row))?;
        for ((_, field), column) in FIELDS.iter().zip(1..) {
            if let Some(text) = field(provenance) {
                sheet.write_string(row, column, cell_text(text))?;
            }
        }
    }
    Ok(())
}
