//! Reading what is left of a damaged file (chapter 10, "Salvage").

mod chunks;
mod evidence;
mod identity;
mod links;
mod options;
mod progress;
mod scan;

pub use options::SalvageOptions;

use crate::format::column_record::ColumnRecord;
use crate::format::region::HEAD;
use crate::format::{ContentId, FileId, Schema};
use crate::open::{FirstBytes, InMemory, Source};
use crate::read::file::column_index::ColumnIndex;
use crate::read::file::opened_file::OpenedFile;
use crate::read::file::options::Verification;
use crate::read::file::reader::Reader;
use crate::read::file::slot_cache::SlotCache;
use crate::read::locate::listed::Listed;
use crate::read::locate::losses::{Losses, LostSamples};
use crate::{Result, limits};
use chunks::FoundColumn;
use evidence::Evidence;
use links::Foreign;
use progress::ScanProgress;
use std::sync::Arc;

/// A damaged file, of which all that is intact can be read.
#[non_exhaustive]
pub struct Salvaged {
    /// The reader of every intact chunk, and of the intact blocks of damaged chunks. Samples keep
    /// their numbers. A lost sample gives an error of kind [`Corrupt`](crate::ErrorKind::Corrupt)
    /// that names the lost range. Facts of columns are those of the chunks of which anything is
    /// intact.
    pub reader: Reader,
    /// Exactly what is lost.
    pub losses: Losses,
    /// The samples that can be read, but that nothing in the file confirms. An older file of the
    /// same schema may have left them there, so their values may be wrong. None of them is lost.
    pub unconfirmed: Losses,
    /// Whether the header is intact; if not, the schema is that of a footer.
    pub header_is_intact: bool,
    /// The number of samples up to the last commit whose footer is intact.
    pub committed_samples: Option<u64>,
    /// Whether [`Reader::sample_count`] is certainly complete: the end of the file is intact and
    /// finished. If not, more samples may be lost at the end without a trace. If samples are
    /// unconfirmed, the end may be that of an older file, too.
    pub end_is_known: bool,
}

/// Opens a file of which any part may be damaged: header, index, footer, trailer or chunks.
///
/// Scans the file from its first byte to its last for intact chunks at valid offsets; the index is
/// not needed to find them. A lost write, an interrupted copy or a partial restore can leave a
/// chunk that an older file of the same schema had in the same place. If footer and index are
/// intact, such a chunk is lost, because they contradict it. If they are damaged, too, it is lost
/// if the regions before and after it contradict it. Twins with a common beginning can escape that,
/// so all chunks that nothing confirms are reported as [unconfirmed](Salvaged::unconfirmed).
/// Damaged pages of the index are restored from the chunks if the footer confirms the result. If a
/// chunk in blocks is damaged and its front is intact, only the samples that have a byte in a
/// damaged block are lost; if bytes of it cannot be read, all of it is. Chunks after the last
/// commit count, unconfirmed: a killed writer wrote them. The schema comes from the header or from
/// any footer. If neither is intact, the file is lost, which is an error. A file that this release
/// cannot read is an error, too.
///
/// Cost: one pass over the file, and a second one if it decodes. Memory for the largest chunk, 200
/// bytes for each region, and at most 16 times the stored bytes of damaged chunks in blocks. These
/// are read again, and their validity and shape are decoded. A malicious file can contain many
/// heads that each claim the rest of it. The first pass then takes time quadratic in its length.
///
/// ```
/// use tensilo::salvage::{OnLoss, SalvageOptions, salvage};
/// use tensilo::source::InMemory;
/// # use tensilo::{ColumnSchema, DType, Profile, Schema, Shape, Value, Writer, WriterOptions};
/// # use tensilo::sink::Stream;
/// # let schema = Schema::new([ColumnSchema::tensor("label", DType::I32, Shape::scalar())]);
/// # let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(400);
/// # let mut writer = Writer::new(Stream(Vec::new()), schema, &options)?;
/// # for label in 0..1000_i32 { writer.push(&[Value::tensor(&[label])])?; }
/// # let mut file = writer.into_bytes()?;
/// file[1000] ^= 1; // a bit of a chunk
/// let end = file.len() - 500;
/// file.truncate(end); // and the whole index
///
/// let salvaged = salvage(InMemory(file), SalvageOptions::new())?;
/// let lost = salvaged.losses.of(&["label"])?;
/// assert_eq!(lost.ranges(), [100..200]);
/// assert_eq!(salvaged.unconfirmed.of(&["label"])?.ranges(), [0..100, 200..1000]);
/// let mut samples = Vec::new();
/// lost.resolve(&[99, 100, 199, 200], OnLoss::Skip, &mut samples)?;
/// assert_eq!(samples, [99, 200]);
/// assert_eq!(salvaged.reader.column("label")?.cursor().read(200)?.as_slice::<i32>()?, [200]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn salvage(source: impl Source + 'static, options: SalvageOptions<'_>) -> Result<Salvaged> {
    salvage_shared(Arc::new(source), options)
}

fn salvage_shared(source: Arc<dyn Source>, options: SalvageOptions<'_>) -> Result<Salvaged> {
    let source: Arc<dyn Source> = match options.commit {
        Some(commit) => Arc::new(FirstBytes::new(source, commit.bytes)),
        None => source,
    };
    let mut progress = ScanProgress::new(source.byte_count(), options.progress);
    let regions = scan::regions(&*source, &mut progress)?;
    let identity = identity::identify(&*source, &regions)?;
    if options.decode {
        progress.begin_decoding(regions.iter().map(|region| &region.head));
    }
    let evidence = Evidence::collect(&*source, &identity, &regions, options.content_id)?;
    let regions: Vec<_> = regions.iter().filter(|region| region.head.file_id == identity.file_id).collect();
    let column_count = identity.schema.columns.len();
    let foreign = Foreign::find(&regions, |region| evidence.claim(&region.head, column_count))?;
    let judges = (&evidence, &foreign);
    let mut found = chunks::collect(&*source, &identity, judges, &regions, options.decode, &mut progress)?;
    if let Some(commit) = options.commit {
        found.end_at(commit.sample_count)?;
    }
    let sample_count = found.sample_count;
    let footer = found.footer;
    let casts = footer.iter().flat_map(|footer| footer.columns.iter().map(|facts| facts.cast));
    let casts = casts.chain(std::iter::repeat(None));
    let (mut columns, mut losses, mut unconfirmed) = (Vec::new(), Vec::new(), Vec::new());
    for (((number, column), schema), cast) in (0..).zip(found.columns).zip(&identity.schema.columns).zip(casts) {
        let FoundColumn { layout, mut facts, entries, lost, unconfirmed: doubtful, tables } = column;
        facts.cast = schema.cast.and(cast);
        let listed = Listed::new(entries, lost, sample_count);
        losses.push((schema.name.clone(), listed.lost().clone()));
        let doubtful = LostSamples::of_ranges(sample_count, doubtful).without(listed.lost());
        unconfirmed.push((schema.name.clone(), doubtful));
        columns.push(ColumnIndex::salvaged(number, layout, facts, tables, listed));
    }
    let reader = Reader::new(OpenedFile {
        path: None,
        file_id: identity.file_id,
        content_id: footer.as_ref().map_or(ContentId::default(), |footer| footer.content_id),
        alignment: identity.alignment.unwrap_or(HEAD as u32), // 64
        schema: identity.schema,
        columns,
        index_pages: SlotCache::new(0, 0),
        sample_count,
        commit_count: footer.as_ref().map_or(0, |footer| footer.commit.saturating_add(1)),
        is_finished: found.end_is_known,
        footer_offset: 0,
        tail_bytes: 0,
        with_tail: None,
        verification: options.verification,
        max_chunk_bytes: limits::CHUNK_BYTES,
        source,
    });
    Ok(Salvaged {
        reader,
        losses: Losses { columns: losses },
        unconfirmed: Losses { columns: unconfirmed },
        header_is_intact: identity.alignment.is_some(),
        committed_samples: found.last_footer.map(|(_, sample_count)| sample_count),
        end_is_known: found.end_is_known,
    })
}

/// Returns a file of which nothing is left but its columns and its number of samples, as a manifest
/// knows them: all samples of all columns are lost. [`Salvaged::write_to`] makes a file of nulls of
/// it.
pub fn nothing_left(schema: Schema, sample_count: u64) -> Result<Salvaged> {
    schema.check()?;
    let (mut columns, mut losses, mut unconfirmed) = (Vec::new(), Vec::new(), Vec::new());
    for (number, column) in (0..).zip(&schema.columns) {
        let listed = Listed::new(Vec::new(), Vec::new(), sample_count);
        losses.push((column.name.clone(), listed.lost().clone()));
        unconfirmed.push((column.name.clone(), LostSamples::of_ranges(sample_count, Vec::new())));
        columns.push(ColumnIndex::salvaged(number, column.layout()?, ColumnRecord::default(), Vec::new(), listed));
    }
    let reader = Reader::new(OpenedFile {
        path: None,
        file_id: FileId::default(),
        content_id: ContentId::default(),
        alignment: HEAD as u32, // 64
        schema,
        columns,
        index_pages: SlotCache::new(0, 0),
        sample_count,
        commit_count: 0,
        is_finished: false,
        footer_offset: 0,
        tail_bytes: 0,
        with_tail: None,
        verification: Verification::default(),
        max_chunk_bytes: limits::CHUNK_BYTES,
        source: Arc::new(InMemory(Vec::new())),
    });
    Ok(Salvaged {
        reader,
        losses: Losses { columns: losses },
        unconfirmed: Losses { columns: unconfirmed },
        header_is_intact: false,
        committed_samples: None,
        end_is_known: true,
    })
}
