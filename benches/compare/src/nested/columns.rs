//! Samples of texts and lists in memory, the form that all competitors write and return.
//!
//! Samples are stored by column: a column of lengths and a column of bytes for each field, and the
//! number of items of each sample if samples are lists. [`IndexedColumns`] adds the offsets that
//! random access needs.

use std::ops::Range;

/// The type of the samples of a data set.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The name of the column.
    pub name: &'static str,
    /// Whether a sample is a list of items; otherwise it is one item.
    pub is_list: bool,
    /// The fields of an item that is a struct. Without fields, an item is one text or one list of
    /// numbers.
    pub fields: &'static [&'static str],
    pub element: Element,
}

/// The elements of texts and lists of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// A byte of UTF-8.
    Text,
    F32,
}

impl Element {
    pub fn bytes(self) -> usize {
        match self {
            Self::Text => 1,
            Self::F32 => size_of::<f32>(),
        }
    }
}

impl Layout {
    /// Returns the number of texts or lists of numbers in an item.
    pub fn field_count(&self) -> usize {
        self.fields.len().max(1)
    }

    /// Returns the type, such as `list<struct<role: utf8, content: utf8>>`.
    pub fn type_name(&self) -> String {
        let value = match self.element {
            Element::Text => "utf8",
            Element::F32 => "list<f32>",
        };
        let fields: Vec<String> = self.fields.iter().map(|field| format!("{field}: {value}")).collect();
        let item = if fields.is_empty() { value.to_owned() } else { format!("struct<{}>", fields.join(", ")) };
        if self.is_list { format!("list<{item}>") } else { item }
    }
}

/// Consecutive samples, with a column for each field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The number of items of each sample; empty if each sample is one item.
    pub lists: Vec<u32>,
    pub fields: Vec<Values>,
}

/// The texts or lists of numbers of one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// The length of each text or list, in elements.
    pub lengths: Vec<u32>,
    pub bytes: Vec<u8>,
}

impl Columns {
    pub fn new(layout: &Layout) -> Self {
        Self { lists: Vec::new(), fields: vec![Values::default(); layout.field_count()] }
    }

    /// Removes all samples. Keeps the memory.
    pub fn clear(&mut self) {
        self.lists.clear();
        for field in &mut self.fields {
            field.lengths.clear();
            field.bytes.clear();
        }
    }

    /// Returns the bytes of all elements, plus 4 for each length.
    pub fn raw_bytes(&self) -> usize {
        let fields = self.fields.iter().map(|field| 4 * field.lengths.len() + field.bytes.len());
        4 * self.lists.len() + fields.sum::<usize>()
    }
}

impl Values {
    #[inline]
    pub fn push(&mut self, bytes: &[u8], element: Element) {
        // the data is far below 2^32 bytes
        self.lengths.push((bytes.len() / element.bytes()) as u32);
        self.bytes.extend_from_slice(bytes);
    }
}

/// Samples with the offsets for random access.
#[derive(Clone)]
pub struct IndexedColumns {
    pub columns: Columns,
    layout: Layout,
    /// The first item of each sample, and the end.
    item_starts: Vec<usize>,
    /// For each field, the offset of each item in the bytes, and the end.
    byte_starts: Vec<Vec<usize>>,
}

impl IndexedColumns {
    pub fn new(layout: Layout, columns: Columns) -> Self {
        let starts = |lengths: &[u32], scale: usize| {
            let mut at = 0;
            let mut starts = vec![0];
            starts.extend(lengths.iter().map(|&length| {
                at += scale * length as usize;
                at
            }));
            starts
        };
        let fields = columns.fields.iter();
        let byte_starts: Vec<Vec<usize>> = fields.map(|field| starts(&field.lengths, layout.element.bytes())).collect();
        let item_starts = if layout.is_list { starts(&columns.lists, 1) } else { (0..byte_starts[0].len()).collect() };
        Self { columns, layout, item_starts, byte_starts }
    }

    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    pub fn samples(&self) -> usize {
        self.item_starts.len() - 1
    }

    /// Returns the items of these samples.
    #[inline]
    pub fn items(&self, samples: &Range<usize>) -> Range<usize> {
        self.item_starts[samples.start]..self.item_starts[samples.end]
    }

    /// Returns one item of a field.
    pub fn item(&self, field: usize, item: usize) -> &[u8] {
        &self.columns.fields[field].bytes[self.bytes(field, &(item..item + 1))]
    }

    /// Returns the range of these items in the bytes of a field.
    #[inline]
    pub fn bytes(&self, field: usize, items: &Range<usize>) -> Range<usize> {
        self.byte_starts[field][items.start]..self.byte_starts[field][items.end]
    }

    /// Appends these samples to `out`.
    #[inline]
    pub fn copy(&self, samples: Range<usize>, out: &mut Columns) {
        let items = self.items(&samples);
        if self.layout.is_list {
            out.lists.extend_from_slice(&self.columns.lists[samples]);
        }
        for (number, (field, out)) in self.columns.fields.iter().zip(&mut out.fields).enumerate() {
            out.lengths.extend_from_slice(&field.lengths[items.clone()]);
            out.bytes.extend_from_slice(&field.bytes[self.bytes(number, &items)]);
        }
    }
}
