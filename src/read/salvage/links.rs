//! Whose region is this: the chain of `previous`.
//!
//! Two files of the same schema and options have the same file id, so an id does not tell a chunk
//! of this file from one that an older file, or an older state of this one, has left in its place.
//! But each head repeats the checksum of the head before it, and thereby depends on everything
//! before. Two neighbours whose heads do not agree are a *break*: at least one of them is foreign.
//! Damage of a body does not break the chain, since the heads are intact.
//!
//! Regions between breaks, or between lost heads, form a *segment*: if one of its regions is of
//! this file, so are all before it in the segment. Regions of this file are known by what index and
//! footers confirm, and else by the end of the file, which is its last trailer. This decides
//! breaks:
//!
//! 1. A segment that both neighbours contradict is foreign: nothing but itself accepts it.
//! 2. If one side of a break is of this file, the other is foreign. What follows it in its segment
//!    is foreign, too, as it comes from the same other file. What precedes it need not be: twins
//!    can have a common beginning.
//! 3. Otherwise it is unknown which side is foreign, and both regions at the break are given up.
//!
//! A break beside a chunk that the index contradicts is explained by that chunk, and accuses
//! nothing else. Where twins have a common beginning, and the end of this file is lost, too, rule 3
//! finds the last foreign chunk only. So without index and footers no chunk is ever *confirmed* by
//! its links; links can only contradict.
//!
//! Rejected: to trust the longest segment. An interrupted copy leaves more of the old file than of
//! the new one, and then this returns old values.

use super::scan::Region;
use crate::Result;
use crate::bytes::memory;
use crate::format::region::{HEADER_LEN, RegionHeader, RegionKind};
use std::ops::Range;

/// What index and footers say about a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It is of this file.
    Own,
    /// Nothing is known.
    Unknown,
    /// It is not of this file.
    Foreign,
}

/// The link between a region and the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Intact,
    Broken,
    /// A region between them may be lost, or one of them is known to be foreign.
    Unknown,
}

/// The regions that are contradicted by their neighbours.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    /// Their offsets, in ascending order.
    offsets: Vec<u64>,
    /// The offset of the last region that is of the file, if one is known.
    last_own: Option<u64>,
}

impl Foreign {
    pub(super) fn contains(&self, offset: u64) -> bool {
        self.offsets.binary_search(&offset).is_ok()
    }

    /// Returns whether a region at this offset is in the place of one of the file, so that the file
    /// has lost what it states.
    pub(super) fn is_loss(&self, offset: u64) -> bool {
        self.contains(offset) && self.last_own.is_none_or(|last| offset < last)
    }

    /// Compares the regions of a file with their neighbours. `claim` says what else is known of a
    /// region.
    ///
    /// Cost: one pass. Memory: 3 bytes for each region, and 8 for each that is foreign.
    pub(super) fn find(regions: &[&Region], claim: impl Fn(&Region) -> Claim) -> Result<Self> {
        let mut claims = memory::with_capacity(regions.len())?;
        claims.extend(regions.iter().map(|region| claim(region)));
        // the state of a file is that of its last trailer
        let knows_end = claims.contains(&Claim::Own);
        let last = regions.iter().rposition(|region| region.header.kind == RegionKind::Trailer);
        if let Some(claim) = last.filter(|_| !knows_end).and_then(|last| claims.get_mut(last)) {
            *claim = Claim::Own;
        }
        let mut links = memory::with_capacity(regions.len())?;
        let pairs = regions.iter().zip(regions.iter().skip(1)).zip(claims.iter().zip(claims.iter().skip(1)));
        links.extend(pairs.map(|((one, next), claims)| match claims {
            (Claim::Foreign, _) | (_, Claim::Foreign) => Link::Unknown,
            _ => link(&one.header, &next.header),
        }));
        let last_own = claims.iter().rposition(|claim| *claim == Claim::Own).and_then(|at| regions.get(at));
        let mut found = Self { offsets: Vec::new(), last_own: last_own.map(|region| region.header.offset) };
        let segments = Segments { claims: &claims, links: &links, next: 0 };
        segments.for_each_foreign(|at| {
            memory::reserve(&mut found.offsets, 1)?;
            found.offsets.extend(regions.get(at).map(|region| region.header.offset));
            Ok(())
        })?;
        Ok(found)
    }
}

/// Compares neighbours. Nothing is known if a lost region fits between them, for instance in the
/// padding of a large alignment.
fn link(one: &RegionHeader, next: &RegionHeader) -> Link {
    if next.check_previous(one.header_crc()).is_ok() {
        return Link::Intact;
    }
    if next.offset.saturating_sub(one.end()) < HEADER_LEN { Link::Broken } else { Link::Unknown }
}

/// The segments of a file, one after the other.
struct Segments<'a> {
    claims: &'a [Claim],
    /// One fewer than claims.
    links: &'a [Link],
    next: usize,
}

/// A segment, and how far it is of this file.
struct Segment {
    regions: Range<usize>,
    /// The end of its regions that are of this file: those up to the last that is known to be.
    own: usize,
    follows_break: bool,
    precedes_break: bool,
}

impl Segment {
    /// Rule 1.
    fn is_foreign(&self) -> bool {
        self.follows_break && self.precedes_break && self.own == self.regions.start
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        let start = self.next;
        let rest = self.links.get(start..).unwrap_or(&[]);
        let length = rest.iter().take_while(|link| **link == Link::Intact).count() + 1;
        let end = start + length;
        let claims = self.claims.get(start..end)?;
        let own = claims.iter().rposition(|claim| *claim == Claim::Own).map_or(start, |last| start + last + 1);
        let is_break = |at: Option<usize>| at.and_then(|at| self.links.get(at)) == Some(&Link::Broken);
        let (follows_break, precedes_break) = (is_break(start.checked_sub(1)), is_break(Some(end - 1)));
        self.next = end;
        Some(Segment { regions: start..end, own, follows_break, precedes_break })
    }
}

impl Segments<'_> {
    /// Calls `add` for each region that is foreign or given up, in order.
    fn for_each_foreign(self, mut add: impl FnMut(usize) -> Result<()>) -> Result<()> {
        let mut segments = self.peekable();
        let mut before: Option<Segment> = None;
        while let Some(segment) = segments.next() {
            let Segment { regions, own, follows_break, precedes_break } = &segment;
            if segment.is_foreign() {
                regions.clone().try_for_each(&mut add)?;
            } else {
                // a break beside a foreign segment is explained
                let other = before.as_ref().filter(|other| *follows_break && !other.is_foreign());
                let mut foreign = regions.start..regions.start;
                if let Some(other) = other.filter(|_| *own == regions.start) {
                    let is_own = other.own == other.regions.end; // rule 2, or else rule 3
                    foreign.end = if is_own { regions.end } else { regions.start + 1 };
                }
                foreign.clone().try_for_each(&mut add)?;
                let next = segments.peek().filter(|next| *precedes_break && !next.is_foreign());
                let last = regions.end - 1;
                if next.is_some() && *own <= last && !foreign.contains(&last) {
                    add(last)?;
                }
            }
            before = Some(segment);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The foreign regions of a sequence: a letter for each region (`o` own, `u` unknown), and
    /// between them `-` for a right link, `|` for a break and ` ` for neither.
    fn foreign(file: &str) -> Vec<usize> {
        let claims: Vec<_> =
            file.chars().step_by(2).map(|c| if c == 'o' { Claim::Own } else { Claim::Unknown }).collect();
        let link = |c| match c {
            '-' => Link::Intact,
            '|' => Link::Broken,
            _ => Link::Unknown,
        };
        let links: Vec<_> = file.chars().skip(1).step_by(2).map(link).collect();
        let mut found = Vec::new();
        let segments = Segments { claims: &claims, links: &links, next: 0 };
        segments
            .for_each_foreign(|at| {
                found.push(at);
                Ok(())
            })
            .expect("no memory is taken");
        found
    }

    #[test]
    fn breaks_are_decided_by_what_is_known() {
        let none: [usize; 0] = [];
        assert_eq!(foreign(""), none);
        assert_eq!(foreign("u-u-u-o"), none);
        assert_eq!(foreign("u-u u-u"), none, "a region between them is lost");
        assert_eq!(foreign("u-u|u|u-u"), [2], "rule 1");
        assert_eq!(foreign("u-u|u-u|u-u"), [2, 3], "rule 1");
        assert_eq!(foreign("u|u|u|u-u"), [1, 2], "one between two foreign ones");
        assert_eq!(foreign("u-u-u|u-u-o"), [2], "rule 2: a common beginning");
        assert_eq!(foreign("u-o|u-u-u"), [2, 3, 4], "rule 2: what follows the end");
        assert_eq!(foreign("u-u-u|u-u-u"), [2, 3], "rule 3");
        assert_eq!(foreign("u|u"), [0, 1], "rule 3");
        assert_eq!(foreign("u-u|u u-o"), [1, 2], "rule 3: the end says nothing about them");
        assert_eq!(foreign("o|u|u-o"), [1]);
        assert_eq!(foreign("o|o"), none, "index and footers confirm both");
        assert_eq!(foreign("u|o|u"), [0, 2], "what is own is not given up");
        assert_eq!(foreign("o-u|u-u"), [1, 2], "rule 3 after a region that is own");
    }
}
