//! Rows as Apache Parquet, compressed with zstd. Repeated texts are stored once in dictionaries,
//! so a million rows take a few megabytes.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::{ColumnKind, RowCell, RowColumn};

/// Rows per row group, kept in memory until it is written: some tens of megabytes.
pub const GROUP_ROWS: u64 = 32_768;

/// Writes rows one by one; every column may be null. Times are microseconds, UTC.
pub struct ParquetRows<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<GroupColumn>,
    /// Rows that are not written yet.
    held: u64,
}

impl<W: Write + Send> ParquetRows<W> {
    /// Begins a file with these columns. `schema` names what a row is, `made_by` the program.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(out: W, columns: &[RowColumn], schema: &str, made_by: &str) -> io::Result<Self> {
        let file = open(out, columns, schema, made_by).map_err(io::Error::other)?;
        let columns = columns.iter().map(|column| GroupColumn::new(column.kind)).collect();
        Ok(Self { file, columns, held: 0 })
    }

    /// Writes a row with a cell for each column.
    ///
    /// # Errors
    /// A whole group of rows cannot be written.
    pub fn row(&mut self, cells: &[RowCell<'_>]) -> io::Result<()> {
        self.columns.iter_mut().zip(cells).for_each(|(column, cell)| column.push(cell));
        self.held += 1;
        if self.held >= GROUP_ROWS { self.write_held() } else { Ok(()) }
    }

    fn write_held(&mut self) -> io::Result<()> {
        self.held = 0;
        let group = self.file.next_row_group().map_err(io::Error::other)?;
        write_group(group, &mut self.columns).map_err(io::Error::other)
    }

    /// Writes what is held back, and ends the file.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        if self.held > 0 {
            self.write_held()?;
        }
        self.file.close().map(drop).map_err(io::Error::other)
    }
}

fn open<W: Write + Send>(
    out: W,
    columns: &[RowColumn],
    schema: &str,
    made_by: &str,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let fields = columns
        .iter()
        .map(|column| {
            let (physical, logical) = match column.kind {
                ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                ColumnKind::Integer => (Physical::INT64, None),
                ColumnKind::Number => (Physical::DOUBLE, None),
                ColumnKind::Flag => (Physical::BOOLEAN, None),
                ColumnKind::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MICROS))),
            };
            let field = Type::primitive_type_builder(&column.name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical)
                .build()?;
            Ok(Arc::new(field))
        })
        .collect::<Result<Vec<_>, ParquetError>>()?;
    let schema = Type::group_type_builder(schema).with_fields(fields).build()?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(made_by.to_owned())
        .build();
    SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))
}

fn write_group<W: Write + Send>(
    mut group: SerializedRowGroupWriter<'_, W>,
    columns: &mut [GroupColumn],
) -> Result<(), ParquetError> {
    for column in columns {
        let Some(writer) = group.next_column()? else { break };
        column.write(writer)?;
    }
    group.close().map(|_| ())
}

/// The cells of a column of the current row group.
struct GroupColumn {
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

impl GroupColumn {
    fn new(kind: ColumnKind) -> Self {
        let values = match kind {
            ColumnKind::Text => Values::Text(Vec::new()),
            ColumnKind::Integer | ColumnKind::Time => Values::Integer(Vec::new()),
            ColumnKind::Number => Values::Number(Vec::new()),
            ColumnKind::Flag => Values::Flag(Vec::new()),
        };
        Self { values, levels: Vec::new() }
    }

    fn push(&mut self, cell: &RowCell<'_>) {
        let mut level = 1;
        match (&mut self.values, cell) {
            (Values::Text(values), RowCell::Text(text)) => values.push(ByteArray::from(&**text)),
            // Whole numbers that do not fit are none that a reader could use.
            (Values::Integer(values), RowCell::Count(number)) => match i64::try_from(*number) {
                Ok(number) => values.push(number),
                Err(_) => level = 0,
            },
            (Values::Integer(values), RowCell::Time(time)) => values.push(time.as_microsecond()),
            (Values::Number(values), RowCell::Number(number, _)) => values.push(*number),
            (Values::Flag(values), RowCell::Flag(flag)) => values.push(*flag),
            // An empty cell, or one of another kind than its column's, which no layout gives.
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
