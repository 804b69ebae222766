//! Cases: a schema, samples, and options to write them, drawn from the bytes of an input.
//!
//! `arbitrary` turns the input into choices, so small changes of the input are small changes of the
//! case. Choices that cost time, such as a slow profile or long columns, depend on a hash of the
//! input instead: the fuzzer would keep the inputs that choose them, and run little else.
//!
//! A case knows what a reader must return, see [`Column::assert_holds`].

use super::lists::{Levels, bitmap};
use arbitrary::{Result, Unstructured};
use std::ops::Range;
use tensilo::nested::ListBatch;
use tensilo::sink::Sink;
use tensilo::{ColumnBatch, ColumnBuffer, ColumnSchema, DType, Extent, Profile, Schema, Shape, Writer, WriterOptions};

/// The approximate limit of the bytes of a column. More would only cost time.
const COLUMN_BYTES: usize = 1024;
/// The factor of [`COLUMN_BYTES`] at which chunks have blocks.
const BLOCKED_SCALE: usize = 8;
/// The factor of [`COLUMN_BYTES`] at which blocks are read individually.
const SEPARATE_BLOCKS_SCALE: usize = 40;
/// The approximate limit of the chunks of a column.
const CHUNKS: usize = 3;
const SAMPLES: usize = 32;

#[derive(Debug)]
pub struct Case {
    pub sample_count: usize,
    pub columns: Vec<Column>,
    pub options: WriterOptions,
    /// The number of samples before each commit. `finish` makes another commit.
    pub commits: Vec<usize>,
    /// A hash of the input, as good as random.
    pub dice: u32,
}

/// One column and its samples.
#[derive(Debug)]
pub struct Column {
    pub schema: ColumnSchema,
    levels: Levels,
    /// Whether each item is null.
    nulls: Vec<bool>,
    /// The varying extents of all items.
    extents: Vec<u32>,
    /// The values of all items, in the type that is pushed.
    values: Vec<u8>,
    /// The offset of each item in `values`, and the end of the last.
    starts: Vec<usize>,
}

/// Makes a case from the input, and checks it. The check may use the rest of the input.
pub fn run(input: &[u8], check: fn(&Case, &mut Unstructured<'_>) -> Result<()>) {
    let mut u = Unstructured::new(input);
    // an error means that the input is too short
    let _ = Case::new(&mut u, crc32fast::hash(input)).and_then(|case| check(&case, &mut u));
}

impl Case {
    /// Makes a case. Costly choices depend on `dice`.
    fn new(u: &mut Unstructured<'_>, dice: u32) -> Result<Self> {
        let sample_count = u.int_in_range(0..=SAMPLES)?;
        let column_count = if rarely(u, 8)? { u.int_in_range(0..=5)? } else { 1 };
        let scale = match dice / 4096 % 64 {
            0 => SEPARATE_BLOCKS_SCALE,
            1..=15 => BLOCKED_SCALE,
            _ => 1,
        };
        let columns: Vec<Column> =
            (0..column_count).map(|i| Column::arbitrary(u, i, sample_count, scale)).collect::<Result<_>>()?;
        let profile = match dice % 64 {
            0 => Profile::ALL[dice as usize / 64 % Profile::ALL.len()],
            1..=4 => Profile::Fast,
            5..=7 => Profile::Balanced,
            _ => Profile::Raw,
        };
        let largest = columns.iter().map(|column| column.values.len()).max().unwrap_or(0);
        let mut options = WriterOptions::new()
            .profile(profile)
            .chunk_bytes(largest / u.int_in_range(1..=CHUNKS)? + 8)
            .alignment(if dice.is_multiple_of(127) { 4096 } else { 64 })
            .check_chunks(u.arbitrary()?);
        let mut commits = Vec::new();
        while commits.len() < 3 && rarely(u, 3)? {
            commits.push(u.int_in_range(0..=sample_count)?);
        }
        commits.sort_unstable();
        if scale > 1 && profile.block_bytes().is_some() {
            let block_bytes = u.int_in_range(1024..=5000)?;
            options = options.block_bytes(if rarely(u, 8)? { None } else { Some(block_bytes) });
        }
        Ok(Self { sample_count, columns, options, commits, dice })
    }

    pub fn schema(&self) -> Schema {
        Schema::new(self.columns.iter().map(|column| column.schema.clone()))
    }

    /// Writes all samples, `step` at a time, with the commits of the case.
    pub fn write<K: Sink>(&self, sink: K, options: &WriterOptions, step: usize) -> tensilo::Result<K> {
        let mut writer = Writer::new(sink, self.schema(), options)?;
        let mut at = 0;
        for &commit in &self.commits {
            self.push(&mut writer, at..commit, step)?;
            writer.commit()?;
            at = commit;
        }
        self.push(&mut writer, at..self.sample_count, step)?;
        writer.finish().map(|summary| summary.sink)
    }

    fn push<K: Sink>(&self, writer: &mut Writer<K>, samples: Range<usize>, step: usize) -> tensilo::Result<()> {
        let mut at = samples.start;
        while at < samples.end && !self.columns.is_empty() {
            let next = samples.end.min(at.saturating_add(step));
            let validities: Vec<Vec<Vec<u8>>> = self.columns.iter().map(|column| column.validities(at..next)).collect();
            let columns = self.columns.iter().zip(&validities);
            let lists: Vec<Vec<ListBatch<'_>>> =
                columns.map(|(column, validities)| column.levels.batches(at..next, validities)).collect();
            let columns = self.columns.iter().zip(&validities).zip(&lists);
            let batches: Vec<ColumnBatch<'_>> =
                columns.map(|((column, nulls), lists)| column.batch(at..next, nulls, lists)).collect();
            writer.push_batch(&batches)?;
            at = next;
        }
        Ok(())
    }
}

impl Column {
    /// Makes a column of at most about `scale` times [`COLUMN_BYTES`].
    fn arbitrary(u: &mut Unstructured<'_>, i: usize, sample_count: usize, scale: usize) -> Result<Self> {
        let dtype = *u.choose(&DType::ALL)?;
        let shape = if dtype.is_string() { Shape::ragged() } else { shape(u)? };
        let mut schema = ColumnSchema::tensor(format!("column {i}"), dtype, shape);
        schema.nullable = u.arbitrary()?;
        if rarely(u, 12)? && matches!(dtype, DType::Bf16 | DType::F16 | DType::F32) {
            schema = schema.cast_from(DType::F64);
        }
        let (levels, item_count) = Levels::arbitrary(u, sample_count)?;
        let items_are_nullable = schema.nullable;
        schema = levels.schema(schema);
        let inner = schema.shape.inner_elements().map_or(0, |inner| inner as usize);
        let element_bytes = schema.pushed_dtype().element_bytes();
        let varying = schema.shape.varying_count();
        let mut column =
            Self { schema, levels, nulls: Vec::new(), extents: Vec::new(), values: Vec::new(), starts: vec![0] };
        let extents_mask = u.int_in_range(0..=15)?;
        let mut end = 0_usize;
        for _ in 0..item_count {
            let is_null = items_are_nullable && rarely(u, 4)?;
            column.nulls.push(is_null);
            let mut bytes = inner * element_bytes;
            for _ in 0..varying {
                let mut extent = if is_null { 0 } else { usize::from(u.arbitrary::<u8>()? & extents_mask) * scale };
                if end + bytes * extent > COLUMN_BYTES * scale {
                    extent = 0;
                }
                column.extents.push(extent as u32);
                bytes *= extent;
            }
            end += bytes;
            column.starts.push(end);
        }
        column.values = values(u, end, element_bytes)?;
        column.tidy();
        Ok(column)
    }

    /// Makes the values valid: unused bits of elements and all bytes of nulls are zero, texts are
    /// ASCII.
    fn tidy(&mut self) {
        let dtype = self.schema.dtype;
        for (i, bounds) in self.starts.windows(2).enumerate() {
            for byte in &mut self.values[bounds[0]..bounds[1]] {
                *byte = match dtype {
                    _ if self.nulls[i] => 0,
                    DType::Utf8 => *byte & 0x7F,
                    _ => *byte & (u64::MAX >> (64 - dtype.value_bits())) as u8,
                }
            }
        }
    }

    /// Returns the validity bitmaps of the levels, from the outermost lists to the items.
    fn validities(&self, samples: Range<usize>) -> Vec<Vec<u8>> {
        let mut validities = self.levels.validities(samples.clone());
        validities.push(bitmap(&self.nulls[self.items(samples)]));
        validities
    }

    /// Returns the items of these samples.
    fn items(&self, samples: Range<usize>) -> Range<usize> {
        self.levels.ranges(samples).pop().unwrap_or_default()
    }

    fn batch<'a>(
        &'a self,
        samples: Range<usize>,
        validities: &'a [Vec<u8>],
        lists: &'a [ListBatch<'a>],
    ) -> ColumnBatch<'a> {
        let items = self.items(samples);
        let extents = self.extents(&items);
        let values = &self.values[self.starts[items.start]..self.starts[items.end]];
        let batch = ColumnBatch::from_bytes(self.schema.pushed_dtype(), items.len(), extents, values);
        let are_nullable = self.schema.levels.last().map_or(self.schema.nullable, |level| level.nullable);
        let batch = if are_nullable { batch.with_validity(&validities[lists.len()]) } else { batch };
        if lists.is_empty() { batch } else { batch.in_lists(lists) }
    }

    fn extents(&self, items: &Range<usize>) -> &[u32] {
        let varying = self.schema.shape.varying_count();
        &self.extents[items.start * varying..items.end * varying]
    }

    /// Checks that a buffer holds these samples.
    pub fn assert_holds(&self, buffer: &ColumnBuffer, samples: Range<usize>) {
        let items = self.items(samples.clone());
        if self.schema.pushed_dtype() == self.schema.dtype {
            assert_eq!(buffer.bytes(), &self.values[self.starts[items.start]..self.starts[items.end]]);
        }
        assert_eq!((buffer.sample_count(), buffer.item_count()), (samples.len(), items.len()));
        assert_eq!(buffer.varying_extents(), self.extents(&items));
        assert!((0..items.len()).map(|i| buffer.is_null(i)).eq(self.nulls[items].iter().copied()));
        self.levels.assert_in(buffer, samples);
    }
}

/// Returns true once in `times` calls, and false after the end of the input.
pub fn rarely(u: &mut Unstructured<'_>, times: u32) -> Result<bool> {
    Ok(u.int_in_range(1..=times)? == times)
}

/// Makes a shape of at most 64 elements. Each dimension may vary instead.
fn shape(u: &mut Unstructured<'_>) -> Result<Shape> {
    let rank = u.int_in_range(0..=3)?;
    let extent = |u: &mut Unstructured<'_>| {
        if rarely(u, 4)? { Ok(Extent::Varying) } else { Ok(Extent::Fixed(u.int_in_range(0..=4)?)) }
    };
    Ok(Shape::new((0..rank).map(|_| extent(u)).collect::<Result<Vec<_>>>()?))
}

/// Makes elements that repeat, with a step from each repetition to the next: a few bytes of input
/// suffice for data that any encoding may suit.
fn values(u: &mut Unstructured<'_>, bytes: usize, element_bytes: usize) -> Result<Vec<u8>> {
    let period = u.int_in_range(1..=32)? * element_bytes;
    let mut period_bytes = vec![0; period];
    u.fill_buffer(&mut period_bytes)?;
    let step: u8 = u.arbitrary()?;
    let mut values: Vec<u8> = period_bytes.iter().copied().cycle().take(bytes).collect();
    for (i, element) in values.chunks_exact_mut(element_bytes).enumerate() {
        element[0] = element[0].wrapping_add(step.wrapping_mul((i * element_bytes / period) as u8));
    }
    Ok(values)
}
