//! Chunks whose parts are all stored as they are in memory, so that nothing need be decoded.

use super::chunk_location::ChunkLocation;
use super::opened_column::OpenedColumn;
use crate::codec::{codec, parts};
use crate::format::chunk::ChunkHead;
use crate::format::content::Content;
use crate::format::part_table::Part;
use crate::format::region::HEAD;
use crate::open::source::slice;
use crate::{Error, Result, le};
use std::ops::Range;

/// The parts of a chunk as ranges of its body.
#[derive(Clone, Debug)]
pub(super) struct StoredParts {
    sample_count: usize,
    validity: Option<Range<usize>>,
    shape: Range<usize>,
    values: Range<usize>,
}

impl StoredParts {
    /// Returns the parts of a chunk that has nothing but values, stored as they are.
    #[inline]
    fn plain(location: &ChunkLocation, body: &[u8]) -> Self {
        Self { sample_count: location.sample_count(), validity: None, shape: 0..0, values: 0..body.len() }
    }

    /// Returns the parts in `body`, from which the ranges were made.
    #[inline]
    pub(super) fn content<'a>(&self, body: &'a [u8]) -> Content<'a> {
        let part = |range: &Range<usize>| body.get(range.clone()).unwrap_or(&[]);
        Content {
            sample_count: self.sample_count,
            validity: self.validity.as_ref().map(part),
            shape: part(&self.shape),
            values: part(&self.values),
        }
    }

    /// Returns the offset of the values in the body.
    pub(super) fn values_start(&self) -> usize {
        self.values.start
    }
}

impl OpenedColumn {
    /// Returns the parts of a chunk of a file that is in memory, checked, if they can be used
    /// there: nothing is encoded, and this machine's byte order is the file's.
    #[inline]
    pub(super) fn stored_parts(&self, file: &[u8], location: &ChunkLocation) -> Result<Option<StoredParts>> {
        if !self.has_stored_values(location)? {
            return Ok(None);
        }
        self.check_once(location)?;
        self.parts_of_body(location, body_in(file, location)?)
    }

    /// Returns the parts of a chunk as [`OpenedColumn::stored_parts`] does, if the values are all
    /// it has.
    #[inline]
    pub(super) fn plain_chunk(&self, file: &[u8], location: &ChunkLocation) -> Result<Option<StoredParts>> {
        let layout = self.layout();
        if location.entry.has_parts() || layout.has_shape() || !self.has_stored_values(location)? {
            return Ok(None);
        }
        self.check_once(location)?;
        let body = body_in(file, location)?;
        let parts = StoredParts::plain(location, body);
        parts.content(body).check_lengths(layout).map(|()| Some(parts))
    }

    /// Returns whether the values of a chunk are stored as they are, in this machine's byte order.
    #[inline]
    fn has_stored_values(&self, location: &ChunkLocation) -> Result<bool> {
        let in_order = le::FILE_ORDER_IS_NATIVE || self.layout().element_bytes == 1;
        Ok(in_order && codec(location.entry.encoding)?.is_identity())
    }

    /// Checks a chunk of a file that is in memory, unless that was done as the reader's policy
    /// asks.
    #[inline]
    fn check_once(&self, location: &ChunkLocation) -> Result<()> {
        if self.is_checked(location.chunk) { Ok(()) } else { self.check_chunk(location) }
    }

    #[cold]
    fn check_chunk(&self, location: &ChunkLocation) -> Result<()> {
        let mut unused = Vec::new();
        self.load_chunk(location, &mut unused).map(|_| ())
    }

    /// Returns the parts of a chunk whose values are stored as they are, if all its parts are.
    #[inline]
    fn parts_of_body(&self, location: &ChunkLocation, body: &[u8]) -> Result<Option<StoredParts>> {
        let (entry, layout) = (&location.entry, self.layout());
        let stored = if entry.has_parts() || layout.has_shape() {
            match self.parts_of_table(location, body)? {
                Some(stored) => stored,
                None => return Ok(None),
            }
        } else {
            StoredParts::plain(location, body)
        };
        stored.content(body).check_lengths(layout).map(|()| Some(stored))
    }

    fn parts_of_table(&self, location: &ChunkLocation, body: &[u8]) -> Result<Option<StoredParts>> {
        let is_stored = |part: &Part| Ok::<bool, Error>(part.is_absent() || codec(part.encoding)?.is_identity());
        let head = ChunkHead::from_entry(self.index().number, location.entry, body);
        let parts = parts(self.layout(), &head, body)?;
        if !is_stored(&parts.validity)? || !is_stored(&parts.shape)? {
            return Ok(None);
        }
        let Some([validity, shape, values]) = parts.ranges() else { return Ok(None) };
        if [parts.validity, parts.shape, parts.values].iter().any(|part| part.stored_bytes != part.raw_bytes) {
            return Err(Error::corrupt("R-5.3", "a raw part is not as long as its decoded bytes"));
        }
        let validity = (!parts.validity.is_absent()).then_some(validity);
        Ok(Some(StoredParts { sample_count: location.sample_count(), validity, shape, values }))
    }
}

/// Returns the body of a chunk in a file that is in memory.
#[inline]
pub(super) fn body_in<'a>(file: &'a [u8], location: &ChunkLocation) -> Result<&'a [u8]> {
    let length = usize::try_from(location.entry.stored_bytes).unwrap_or(usize::MAX);
    slice(file, location.entry.offset.saturating_add(HEAD), length)
}
