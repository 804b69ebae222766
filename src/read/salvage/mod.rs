//! Reading what is left of a damaged file (chapter 10, "Salvage").
//!
//! A salvage takes four steps. The scan finds every region whose head is intact, and identifies the
//! file. Evidence tells which chunks the index and the footers confirm or contradict. Links tell
//! which regions their neighbours contradict. Then the chunks that nothing contradicts are
//! collected, and become the columns of a reader, which lists them in memory instead of reading an
//! index.
//!
//! A chunk that is returned although it is from another file would give wrong values without an
//! error. So what cannot be told apart is given up, and what nothing confirms is reported.

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

/// The facts of a commit that something else than the file tells.
#[derive(Clone, Copy)]
struct KnownCommit {
    bytes: u64,
    sample_count: u64,
}

/// The options of [`salvage`].
#[derive(Default)]
#[non_exhaustive]
pub struct SalvageOptions<'a> {
    decode: bool,
    verification: Verification,
    commit: Option<KnownCommit>,
    content_id: Option<ContentId>,
    progress: Option<&'a mut dyn FnMut(u64, u64) -> ControlFlow<()>>,
}

impl<'a> SalvageOptions<'a> {
    /// Returns the defaults: the checksum of each chunk is checked, no chunk is decoded.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether chunks are decoded (default: no). If a chunk does not decode, its samples are
    /// lost, even if its checksum is right. Only a faulty writer causes that, no damage.
    pub fn decode(mut self, decode: bool) -> Self {
        self.decode = decode;
        self
    }

    /// Sets when the reader checks chunks again. The default is [`Verification::FirstTouch`].
    pub fn verification(mut self, verification: Verification) -> Self {
        self.verification = verification;
        self
    }

    /// Says which commit is salvaged, as a manifest knows it: the length of the file up to it, and
    /// its number of samples. Bytes after it are not read, and samples that are missing at the end
    /// are lost. By default all samples count that the file has.
    pub fn commit(mut self, bytes: u64, sample_count: u64) -> Self {
        self.commit = Some(KnownCommit { bytes, sample_count });
        self
    }

    /// Says which content id the last commit has, as a manifest knows it. Chunks are then confirmed
    /// only by an index that belongs to it. By default, the index that confirms the most chunks
    /// counts.
    pub fn content_id(mut self, content_id: ContentId) -> Self {
        self.content_id = Some(content_id);
        self
    }

    /// Sets a function that is called from time to time with two numbers: the bytes examined, and
    /// all bytes to examine. If it breaks, the work ends with an error of kind
    /// [`Cancelled`](crate::ErrorKind::Cancelled).
    pub fn progress(mut self, progress: &'a mut dyn FnMut(u64, u64) -> ControlFlow<()>) -> Self {
        self.progress = Some(progress);
        self
    }
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
    let identity = scan::identify(&*source, &regions)?;
    if options.decode {
        progress.begin_decoding(regions.iter().map(|region| &region.header));
    }
    let evidence = Evidence::collect(&*source, &identity, &regions, options.content_id)?;
    let regions: Vec<_> = regions.iter().filter(|region| region.header.file_id == identity.file_id).collect();
    let column_count = identity.schema.columns.len();
    let foreign = Foreign::find(&regions, |region| evidence.claim(&region.header, column_count))?;
    let judges = (&evidence, &foreign);
    let mut found = chunks::collect(&*source, &identity, judges, &regions, options.decode, &mut progress)?;
    if let Some(commit) = options.commit {
        found.end_at(commit.sample_count)?;
    }
    let is_finished = found.end_is_known;
    Ok(salvaged(source, options.verification, identity, found, is_finished))
}

/// Makes the reader of the chunks that were found, and says what is lost.
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
        header_is_intact: identity.alignment.is_some(),
        committed_samples: found.last_footer.map(|(_, sample_count)| sample_count),
        end_is_known: found.end_is_known,
    }
}

/// Returns a file of which nothing is left but its columns and its number of samples, as a manifest
/// knows them: all samples of all columns are lost. [`Salvaged::write_to`] makes a file of nulls of
/// it.
pub fn all_lost(schema: Schema, sample_count: u64) -> Result<Salvaged> {
    schema.check()?;
    let columns = schema.columns.iter().map(SalvagedColumn::empty).collect::<Result<_>>()?;
    let found = SalvagedContent { columns, sample_count, footer: None, last_footer: None, end_is_known: true };
    let identity = Identity { file_id: FileId::default(), schema, schema_block: Vec::new(), alignment: None };
    let source = Arc::new(InMemory(Vec::new()));
    Ok(salvaged(source, Verification::default(), identity, found, false))
}
