//! Samples of a view that stay on a GPU in stored form.
//!
//! Stored blocks are usually smaller than decoded values, so more samples fit in GPU memory. The
//! samples are read, checked and sent once, in uploads of about 64 MiB and in the order of the
//! view, until the caller's memory limit is reached. Only the samples of complete uploads are
//! resident; callers read the remaining samples batch by batch.

use super::collect::{Route, extents_of, with_column};
use crate::error::{DataError, Result};
use crate::loader::decode::BatchDecoder;
use crate::loader::fetch::fetch;
use crate::loader::plan::columns::ColumnSpec;
use crate::loader::plan::segments::Segments;
use crate::loader::setup::Setup;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use tensilo::ColumnSchema;
use tensilo_cuda::{Gpu, Resident, ResidentBuilder};

/// Samples of a view that stay in GPU memory, sent there by
/// [`LoaderOptions::resident`](crate::LoaderOptions::resident). Their indices are counted from the
/// first resident sample.
pub struct ResidentSamples {
    columns: Vec<ResidentColumn>,
    count: u64,
}

/// A column of [`ResidentSamples`].
pub struct ResidentColumn {
    schema: Arc<ColumnSchema>,
    samples: Resident,
    extents: Vec<u64>,
    nulls: Vec<u64>,
    filler: Vec<u8>,
}

impl fmt::Debug for ResidentSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples in {} bytes of GPU memory", self.count, self.byte_count())
    }
}

impl fmt::Debug for ResidentColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.schema.name, self.samples)
    }
}

impl ResidentSamples {
    /// Returns the columns, in the requested order.
    pub fn columns(&self) -> &[ResidentColumn] {
        &self.columns
    }

    /// Returns the number of resident samples.
    pub fn sample_count(&self) -> u64 {
        self.count
    }

    /// Returns the size of the samples in GPU memory, in bytes.
    pub fn byte_count(&self) -> usize {
        self.columns.iter().map(|column| column.samples.byte_count()).sum()
    }
}

impl ResidentColumn {
    /// Returns the schema of the delivered column. If the column is cast, this schema has the new
    /// type.
    pub fn schema(&self) -> &ColumnSchema {
        &self.schema
    }

    /// Returns the samples, for [gathering](Resident::gather) them into rows.
    pub fn samples(&self) -> &Resident {
        &self.samples
    }

    /// Returns the extents of a row: the shape of a sample, or of the longest sample if the column
    /// is padded.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Returns the element, in its delivered type, that fills the rest of a row after a shorter
    /// sample. Fill the rows with it before gathering samples into them.
    pub fn filler(&self) -> &[u8] {
        &self.filler
    }

    /// Returns the null samples in ascending order, counted from the first resident sample.
    pub fn nulls(&self) -> &[u64] {
        &self.nulls
    }
}

/// A column that is being uploaded.
struct ColumnBuilder {
    builder: ResidentBuilder,
    /// The extents of the samples as a tensor; the first is the number of samples.
    extents: Vec<u64>,
    nulls: Vec<u64>,
    /// The null samples of the current upload.
    upload_nulls: Vec<u64>,
}

/// Reads samples and sends them to the GPU.
pub(in crate::loader) fn build(
    setup: &Setup,
    gpu: &Gpu,
    samples: Range<u64>,
    max_bytes: usize,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<ResidentSamples> {
    let mut segments = Segments::default();
    let new = |(slot, spec): (usize, &ColumnSpec)| {
        let builder = ResidentBuilder::new(gpu, spec.stored.dtype, route(spec)?)?;
        let extents = extents_of(spec, &segments, slot, 0);
        Ok(ColumnBuilder { builder, extents, nulls: Vec::new(), upload_nulls: Vec::new() })
    };
    let mut columns = setup.columns.columns.iter().enumerate().map(new).collect::<Result<Vec<_>>>()?;
    let mut decoder = BatchDecoder::new(columns.len());
    let n = setup.view.sample_count();
    if samples.start > samples.end || samples.end > n {
        let message = format!("samples {}..{} are not in the view, which has {n} samples", samples.start, samples.end);
        return Err(DataError::BadArgument(message));
    }
    let total = samples.end.saturating_sub(samples.start);
    let mut count = 0;
    while count < total {
        if progress(count, total).is_break() {
            return Err(tensilo::Error::cancelled().into());
        }
        let start = samples.start.saturating_add(count);
        let upload_samples =
            columns.iter().map(|column| column.builder.next_upload_samples()).min().unwrap_or(1) as u64; // exact
        let samples: Vec<u64> = (start..samples.end.min(start.saturating_add(upload_samples))).collect();
        segments.find(setup, &samples, 0)?;
        let read = segments.plan(setup).and_then(|()| fetch(&mut segments, setup));
        let added =
            read.and_then(|()| add_upload(setup, &mut segments, &mut decoder, &mut columns, count, samples.len()));
        segments.release();
        added?;
        let bytes = columns.iter().map(|column| column.builder.byte_count());
        if bytes.fold(0, usize::saturating_add) > max_bytes {
            break;
        }
        for column in &mut columns {
            column.builder.end_upload()?;
            column.nulls.append(&mut column.upload_nulls);
        }
        count = count.saturating_add(samples.len() as u64); // exact
    }
    let columns = columns.into_iter().zip(&setup.columns.columns).map(|(column, spec)| {
        let extents = column.extents.get(1..).unwrap_or(&[]).to_vec();
        Ok(ResidentColumn {
            schema: spec.delivered.clone(),
            samples: column.builder.finish()?,
            extents,
            nulls: column.nulls,
            filler: spec.filler().0,
        })
    });
    let columns = columns.collect::<Result<_>>()?;
    Ok(ResidentSamples { columns, count })
}

/// Returns the conversion of the elements. Fails if the GPU cannot decode the samples as rows of
/// equal length.
fn route(spec: &ColumnSpec) -> Result<tensilo_cuda::Conversion> {
    let name = &spec.stored.name;
    let why = match Route::of(spec) {
        Route::Rows(conversion) => return Ok(conversion),
        Route::Host => "text, bytes and lists cannot stay on a GPU: choose other columns",
        Route::Decoded if spec.fixed_bytes.is_none() && spec.padding.is_none() => {
            "samples of different lengths can stay on a GPU only if the column is padded"
        }
        Route::Decoded => "a GPU can cast only from bf16 or f16 to f32, and can pad only the first dimension",
    };
    Err(DataError::BadArgument(format!("column {name:?}: {why}")))
}

/// Adds the samples of an upload, which starts at resident sample `first`.
fn add_upload(
    setup: &Setup,
    segments: &mut Segments,
    decoder: &mut BatchDecoder,
    columns: &mut [ColumnBuilder],
    first: u64,
    count: usize,
) -> Result<()> {
    for (slot, (column, spec)) in columns.iter_mut().zip(&setup.columns.columns).enumerate() {
        if segments.absent.iter().any(|(absent, _)| *absent == slot) {
            let message = format!("column {:?} cannot stay on a GPU: some files do not have it", spec.stored.name);
            return Err(DataError::BadArgument(message));
        }
        let Some(decoder) = decoder.decoders.get_mut(slot) else { continue };
        column.builder.begin_upload(count);
        column.upload_nulls.clear();
        for (segment, in_segment) in with_column(segments.all_mut(), slot) {
            setup.check_interrupt()?;
            let mut shapes = segment.take_buffer(in_segment);
            let rows = Some(segment.positions.as_slice());
            let added = column.builder.add(decoder, &segment.plan, &segment.bytes, in_segment, rows, &mut shapes);
            let nulls = segment.positions.iter().enumerate().filter(|(position, _)| shapes.is_null(*position));
            column.upload_nulls.extend(nulls.map(|(_, &row)| first.saturating_add(row as u64))); // exact
            segment.put_buffer(in_segment, shapes);
            added?;
        }
        column.upload_nulls.sort_unstable();
        let extents = extents_of(spec, segments, slot, count);
        column.extents.iter_mut().zip(extents).for_each(|(extent, of_upload)| *extent = (*extent).max(of_upload));
    }
    Ok(())
}
