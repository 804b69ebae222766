//! Progress of a salvage, told to the caller.

use crate::Result;
use crate::error::go_on;
use crate::format::region::RegionHead;
use std::ops::ControlFlow;

/// Counts the bytes that have been looked at, in one pass or two.
pub(super) struct ScanProgress<'a> {
    report: Option<&'a mut dyn FnMut(u64, u64) -> ControlFlow<()>>,
    done: u64,
    total: u64,
    decodes: bool,
}

impl<'a> ScanProgress<'a> {
    pub(super) fn new(total: u64, report: Option<&'a mut dyn FnMut(u64, u64) -> ControlFlow<()>>) -> Self {
        Self { report, done: 0, total, decodes: false }
    }

    /// Records that the first pass has reached offset `at`.
    pub(super) fn scanned(&mut self, at: u64) -> Result<()> {
        self.done = at.min(self.total);
        self.tell()
    }

    /// Begins the second pass, which decodes these regions.
    pub(super) fn begin_decoding<'h>(&mut self, heads: impl Iterator<Item = &'h RegionHead>) {
        self.decodes = true;
        let bytes = heads.map(|head| u64::from(head.body_bytes)).fold(0, u64::saturating_add);
        self.total = self.total.saturating_add(bytes);
    }

    /// Records that the second pass has handled a region.
    pub(super) fn collected(&mut self, head: &RegionHead) -> Result<()> {
        if !self.decodes {
            return Ok(());
        }
        self.done = self.done.saturating_add(head.body_bytes.into()).min(self.total);
        self.tell()
    }

    fn tell(&mut self) -> Result<()> {
        self.report.as_mut().map_or(Ok(()), |report| go_on(report(self.done, self.total)))
    }
}
