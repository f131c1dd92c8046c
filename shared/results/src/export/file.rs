//! An export into a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::{ExportError, ExportSummary};

/// Opens the file at `path` and has `write` fill it. Errors name the file; it is complete when there is none: nothing waits
/// in a buffer any more.
pub fn to_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<ExportSummary, ExportError>,
) -> Result<ExportSummary, ExportError> {
    let of_file = |error| ExportError::File { path: path.to_owned(), source: Box::new(error) };
    let mut file = BufWriter::new(File::create(path).map_err(|error| of_file(error.into()))?);
    let written = write(&mut file).and_then(|summary| {
        file.flush()?;
        Ok(summary)
    });
    match written {
        // What cannot be read is no fault of this file.
        Err(error @ ExportError::Log(_)) => Err(error),
        other => other.map_err(of_file),
    }
}
