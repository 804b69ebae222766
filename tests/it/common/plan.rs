//! Arbitrary ways to write a table: options, single samples or batches, commits in between.

use super::{ModelSample, Table, inner_bytes};
use proptest::prelude::*;
use std::ops::Range;
use tensilo::sink::{Sink, Stream};
use tensilo::{
    ColumnBatch, ColumnSchema, DType, ErrorKind, Profile, Result, Schema, Summary, Value, Writer, WriterOptions,
};
use tensilo_testing::Random;

/// Returns the profiles that this build can write.
pub fn profiles() -> Vec<Profile> {
    let built = |profile: &Profile| {
        let writer = Writer::new(Stream(Vec::new()), Schema::default(), &WriterOptions::new().profile(*profile));
        match writer {
            Ok(_) => true,
            Err(error) if !cfg!(feature = "zstd") && error.kind() == ErrorKind::NotBuilt => false,
            Err(error) => panic!("{error}"),
        }
    };
    Profile::ALL.into_iter().filter(built).collect()
}

/// Returns the default options, with a profile that this build can write.
pub fn options() -> WriterOptions {
    let profile = if cfg!(feature = "zstd") { Profile::default() } else { Profile::Raw };
    WriterOptions::new().profile(profile)
}

/// The next step of a writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// This many samples, one after the other.
    OneByOne(usize),
    /// This many samples at once.
    Batch(usize),
    Commit,
}

#[derive(Clone, Debug)]
pub struct WritePlan {
    pub profile: Profile,
    pub chunk_bytes: usize,
    /// `None` to write chunks without blocks.
    pub block_bytes: Option<usize>,
    pub alignment: u32,
    pub threads: usize,
    pub steps: Vec<Step>,
}

impl WritePlan {
    pub fn options(&self) -> WriterOptions {
        WriterOptions::new()
            .profile(self.profile)
            .chunk_bytes(self.chunk_bytes)
            .block_bytes(self.block_bytes)
            .alignment(self.alignment)
            .threads(self.threads)
    }

    /// Returns how many samples each commit except the last covers, if `sample_count` are written.
    pub fn commits(&self, sample_count: usize) -> Vec<usize> {
        let mut written = 0;
        let mut commits = Vec::new();
        for step in &self.steps {
            match step {
                Step::OneByOne(samples) | Step::Batch(samples) => written = sample_count.min(written + samples),
                Step::Commit => commits.push(written),
            }
        }
        commits
    }

    /// Returns a plan with the same commits. The samples between them come in batches of at most
    /// `batch`, or one by one if that is 0.
    pub fn regrouped(&self, sample_count: usize, batch: usize) -> Self {
        let mut steps = Vec::new();
        let mut written = 0;
        let mut push_until = |steps: &mut Vec<Step>, until: usize| {
            match batch {
                0 => steps.push(Step::OneByOne(until - written)),
                _ => steps.extend((written..until).step_by(batch).map(|at| Step::Batch(batch.min(until - at)))),
            }
            written = until;
        };
        for commit in self.commits(sample_count) {
            push_until(&mut steps, commit);
            steps.push(Step::Commit);
        }
        push_until(&mut steps, sample_count);
        Self { steps, ..self.clone() }
    }
}

pub fn arbitrary_plan() -> impl Strategy<Value = WritePlan> {
    let chunk_bytes = prop_oneof![1..=64_usize, 65..=4_096_usize, 4_097..=65_536_usize];
    let step = prop_oneof![
        4 => (1..=60_usize).prop_map(Step::OneByOne),
        4 => (0..=150_usize).prop_map(Step::Batch),
        1 => Just(Step::Commit),
    ];
    (
        prop::sample::select(profiles()),
        chunk_bytes,
        prop::sample::select(vec![None, Some(1024), Some(3000), Some(8192)]),
        prop::sample::select(vec![64, 4096]),
        1..=3_usize,
        prop::collection::vec(step, 0..8),
    )
        .prop_map(|(profile, chunk_bytes, block_bytes, alignment, threads, steps)| WritePlan {
            profile,
            chunk_bytes,
            // some profiles have no blocks
            block_bytes: profile.block_bytes().and(block_bytes),
            alignment,
            threads,
            steps,
        })
}

/// Writes a table; returns the file.
pub fn write(table: &Table, plan: &WritePlan) -> Vec<u8> {
    let summary = write_to(Stream(Vec::new()), table, plan, &plan.options()).expect("a valid table");
    assert_eq!(summary.sample_count, table.sample_count as u64);
    let bytes = summary.sink.0;
    assert_eq!(summary.file_bytes, bytes.len() as u64, "Summary::file_bytes");
    bytes
}

/// Writes a table as the plan says; samples left over by the steps are pushed as one batch.
pub fn write_to<K: Sink>(sink: K, table: &Table, plan: &WritePlan, options: &WriterOptions) -> Result<Summary<K>> {
    let mut writer = Writer::new(sink, table.schema.clone(), options)?;
    push_all(&mut writer, table, plan)?;
    writer.finish()
}

/// Does the work of [`write_to`], except finishing.
pub fn push_all<K: Sink>(writer: &mut Writer<K>, table: &Table, plan: &WritePlan) -> Result<()> {
    let mut written = 0;
    for step in &plan.steps {
        match *step {
            Step::OneByOne(samples) => {
                let until = table.sample_count.min(written + samples);
                (written..until).try_for_each(|i| push_one(writer, table, i))?;
                written = until;
            }
            Step::Batch(samples) => {
                let until = table.sample_count.min(written + samples);
                push_batch(writer, table, written..until)?;
                written = until;
            }
            Step::Commit => writer.commit()?,
        }
    }
    push_batch(writer, table, written..table.sample_count)
}

pub fn push_one<K: Sink>(writer: &mut Writer<K>, table: &Table, i: usize) -> Result<()> {
    let columns = table.schema.columns.iter().zip(&table.columns);
    let typed: Vec<TypedValue> = columns.map(|(column, samples)| TypedValue::new(column, &samples[i])).collect();
    let values: Vec<Value> = typed.iter().map(TypedValue::value).collect();
    writer.push(&values)
}

/// A sample with its elements in aligned memory, for `Value` to borrow.
struct TypedValue<'a> {
    column: &'a ColumnSchema,
    sample: &'a ModelSample,
    /// The elements, in memory that is aligned for all types.
    words: Vec<u64>,
}

impl<'a> TypedValue<'a> {
    fn new(column: &'a ColumnSchema, sample: &'a ModelSample) -> Self {
        let bytes = sample.as_ref().map_or(&[][..], |value| &value.bytes);
        let mut words = vec![0_u64; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self { column, sample, words }
    }

    fn value(&self) -> Value<'_> {
        let Some(sample) = self.sample else { return Value::NULL };
        match self.column.dtype {
            DType::Utf8 => return Value::text(std::str::from_utf8(&sample.bytes).expect("the model holds text")),
            DType::Bytes => return Value::bytes(&sample.bytes),
            _ => {}
        }
        let bytes: &[u8] = &bytemuck::cast_slice(&self.words)[..sample.bytes.len()];
        // with one varying extent and elements, the extent follows from the number of elements
        let follows = sample.extents.len() < 2 && inner_bytes(self.column) > 0;
        super::with_element!(self.column.pushed_dtype(), T => {
            let elements: &[T] = bytemuck::cast_slice(bytes);
            if follows { Value::tensor(elements) } else { Value::ragged(elements, &sample.extents) }
        })
    }
}

/// Samples `range` of a column, laid out for a batch.
pub struct BatchData {
    pub dtype: DType,
    pub sample_count: usize,
    pub extents: Vec<u32>,
    pub values: Vec<u8>,
    pub validity: Option<Vec<u8>>,
}

impl BatchData {
    pub fn new(column: &ColumnSchema, samples: &[ModelSample]) -> Self {
        // the values of a null are ignored, so they are garbage here
        let garbage = &mut Random(samples.len() as u64);
        let sample_bytes = inner_bytes(column) / column.dtype.element_bytes() * column.pushed_dtype().element_bytes();
        let has_nulls = samples.iter().any(Option::is_none);
        let mut batch = Self {
            dtype: column.pushed_dtype(),
            sample_count: samples.len(),
            extents: Vec::new(),
            values: Vec::new(),
            // bits beyond the last sample are ignored as well
            validity: has_nulls.then(|| vec![0xFF; samples.len().div_ceil(8)]),
        };
        for (i, sample) in samples.iter().enumerate() {
            match (sample, &mut batch.validity) {
                (Some(value), _) => {
                    batch.extents.extend(&value.extents);
                    batch.values.extend(&value.bytes);
                }
                (None, Some(validity)) => {
                    validity[i / 8] &= !(1 << (i % 8));
                    batch.extents.extend(vec![0; column.shape.varying_count()]);
                    if !column.shape.is_ragged() {
                        batch.values.extend(garbage.bytes(sample_bytes));
                    }
                }
                (None, None) => unreachable!("there are nulls"),
            }
        }
        batch
    }

    pub fn as_batch(&self) -> ColumnBatch<'_> {
        let batch = ColumnBatch::from_bytes(self.dtype, self.sample_count, &self.extents, &self.values);
        match &self.validity {
            Some(validity) => batch.with_validity(validity),
            None => batch,
        }
    }
}

pub fn push_batch<K: Sink>(writer: &mut Writer<K>, table: &Table, range: Range<usize>) -> Result<()> {
    let columns = table.schema.columns.iter().zip(&table.columns);
    let data: Vec<BatchData> =
        columns.map(|(column, samples)| BatchData::new(column, &samples[range.clone()])).collect();
    let batches: Vec<ColumnBatch> = data.iter().map(BatchData::as_batch).collect();
    writer.push_batch(&batches)
}
