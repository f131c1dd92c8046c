//! Rows as Apache Parquet, compressed with zstd. Repeated texts are stored once in dictionaries,
//! so a million rows take a few megabytes.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
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
    columns: Vec<Box<dyn HeldColumn>>,
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
        let columns = columns.iter().map(|column| column_of(column.kind)).collect();
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
    columns: &mut [Box<dyn HeldColumn>],
) -> Result<(), ParquetError> {
    for column in columns {
        let Some(writer) = group.next_column()? else { break };
        column.write(writer)?;
    }
    group.close().map(|_| ())
}

/// The cells of a column of the current row group.
trait HeldColumn: Send {
    fn push(&mut self, cell: &RowCell<'_>);

    /// Writes and forgets them.
    fn write(&mut self, writer: SerializedColumnWriter<'_>) -> Result<(), ParquetError>;
}

/// Cells of one type.
struct Held<T: DataType> {
    values: Vec<T::T>,
    /// Parquet's definition levels: 1 for a value, 0 for null.
    levels: Vec<i16>,
    /// The value of a cell; of an empty one, or one of another kind than its column's, which no layout gives, `None`.
    value: fn(&RowCell<'_>) -> Option<T::T>,
}

impl<T: DataType> HeldColumn for Held<T> {
    fn push(&mut self, cell: &RowCell<'_>) {
        let value = (self.value)(cell);
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    fn write(&mut self, mut writer: SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        writer.typed::<T>().write_batch(&self.values, Some(&self.levels), None)?;
        self.values.clear();
        self.levels.clear();
        writer.close()
    }
}

fn held<T: DataType>(value: fn(&RowCell<'_>) -> Option<T::T>) -> Box<dyn HeldColumn> {
    Box::new(Held::<T> { values: Vec::new(), levels: Vec::new(), value })
}

/// A column for cells of this kind. Whole numbers that do not fit are none that a reader could use.
fn column_of(kind: ColumnKind) -> Box<dyn HeldColumn> {
    match kind {
        ColumnKind::Text => held::<ByteArrayType>(|cell| match cell {
            RowCell::Text(text) => Some(ByteArray::from(&**text)),
            _ => None,
        }),
        ColumnKind::Integer => held::<Int64Type>(|cell| match cell {
            RowCell::Count(number) => i64::try_from(*number).ok(),
            _ => None,
        }),
        ColumnKind::Time => held::<Int64Type>(|cell| match cell {
            RowCell::Time(time) => Some(time.as_microsecond()),
            _ => None,
        }),
        ColumnKind::Number => held::<DoubleType>(|cell| match cell {
            RowCell::Number(number, _) => Some(*number),
            _ => None,
        }),
        ColumnKind::Flag => held::<BoolType>(|cell| match cell {
            RowCell::Flag(flag) => Some(*flag),
            _ => None,
        }),
    }
}
