//! Structs as JSON: the columns of their fields, joined.

use super::args::GetArgs;
use super::entry::SampleEntry;
use super::indices::Selection;
use super::json::{Printer, write_entry, write_samples};
use super::sample_source::{SampleSource, Samples};
use crate::failure::{Failure, Outcome};
use crate::output::Destination;
use std::io::{self, Write};
use tensilo::Schema;
use tensilo::nested::FieldNode;

/// A struct that has a name as its fields do: `box`, or `box.corner` for a struct in that.
pub(super) struct NamedStruct {
    node: FieldNode,
    /// All levels of lists around it.
    lists: usize,
}

impl NamedStruct {
    /// Finds the struct of this name.
    pub(super) fn find(schema: &Schema, name: &str) -> Option<Self> {
        let nodes = FieldNode::of_columns(schema.columns.iter());
        let (node, lists) = FieldNode::named(&nodes, name)?;
        Some(Self { node: node.clone(), lists })
    }

    /// Writes samples as the function of a column does.
    pub(super) fn write(
        &self,
        args: &GetArgs,
        source: &SampleSource,
        selection: &Selection,
        destination: Destination,
    ) -> Outcome {
        let columns = &source.schema().columns;
        let names = self.node.columns().into_iter().filter_map(|number| Some(columns.get(number)?.name.as_str()));
        let names: Vec<&str> = names.collect();
        let mut columns = names.iter().map(|name| source.samples(name)).collect::<Outcome<Vec<Samples>>>()?;
        let prints = columns.iter().map(|column| Printer::of(column.schema(), args.elements));
        let prints = prints.collect::<Outcome<Vec<Printer>>>()?;
        write_samples(selection, destination, |output, i| {
            let parts = columns.iter_mut().zip(&names).zip(&prints);
            let parts = parts.map(|((column, name), print)| Ok(Part { name, print: *print, entry: column.read(i)? }));
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
    entry: SampleEntry<'a>,
}

impl Part<'_> {
    fn is_null(&self) -> bool {
        self.entry.is_null()
    }

    fn list_len(&self) -> usize {
        self.entry.list_len()
    }

    fn member(&self, k: usize) -> Outcome<Self> {
        Ok(Self { entry: self.entry.member(k)?, ..*self })
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
        _ => write_entry(output, &first.entry, first.print)?,
    }
    Ok(())
}
