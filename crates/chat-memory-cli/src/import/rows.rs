//! Rows of a database's table: CSV with a header, or a JSON array or lines of objects.

use csv::{ReaderBuilder, StringRecord};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::json;
use super::source::{Bad, Source};

/// A row: columns by their names in small letters, and their values; none is `NULL`.
pub(super) struct Row {
    columns: Vec<(String, Option<Value>)>,
    pub(super) line: usize,
    offset: usize,
}

impl Row {
    /// Takes a column out, as text.
    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let place = self.columns.iter().position(|(known, _)| known == name)?;
        match self.columns.swap_remove(place).1? {
            Value::String(text) => Some(text),
            value => Some(value.to_string()),
        }
    }

    /// What is left of it.
    pub(super) fn into_values(self) -> Map<String, Value> {
        self.columns.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Something is wrong in it.
    pub(super) fn bad(&self, source: &Source<'_>, reason: &str) -> Bad {
        source.bad_at(self.offset, reason)
    }
}

/// The rows of a file.
pub(super) fn read<'a>(source: &'a Source<'a>) -> Result<Vec<Result<Row, Bad>>, Bad> {
    if source.text().trim_start().starts_with(['[', '{']) {
        let items = source.items()?.values;
        return Ok(items.into_iter().map(|item| item.and_then(|raw| of_json(source, raw))).collect());
    }
    Ok(of_csv(source))
}

/// The names of a CSV's columns in small letters, if there is a header.
pub(super) fn header(source: &Source<'_>) -> Vec<String> {
    let mut reader = reader(source);
    reader.headers().map(|names| names.iter().map(column).collect()).unwrap_or_default()
}

fn of_json<'a>(source: &'a Source<'a>, raw: &'a RawValue) -> Result<Row, Bad> {
    let fields = source.fields(raw)?;
    let value = |raw: &RawValue| (raw.get() != "null").then(|| json::value(raw));
    let columns = fields.iter().map(|(name, raw)| (column(name), value(raw))).collect();
    Ok(Row { columns, line: source.line(raw), offset: source.offset(raw) })
}

fn reader<'a>(source: &Source<'a>) -> csv::Reader<&'a [u8]> {
    let header = source.original().lines().next().unwrap_or_default();
    let count = |separator: char| header.matches(separator).count();
    let separators = [',', ';', '\t'].into_iter().rev().max_by_key(|separator| count(*separator));
    let separator = separators.and_then(|separator| u8::try_from(separator).ok()).unwrap_or(b',');
    ReaderBuilder::new().delimiter(separator).flexible(true).from_reader(source.original().as_bytes())
}

fn of_csv(source: &Source<'_>) -> Vec<Result<Row, Bad>> {
    let mut reader = reader(source);
    let names: Vec<String> = header(source);
    let mut rows = Vec::new();
    let mut record = StringRecord::new();
    loop {
        let offset = usize::try_from(reader.position().byte()).unwrap_or_default();
        match reader.read_record(&mut record) {
            Ok(true) => {
                let end = usize::try_from(reader.position().byte()).unwrap_or_default();
                let start = record.position().and_then(|place| usize::try_from(place.byte()).ok()).unwrap_or(offset);
                let text = source.original().get(start..end).unwrap_or_default();
                let start = start + text.len() - text.trim_start_matches(['\r', '\n']).len();
                rows.push(row(source, &names, &record, start, end));
            }
            Ok(false) => return rows,
            Err(_) => {
                rows.push(Err(source.bad_at(offset, "this is no row of CSV")));
                return rows;
            }
        }
    }
}

fn row(source: &Source<'_>, names: &[String], record: &StringRecord, start: usize, end: usize) -> Result<Row, Bad> {
    if record.len() != names.len() {
        let reason = format!("a row has {} columns, and the header has {}", record.len(), names.len());
        return Err(source.bad_at(start, reason));
    }
    // The reader takes the end of the file for the end of a quoted text.
    let text = source.original().get(start..end).unwrap_or_default();
    if end == source.original().len() && text.matches('"').count() % 2 == 1 && !text.ends_with('\n') {
        return Err(source.bad_at(start, "the file ends within a quoted text"));
    }
    let value = |text: &str| (text != "\\N").then(|| Value::from(text));
    let columns = names.iter().cloned().zip(record.iter().map(value)).collect();
    Ok(Row { columns, line: source.line_at(start), offset: start })
}

fn column(name: &str) -> String {
    name.trim().trim_start_matches('\u{feff}').to_lowercase()
}
