//! Recovers the intact chunks of a damaged file (chapter 10.6).
//!
//! Finding chunks is easy. A region header starts at a multiple of 64, and is recognizable by its
//! CRC, its file id and its own offset. A chunk's header also states its column and its samples, so
//! the chunk can be placed without an index. The hard question is whether a chunk belongs to this
//! file. Two files of the same schema and options have the same file id. After a lost write, an
//! interrupted copy or a partial restore, this file can contain a chunk of an older file with valid
//! checksums, and returning it would give wrong values without an error.
//!
//! So salvage first gathers chunks and then removes those that do not belong, in four steps:
//!
//! 1. [`scan`] tests every multiple of 64 and lists the regions with intact headers. The id that
//!    most intact chunks have is taken as the id of this file.
//! 2. [`evidence`] consults the index and the footers. The content id of a commit is a hash of its
//!    index pages and its footer. If it matches, the chunks that these pages list are *confirmed*,
//!    and any other chunk in the range of that commit is contradicted. Damaged or stale pages are
//!    restored from chunk headers, which state the same fields.
//! 3. [`links`] compares neighbors. Each header repeats the CRC of the header before it, so two
//!    neighbors that disagree cannot both belong to this file.
//! 4. [`chunks`] accepts the remaining chunks, in file order, and recovers the intact blocks of
//!    damaged ones. The result is an ordinary reader that finds its chunks in an in-memory list
//!    instead of the index. Samples keep their indices; samples in no chunk are lost.
//!
//! Invariants: a chunk that any evidence contradicts is never returned. If two chunks contradict
//! each other and it is unknown which one is foreign, both are lost. Samples that nothing confirms
//! are returned, but reported as unconfirmed.

mod chunks;
mod evidence;
mod links;
mod scan;

use crate::format::region::HEADER_LEN;
use crate::format::{ContentId, FileId, Schema};
use crate::open::{FirstBytes, InMemory, Source};
use crate::read::file::reader::Reader;
use crate::read::file::records::SlotCache;
use crate::read::file::state::{ColumnIndex, ReaderInner, SalvagedChunks, Verification};
use crate::read::losses::{Losses, LostSamples};
use crate::{Result, limits};
use chunks::{SalvagedColumn, SalvagedContent};
use evidence::Evidence;
use links::Foreign;
use scan::{Identity, ScanProgress};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A damaged file whose intact samples can be read.
#[non_exhaustive]
pub struct Salvaged {
    /// Reads every intact chunk and the intact blocks of damaged chunks. Samples keep their
    /// indices. Reading a lost sample returns an error of kind
    /// [`Corrupt`](crate::ErrorKind::Corrupt) that names the lost range. The facts of a column
    /// cover the chunks that are at least partly intact.
    pub reader: Reader,
    /// Exactly the lost samples.
    pub losses: Losses,
    /// The samples that can be read but are not confirmed by anything in the file. They can come
    /// from an older file of the same schema, so their values can be wrong. None of them is lost.
    pub unconfirmed: Losses,
    /// Whether the header is intact. If not, the schema comes from a footer.
    pub file_header_is_intact: bool,
    /// The number of samples up to the last commit whose footer is intact.
    pub committed_samples: Option<u64>,
    /// Whether [`Reader::sample_count`] is certainly complete, that is, whether the writer finished
    /// the file and its end is intact. If not, more samples can be lost at the end without a trace.
    /// If samples are unconfirmed, the end itself can come from an older file.
    pub end_is_known: bool,
}

/// Facts about the commit that are known from outside the file.
#[derive(Clone, Copy)]
struct KnownCommit {
    bytes: u64,
    sample_count: u64,
}

/// The options of [`salvage`].
#[derive(Default)]
#[non_exhaustive]
pub struct SalvageOptions<'a> {
    deep: bool,
    verification: Verification,
    commit: Option<KnownCommit>,
    content_id: Option<ContentId>,
    progress: Option<&'a mut dyn FnMut(u64, u64) -> ControlFlow<()>>,
}

impl<'a> SalvageOptions<'a> {
    /// Returns the defaults: verifies the checksum of each chunk, and decodes none.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether to also decode chunks (default: no). A chunk that does not decode is lost even
    /// if its checksum is correct. Only a faulty writer causes that; damage does not.
    pub fn deep(mut self, deep: bool) -> Self {
        self.deep = deep;
        self
    }

    /// Sets when the resulting reader verifies chunks again. The default is
    /// [`Verification::FirstTouch`].
    pub fn verification(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// Sets the commit to salvage, if it is known, for example from a manifest: the length of the
    /// file up to it, and its number of samples. Bytes after it are not read, and samples missing
    /// at its end are lost. By default the whole file is salvaged.
    pub fn commit(mut self, bytes: u64, sample_count: u64) -> Self {
        self.commit = Some(KnownCommit { bytes, sample_count });
        self
    }

    /// Sets the content id of the last commit, if it is known, for example from a manifest. Then
    /// only the index that belongs to it confirms chunks. By default, the index that confirms the
    /// largest number of chunks is used.
    pub fn content_id(mut self, content_id: ContentId) -> Self {
        self.content_id = Some(content_id);
        self
    }

    /// Sets a function that is called from time to time with the number of bytes examined and the
    /// total number. If it returns [`Break`](ControlFlow::Break), the salvage ends with an error of
    /// kind [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
}

/// Opens a damaged file. The damage can be anywhere: in the header, the index, the footer, the
/// trailer or the chunks.
///
/// Scans the whole file for intact chunks at valid offsets; the index is not needed to find them.
/// If a chunk that is divided into blocks is damaged and its block index is intact, only the
/// samples with a byte in a damaged block are lost. If some bytes of a chunk cannot be read, the
/// whole chunk is lost. Damaged pages of the index are restored from the chunks if the footer
/// confirms the result.
///
/// A lost write, an interrupted copy or a partial restore can leave a chunk of an older file of the
/// same schema. If the footer and the index are intact, they contradict such a chunk, and it counts
/// as lost. If they are damaged, it counts as lost if the regions before and after it contradict
/// it. A chunk of a file that has a common prefix with this one can pass that check, so all samples
/// that nothing confirms are reported as [unconfirmed](Salvaged::unconfirmed). So are the samples
/// of chunks that a killed writer left after the last commit.
///
/// The schema comes from the header or from any footer. Fails if none of them is intact, or if this
/// release cannot read the file.
///
/// Cost: one pass over the file, and a second one if chunks are decoded. Allocates memory for the
/// largest chunk, 200 bytes for each region, and at most 16 times the stored size of damaged chunks
/// that have blocks. These chunks are read again, and their validity and shape are decoded. A
/// malicious file can contain many headers that each claim the rest of the file as their body. The
/// first pass then takes time quadratic in the length of the file.
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
/// file[1000] ^= 1; // damages a chunk
/// let end = file.len() - 500;
/// file.truncate(end); // removes the whole index
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
    let identity = scan::identify(&*source, &regions)?;
    if options.deep {
        progress.begin_decoding(regions.iter().map(|region| &region.header));
    }
    let evidence = Evidence::collect(&*source, &identity, &regions, options.content_id)?;
    let regions: Vec<_> = regions.iter().filter(|region| region.header.file_id == identity.file_id).collect();
    let column_count = identity.schema.columns.len();
    let foreign = Foreign::find(&regions, |region| evidence.claim(&region.header, column_count))?;
    let judges = (&evidence, &foreign);
    let mut found = chunks::collect(&*source, &identity, judges, &regions, options.deep, &mut progress)?;
    if let Some(commit) = options.commit {
        found.end_at(commit.sample_count)?;
    }
    let is_finished = found.end_is_known;
    Ok(salvaged(source, options.verification, identity, found, is_finished))
}

/// Builds the reader of the recovered chunks, and the lists of lost and unconfirmed samples.
fn salvaged(
    source: Arc<dyn Source>,
    verification: Verification,
    identity: Identity,
    found: SalvagedContent,
    is_finished: bool,
) -> Salvaged {
    let sample_count = found.sample_count;
    let footer = found.footer;
    let casts = footer.iter().flat_map(|footer| footer.columns.iter().map(|facts| facts.cast));
    let casts = casts.chain(std::iter::repeat(None));
    let (mut columns, mut losses, mut unconfirmed) = (Vec::new(), Vec::new(), Vec::new());
    for (((number, column), schema), cast) in (0..).zip(found.columns).zip(&identity.schema.columns).zip(casts) {
        let SalvagedColumn { layout, mut facts, entries, lost, unconfirmed: unconfirmed_samples, tables } = column;
        facts.cast = schema.cast.and(cast);
        let salvaged_chunks = SalvagedChunks::new(entries, lost, sample_count);
        losses.push((schema.name.clone(), salvaged_chunks.lost().clone()));
        let unconfirmed_samples =
            LostSamples::of_ranges(sample_count, unconfirmed_samples).without(salvaged_chunks.lost());
        unconfirmed.push((schema.name.clone(), unconfirmed_samples));
        columns.push(ColumnIndex::salvaged(number, layout, facts, tables, salvaged_chunks));
    }
    let reader = Reader::new(ReaderInner {
        path: None,
        file_id: identity.file_id,
        content_id: footer.as_ref().map_or(ContentId::default(), |footer| footer.content_id),
        alignment: identity.alignment.unwrap_or(HEADER_LEN as u32), // 64
        schema: identity.schema,
        columns,
        index_pages: SlotCache::new(0, 0),
        sample_count,
        commit_count: footer.as_ref().map_or(0, |footer| footer.commit.saturating_add(1)),
        is_finished,
        footer_offset: 0,
        tail_bytes: 0,
        full_source: None,
        verification,
        max_chunk_bytes: limits::CHUNK_BYTES,
        source,
    });
    Salvaged {
        reader,
        losses: Losses { columns: losses },
        unconfirmed: Losses { columns: unconfirmed },
        file_header_is_intact: identity.alignment.is_some(),
        committed_samples: found.last_footer.map(|(_, sample_count)| sample_count),
        end_is_known: found.end_is_known,
    }
}

/// Returns the result for a file that is completely lost, given its columns and its number of
/// samples, for example from a manifest. [`Salvaged::write_to`] turns it into a file of nulls.
pub fn all_lost(schema: Schema, sample_count: u64) -> Result<Salvaged> {
    schema.check()?;
    let columns = schema.columns.iter().map(SalvagedColumn::empty).collect::<Result<_>>()?;
    let found = SalvagedContent { columns, sample_count, footer: None, last_footer: None, end_is_known: true };
    let identity = Identity { file_id: FileId::default(), schema, schema_block: Vec::new(), alignment: None };
    let source = Arc::new(InMemory(Vec::new()));
    Ok(salvaged(source, Verification::default(), identity, found, false))
}
