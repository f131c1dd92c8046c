//! Writes tables in the formats of `--format`. A new format is a variant of [`TableFormat`] and its line in `write`;
//! the writers themselves are in `report::table`. Also reads what tables take besides: schemes and prices.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use report::Dialogues;
use report::analysis::scheme::{self, Scheme};
use report::costs::Prices;
use report::table::{Table, printable, write_workbook};
use report::tables::sources;

use crate::kit::exit_code::{Exit, usage};
use crate::kit::screen::Screen;
use crate::kit::whole_file;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableFormat {
    Text,
    Md,
    Csv,
    Json,
    Xlsx,
}

/// Checks whether a format can be written there.
///
/// # Errors
/// A workbook without a file.
pub fn check(format: TableFormat, out: Option<&Path>) -> anyhow::Result<()> {
    if format == TableFormat::Xlsx && out.is_none() {
        bail!(usage!("--format xlsx needs --out FILE"));
    }
    Ok(())
}

/// Reads a file and parses it.
///
/// # Errors
/// It cannot be read (exit code 3), or is invalid (2).
pub fn parsed<T, E: std::fmt::Display>(
    path: &Path,
    parse: impl Fn(&str) -> Result<T, E>,
) -> anyhow::Result<T> {
    parse(&whole_file::read_text(path)?).map_err(|error| usage!("{}: {error}", path.display()))
}

/// Which prices count.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PriceTable {
    /// Table of prices of tokens and GPU hours. Default: the one of this program, `deploy/costs/prices.toml` in its sources.
    #[arg(long = "prices", value_name = "FILE")]
    file: Option<PathBuf>,
}

impl PriceTable {
    /// Reads it.
    ///
    /// # Errors
    /// The file cannot be read, or is no table of prices.
    pub fn read(&self) -> anyhow::Result<Prices> {
        let Some(path) = &self.file else { return Ok(Prices::shipped()) };
        parsed(path, Prices::parse).map_err(Exit::usage)
    }
}

/// The schemes that come with the program, and those in a file.
pub fn schemes(file: Option<&Path>) -> anyhow::Result<Vec<Scheme>> {
    let mut schemes = Vec::new();
    if let Some(path) = file {
        schemes.extend(parsed(path, scheme::parse)?);
    }
    schemes.extend(scheme::bundled());
    Ok(schemes)
}

/// Writes tables to a file or to standard output. A workbook begins with a list of the sources, if the tables are of
/// dialogues.
pub fn print(
    all: Option<&Dialogues>,
    tables: &[Table],
    format: TableFormat,
    out: Option<&Path>,
) -> anyhow::Result<()> {
    let Some(path) = out else { return Ok(write(tables, format, Screen::here(), &mut io::stdout().lock())?) };
    let mut file = create(path)?;
    let written = if format == TableFormat::Xlsx {
        let sheets: Vec<Table> = all.map(sources::table).into_iter().chain(tables.iter().cloned()).collect();
        write_workbook(&sheets, file).map_err(anyhow::Error::from)
    } else {
        write(tables, format, Screen::FILE, &mut file)
            .and_then(|()| file.flush())
            .map_err(anyhow::Error::from)
    };
    written.with_context(|| format!("cannot write {}", path.display()))
}

fn write(tables: &[Table], format: TableFormat, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    for (number, table) in tables.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        match format {
            TableFormat::Text | TableFormat::Xlsx => {
                // One table is what was asked for; of several, each says what it is.
                if tables.len() > 1 {
                    writeln!(out, "{}\n", printable(&table.title))?;
                }
                screen.table(table, out)?;
            }
            TableFormat::Md => table.write_markdown(out)?,
            TableFormat::Csv => table.write_csv(out)?,
            TableFormat::Json => writeln!(out, "{}", table.to_json())?,
        }
    }
    Ok(())
}

/// A file to write.
pub fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    Ok(BufWriter::new(File::create(path).with_context(|| format!("cannot write {}", path.display()))?))
}
