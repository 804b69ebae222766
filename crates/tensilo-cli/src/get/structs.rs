//! Structs as JSON: the columns of their fields, joined.

use super::args::GetArgs;
use super::indices::Selection;
use super::json::{Printer, write_list, write_sample, write_samples};
use crate::failure::{Failure, Outcome};
use crate::output::Destination;
use std::io::{self, Write};
use tensilo::nested::{FieldNode, List};
use tensilo::{Column, Cursor, Reader, Sample};

/// A struct that has a name as its fields do: `box`, or `box.corner` for a struct in that.
pub(super) struct NamedStruct {
    node: FieldNode,
    /// All levels of lists around it.
    lists: usize,
}

impl NamedStruct {
    /// Finds the struct of this name.
    pub(super) fn find(reader: &Reader, name: &str) -> Option<Self> {
        let nodes = FieldNode::of_columns(reader.schema().columns.iter());
        let (node, lists) = FieldNode::named(&nodes, name)?;
        Some(Self { node: node.clone(), lists })
    }

    /// Writes samples as the function of a column does.
    pub(super) fn write(
        &self,
        args: &GetArgs,
        reader: &Reader,
        selection: &Selection,
        destination: Destination,
    ) -> Outcome {
        let columns: Vec<Column> = self.node.columns().into_iter().filter_map(|i| reader.column_at(i)).collect();
        let prints = columns.iter().map(|column| Printer::of(column.schema(), args.elements));
        let prints = prints.collect::<Outcome<Vec<Printer>>>()?;
        let mut cursors: Vec<Cursor> = columns.iter().map(Column::cursor).collect();
        write_samples(selection, destination, |output, i| {
            let parts = cursors.iter_mut().zip(&columns).zip(&prints);
            let parts = parts.map(|((cursor, column), print)| Part::read(cursor, &column.schema().name, *print, i));
            let written = write_struct(output, &self.node, self.lists, &parts.collect::<Outcome<Vec<Part>>>()?);
            written.map_err(|failure| match failure {
                Failure::Usage(message) => Failure::Usage(format!("sample {i}: {message}")),
                other => other,
            })
        })
    }
}

/// A sample of one column of a struct, or what of it is in a member of a list.
struct Part<'a> {
    /// The name of the column.
    name: &'a str,
    print: Printer,
    entry: Samples<'a>,
}

enum Samples<'a> {
    Item(Sample<'a>),
    List(List<'a>),
}

impl<'a> Part<'a> {
    fn read(cursor: &'a mut Cursor, name: &'a str, print: Printer, i: u64) -> Outcome<Self> {
        let is_nested = !cursor.column().schema().levels.is_empty();
        let entry = if is_nested { Samples::List(cursor.read_list(i)?) } else { Samples::Item(cursor.read(i)?) };
        Ok(Self { name, print, entry })
    }

    fn is_null(&self) -> bool {
        match &self.entry {
            Samples::Item(sample) => sample.is_null(),
            Samples::List(list) => list.is_null(),
        }
    }

    fn list_len(&self) -> usize {
        if let Samples::List(list) = &self.entry { list.len() } else { 0 }
    }

    fn member(&self, k: usize) -> Outcome<Self> {
        let entry = match &self.entry {
            Samples::List(list) if list.has_lists() => Samples::List(list.list(k)?),
            Samples::List(list) => Samples::Item(list.item(k)?),
            Samples::Item(_) => return Err(Failure::Usage("a struct in lists has a field that is in none".to_owned())),
        };
        Ok(Self { entry, ..*self })
    }

    fn write(&self, output: &mut impl Write) -> Outcome {
        match &self.entry {
            Samples::Item(sample) => write_sample(output, sample, self.print),
            Samples::List(list) => write_list(output, list, self.print),
        }
    }
}

/// Checks that the lists of all columns of a struct are the same. In a file that was salvaged they
/// may differ.
fn check_lists(parts: &[Part<'_>]) -> Outcome {
    let Some(first) = parts.first() else { return Ok(()) };
    let is_other = |part: &&Part<'_>| part.is_null() != first.is_null() || part.list_len() != first.list_len();
    let Some(other) = parts.iter().find(is_other) else { return Ok(()) };
    let length = |part: &Part<'_>| if part.is_null() { "null".to_owned() } else { part.list_len().to_string() };
    Err(Failure::Usage(format!(
        "the fields of a struct have different lists: {:?} has the length {}, {:?} has {}; print each by itself",
        first.name,
        length(first),
        other.name,
        length(other)
    )))
}

/// Writes a struct in so many lists. `parts` are those of its columns, in their order.
fn write_struct(output: &mut impl Write, node: &FieldNode, lists: usize, parts: &[Part<'_>]) -> Outcome {
    let Some(first) = parts.first() else { return Ok(output.write_all(b"null")?) };
    if lists > 0 {
        check_lists(parts)?;
    }
    match node {
        _ if lists > 0 && first.is_null() => output.write_all(b"null")?,
        _ if lists > 0 => {
            output.write_all(b"[")?;
            for k in 0..first.list_len() {
                output.write_all(if k > 0 { b"," } else { b"" })?;
                let members = parts.iter().map(|part| part.member(k)).collect::<Outcome<Vec<Part>>>()?;
                write_struct(output, node, lists - 1, &members)?;
            }
            output.write_all(b"]")?;
        }
        FieldNode::Struct { nulls: Some(_), .. } if first.is_null() => output.write_all(b"null")?,
        FieldNode::Struct { nulls, children, .. } => {
            output.write_all(b"{")?;
            let mut left = parts.get(usize::from(nulls.is_some())..).unwrap_or(&[]);
            for (k, child) in children.iter().enumerate() {
                output.write_all(if k > 0 { b"," } else { b"" })?;
                serde_json::to_writer(&mut *output, child.name()).map_err(io::Error::from)?;
                output.write_all(b":")?;
                let own;
                (own, left) = left.split_at_checked(child.columns().len()).unwrap_or((&[], &[]));
                let lists = if let FieldNode::Struct { lists, .. } = child { *lists } else { 0 };
                write_struct(output, child, lists, own)?;
            }
            output.write_all(b"}")?;
        }
        _ => first.write(output)?,
    }
    Ok(())
}
