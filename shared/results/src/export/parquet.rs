//! A [`table`](super::table) as Apache Parquet, compressed with zstd. Repeated texts are stored once in dictionaries,
//! so a million rows take a few megabytes.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::provenance::Provenances;
use super::table::{ColumnKind, ExportCell, Layout, TableRecord};
use super::{ExportError, ExportSummary};
use crate::log::LogError;

/// Rows per row group, kept in memory until it is written: some tens of megabytes.
pub const GROUP_ROWS: u64 = 32_768;

/// Writes the table; every column may be null. Times are microseconds, UTC.
pub fn write(
    writer: impl Write + Send,
    layout: &Layout<'_>,
    provenances: &mut Provenances,
    records: impl Iterator<Item = Result<TableRecord, LogError>>,
) -> Result<ExportSummary, ExportError> {
    let mut file = open(writer, layout)?;
    let mut columns: Vec<Column> = layout.columns().iter().map(|(_, kind, _)| Column::new(*kind)).collect();
    let (mut summary, mut held) = (ExportSummary::default(), 0);
    for record in records {
        let record = record?;
        summary.dialogues += 1;
        let provenance = provenances.number(&record.provenance);
        let rows = layout.rows(&record, provenance, |row| {
            columns.iter_mut().zip(row).for_each(|(column, cell)| column.push(cell));
            Ok::<(), ExportError>(())
        })?;
        summary.rows += rows;
        held += rows;
        if held >= GROUP_ROWS {
            write_group(file.next_row_group()?, &mut columns)?;
            held = 0;
        }
    }
    if held > 0 {
        write_group(file.next_row_group()?, &mut columns)?;
    }
    file.close()?;
    Ok(summary)
}

impl From<ParquetError> for ExportError {
    fn from(error: ParquetError) -> Self {
        Self::Format { format: "Parquet", message: error.to_string() }
    }
}

fn open<W: Write + Send>(writer: W, layout: &Layout<'_>) -> Result<SerializedFileWriter<W>, ParquetError> {
    let fields = layout
        .columns()
        .iter()
        .map(|(name, kind, _)| {
            let (physical, logical) = match kind {
                ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                ColumnKind::Integer => (Physical::INT64, None),
                ColumnKind::Number => (Physical::DOUBLE, None),
                ColumnKind::Flag => (Physical::BOOLEAN, None),
                ColumnKind::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            };
            let field = Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical)
                .build()?;
            Ok(Arc::new(field))
        })
        .collect::<Result<Vec<_>, ParquetError>>()?;
    let schema = Type::group_type_builder("scores").with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(format!("kgfleet {}", env!("CARGO_PKG_VERSION")))
        .build();
    SerializedFileWriter::new(writer, Arc::new(schema), Arc::new(properties))
}

fn write_group<W: Write + Send>(
    mut group: SerializedRowGroupWriter<'_, W>,
    columns: &mut [Column],
) -> Result<(), ParquetError> {
    for column in columns {
        let Some(writer) = group.next_column()? else { break };
        column.write(writer)?;
    }
    group.close().map(|_| ())
}

/// The cells of a column of the current row group.
struct Column {
    values: Values,
    /// Parquet's definition levels: 1 for a value, 0 for null.
    levels: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    /// Whole numbers, and times as microseconds since 1970.
    Integer(Vec<i64>),
    Number(Vec<f64>),
    Flag(Vec<bool>),
}

impl Column {
    fn new(kind: ColumnKind) -> Self {
        let values = match kind {
            ColumnKind::Text => Values::Text(Vec::new()),
            ColumnKind::Integer | ColumnKind::Time => Values::Integer(Vec::new()),
            ColumnKind::Number => Values::Number(Vec::new()),
            ColumnKind::Flag => Values::Flag(Vec::new()),
        };
        Self { values, levels: Vec::new() }
    }

    fn push(&mut self, cell: &ExportCell<'_>) {
        let mut level = 1;
        match (&mut self.values, cell) {
            (Values::Text(values), ExportCell::Text(text)) => values.push(ByteArray::from(*text)),
            (Values::Integer(values), ExportCell::Integer(number)) => values.push(*number),
            (Values::Integer(values), ExportCell::Time(time)) => values.push(time.as_microsecond()),
            (Values::Number(values), ExportCell::Number(number)) => values.push(*number),
            (Values::Flag(values), ExportCell::Flag(flag)) => values.push(*flag),
            // An empty cell; [`Layout::rows`] gives no cell of another kind than its column's.
            _ => level = 0,
        }
        self.levels.push(level);
    }

    fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        let levels = Some(self.levels.as_slice());
        match &mut self.values {
            Values::Text(values) => {
                writer.typed::<ByteArrayType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Integer(values) => {
                writer.typed::<Int64Type>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Number(values) => {
                writer.typed::<DoubleType>().write_batch(values, levels, None)?;
                values.clear();
            }
            Values::Flag(values) => {
                writer.typed::<BoolType>().write_batch(values, levels, None)?;
                values.clear();
            }
        }
        self.levels.clear();
        writer.close()
    }
}
