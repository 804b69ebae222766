//! tensilo, one row per profile: a mapped file, default options, chunks verified on first touch.
//!
//! Each field of a struct is a column. `Rows` decodes everything and gathers; `read_list` and
//! `read` return one sample. Decoding everything uses new cursors each time, as for tensors.

use super::{Peer, Store};
use crate::nested::columns::{Columns, Element, Layout, Values};
use crate::nested::data::Dataset;
use crate::peers::{Family, tensilo as tensors};
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::str;
use tensilo::nested::ListBatch;
use tensilo::sink::Sink;
use tensilo::{
    ColumnBatch, ColumnBuffer, ColumnSchema, Cursor, DType, Profile, Reader, Rows, Schema, Shape, Writer, WriterOptions,
};

pub struct Tensilo(pub Profile);

/// The metadata key of a column's path (chapter 3.4 of the specification).
const PATH: &str = "tensilo.path";

impl Peer<Dataset> for Tensilo {
    fn name(&self) -> String {
        tensors::name(self.0)
    }

    fn about(&self) -> String {
        tensors::about(self.0)
    }

    fn family(&self) -> Family {
        Family::Tensilo
    }

    fn encode(&self, data: &Dataset, file: &Path) -> Result<()> {
        write(data, tensors::sink(file)?, &WriterOptions::new().profile(self.0)).map(drop)
    }

    fn open(&self, data: &Dataset, file: &Path) -> Result<Box<dyn Store>> {
        // SAFETY: the file is in a temporary folder of this process, which does not change it once
        // it is written.
        let reader = unsafe { Reader::map(file) }?;
        let layout = *data.samples.layout();
        let names: Vec<String> = (0..layout.field_count()).map(|field| name(&layout, field)).collect();
        Ok(Box::new(Open { rows: rows(&reader, &names)?, reader, names, layout, request: Vec::new(), out: Vec::new() }))
    }
}

/// Writes a data set to `sink`, and returns the sink.
pub fn write<K: Sink>(data: &Dataset, sink: K, options: &WriterOptions) -> Result<K> {
    let layout = data.samples.layout();
    let schema = Schema::new((0..layout.field_count()).map(|field| column(layout, field)));
    let mut writer = Writer::new(sink, schema, options)?;
    let lists = [ListBatch::new(&data.samples.columns.lists)];
    let fields = data.samples.columns.fields.iter();
    let batches = fields.map(|field| {
        let items = ColumnBatch::from_bytes(dtype(layout), field.lengths.len(), &field.lengths, &field.bytes);
        if layout.is_list { items.in_lists(&lists) } else { items }
    });
    writer.push_batch(&batches.collect::<Vec<_>>())?;
    Ok(writer.finish()?.sink)
}

fn dtype(layout: &Layout) -> DType {
    match layout.element {
        Element::Text => DType::Utf8,
        Element::F32 => DType::F32,
    }
}

/// Returns the name of a column, such as `messages.role`.
fn name(layout: &Layout, field: usize) -> String {
    layout.fields.get(field).map_or_else(|| layout.name.to_owned(), |field| format!("{}.{field}", layout.name))
}

/// Returns the schema of a column as a conversion would make it from this field.
fn column(layout: &Layout, field: usize) -> ColumnSchema {
    let mut column = ColumnSchema::tensor(name(layout, field), dtype(layout), Shape::ragged());
    if layout.is_list {
        column = column.list();
    }
    if let Some(field) = layout.fields.get(field) {
        let lists = if layout.is_list { "[]" } else { "" };
        column.metadata.insert(PATH.to_owned(), format!("{}{lists}.{field}", layout.name));
    }
    column
}

fn rows(reader: &Reader, names: &[String]) -> Result<Rows> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok(reader.rows(&names)?)
}

struct Open {
    reader: Reader,
    names: Vec<String>,
    rows: Rows,
    layout: Layout,
    request: Vec<u64>,
    out: Vec<ColumnBuffer>,
}

impl Open {
    /// Returns an error if texts are not UTF-8, which bulk reads do not check.
    fn check_text(&self) -> Result<()> {
        if self.layout.element != Element::Text {
            return Ok(());
        }
        for buffer in &self.out {
            let text = str::from_utf8(buffer.bytes())?;
            let is_start = |&offset: &u64| usize::try_from(offset).is_ok_and(|offset| text.is_char_boundary(offset));
            ensure!(buffer.offsets().iter().all(is_start), "a text begins inside a character");
        }
        Ok(())
    }
}

impl Store for Open {
    fn decode_all(&mut self) -> Result<()> {
        rows(&self.reader, &self.names)?.range_into(0..self.reader.sample_count(), &mut self.out)?;
        self.check_text()
    }

    fn sample(&mut self, i: usize, out: &mut Columns) -> Result<()> {
        let Columns { lists, fields } = out;
        for (number, (cursor, out)) in self.rows.cursors().iter_mut().zip(fields).enumerate() {
            let count = copy_sample(cursor, i as u64, &self.layout, out)?;
            if self.layout.is_list && number == 0 {
                lists.push(count);
            }
        }
        Ok(())
    }

    fn gather(&mut self, request: &[usize]) -> Result<()> {
        self.request.clear();
        self.request.extend(request.iter().map(|&i| i as u64));
        self.rows.gather_into(&self.request, &mut self.out)?;
        self.check_text()
    }

    fn results(&self, out: &mut Columns) -> Result<()> {
        if let Some(lists) = self.out[0].lists().first() {
            out.lists.extend(lists.offsets().windows(2).map(|pair| (pair[1] - pair[0]) as u32));
        }
        for (buffer, out) in self.out.iter().zip(&mut out.fields) {
            out.lengths.extend_from_slice(buffer.extents());
            out.bytes.extend_from_slice(buffer.bytes());
        }
        Ok(())
    }
}

/// Appends the items of a sample. Returns their number.
fn copy_sample(cursor: &mut Cursor, i: u64, layout: &Layout, out: &mut Values) -> Result<u32> {
    let mut push = |item: tensilo::Sample<'_>| -> Result<()> {
        let bytes = match layout.element {
            Element::Text => item.as_str()?.context("a null")?.as_bytes(),
            Element::F32 => item.bytes(),
        };
        out.push(bytes, layout.element);
        Ok(())
    };
    if !layout.is_list {
        push(cursor.read(i)?)?;
        return Ok(1);
    }
    let list = cursor.read_list(i)?;
    list.items().try_for_each(|item| push(item?))?;
    Ok(u32::try_from(list.len())?)
}
