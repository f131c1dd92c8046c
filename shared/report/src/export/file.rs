//! Exports to a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use super::ExportError;

/// Creates the file at `path` and fills it with `write`. Errors name the file; without an error it is complete and flushed.
pub fn to_file<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<T, ExportError>,
) -> Result<T, ExportError> {
    let of_file = |error| ExportError::File { path: path.to_owned(), source: Box::new(error) };
    let mut file = BufWriter::new(File::create(path).map_err(|error| of_file(error.into()))?);
    let written = write(&mut file).and_then(|counted| {
        file.flush()?;
        Ok(counted)
    });
    match written {
        // A record that cannot be read is not an error of this file.
        Err(error @ ExportError::Log(_)) => Err(error),
        other => other.map_err(of_file),
    }
}
