//! Finds *foreign* regions, which belong to another file, by the field `previous` of the headers
//!
//!
//! Two files of the same schema and options have the same file id. So the id does not distinguish a
//! chunk of this file from a chunk that an older file, or an older state of this file, has left in
//! its place. But each header repeats the CRC of the header before it as `previous`, and so depends
//! on all headers before it. If two adjacent headers do not agree, at least one of their regions is
//! foreign. Such a disagreement is a *break*. Damage to a body does not cause a break, because the
//! headers are intact.
//!
//! A *segment* is a sequence of regions between breaks or lost headers. If one of its regions
//! belongs to this file, so do all regions before it in the segment. Some regions are known to
//! belong to this file: those that the index and the footers confirm, or, if they confirm none, the
//! last trailer, which ends the file. Three rules resolve breaks:
//!
//! 1. A segment with a break on both sides is foreign, because no other region agrees with it.
//! 2. If one side of a break belongs to this file, the other side is foreign. In the segment of the
//!    foreign region, the regions after it are also foreign, because they come from the same other
//!    file. The regions before it can belong to this file, because two files can have a common
//!    prefix.
//! 3. Otherwise it is unknown which side is foreign, and the regions on both sides count as
//!    foreign.
//!
//! A chunk that the index contradicts explains the breaks next to it, so they do not contradict any
//! other region.
//!
//! If two files have a common prefix and the end of this file is lost, rule 3 finds only the last
//! of several foreign chunks before a break. So links can contradict a chunk, but never *confirm*
//! one.
//!
//! Rejected: trusting the longest segment. An interrupted copy can leave more of the old file than
//! of the new one, and salvage would then return old values.

use super::scan::Region;
use crate::Result;
use crate::bytes::memory;
use crate::format::region::{HEADER_LEN, RegionHeader, RegionKind};
use std::ops::Range;

/// The verdict of the index and the footers on a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It belongs to this file.
    Own,
    /// Nothing is known.
    Unknown,
    /// It belongs to another file.
    Foreign,
}

/// The link between a region and the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Intact,
    Broken,
    /// A region between the two can be lost, or one of the two is known to be foreign.
    Unknown,
}

/// The regions that their neighbors contradict.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    /// Their offsets, in ascending order.
    offsets: Vec<u64>,
    /// The offset of the last region that is known to belong to this file.
    last_own: Option<u64>,
}

impl Foreign {
    pub(super) fn contains(&self, offset: u64) -> bool {
        self.offsets.binary_search(&offset).is_ok()
    }

    /// Returns whether a foreign region at this offset has replaced a region of this file, so that
    /// the samples it states count as lost.
    pub(super) fn is_loss(&self, offset: u64) -> bool {
        self.contains(offset) && self.last_own.is_none_or(|last| offset < last)
    }

    /// Compares regions with their neighbors. `claim` returns the verdict of the index and the
    /// footers on a region.
    ///
    /// Cost: one pass. Allocates 2 bytes for each region, and 8 bytes for each foreign region.
    pub(super) fn find(regions: &[&Region], claim: impl Fn(&Region) -> Claim) -> Result<Self> {
        let mut claims = memory::with_capacity(regions.len())?;
        claims.extend(regions.iter().map(|region| claim(region)));
        // if no region is known to belong to this file, its last trailer counts as known
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

/// Compares two neighbors. The link is unknown if a lost region fits between them, for instance in
/// the padding of a large alignment.
fn link(one: &RegionHeader, next: &RegionHeader) -> Link {
    if next.check_previous(one.header_crc()).is_ok() {
        return Link::Intact;
    }
    if next.offset.saturating_sub(one.end()) < HEADER_LEN { Link::Broken } else { Link::Unknown }
}

/// Iterates over the segments of a file.
struct Segments<'a> {
    claims: &'a [Claim],
    /// One fewer than `claims`.
    links: &'a [Link],
    next: usize,
}

/// A segment, and how much of it belongs to this file.
struct Segment {
    regions: Range<usize>,
    /// The end of the regions that belong to this file. These are all regions up to the last one
    /// that is known to belong to it.
    own: usize,
    follows_break: bool,
    precedes_break: bool,
}

impl Segment {
    /// Applies rule 1.
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
    /// Calls `add` with the index of each region that counts as foreign, in order.
    fn for_each_foreign(self, mut add: impl FnMut(usize) -> Result<()>) -> Result<()> {
        let mut segments = self.peekable();
        let mut before: Option<Segment> = None;
        while let Some(segment) = segments.next() {
            let Segment { regions, own, follows_break, precedes_break } = &segment;
            if segment.is_foreign() {
                regions.clone().try_for_each(&mut add)?;
            } else {
                // a foreign segment explains the break next to it
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

    /// Returns the foreign regions of a sequence. Regions are letters (`o` own, `u` unknown);
    /// between them, `-` is an intact link, `|` a break and ` ` an unknown link.
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
            .expect("the closure does not fail");
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
        assert_eq!(foreign("u|u|u|u-u"), [1, 2], "a region between two foreign ones");
        assert_eq!(foreign("u-u-u|u-u-o"), [2], "rule 2: a common prefix");
        assert_eq!(foreign("u-o|u-u-u"), [2, 3, 4], "rule 2: regions after the foreign one");
        assert_eq!(foreign("u-u-u|u-u-u"), [2, 3], "rule 3");
        assert_eq!(foreign("u|u"), [0, 1], "rule 3");
        assert_eq!(foreign("u-u|u u-o"), [1, 2], "rule 3: the known end is in another segment");
        assert_eq!(foreign("o|u|u-o"), [1]);
        assert_eq!(foreign("o|o"), none, "index and footers confirm both");
        assert_eq!(foreign("u|o|u"), [0, 2], "a region that is own never counts as foreign");
        assert_eq!(foreign("o-u|u-u"), [1, 2], "rule 3 after a region that is own");
    }
}
