//! A block that is decoded: whole groups by a kernel, then what is left.

use super::coder::{Coder, last_group};
use super::{BinModel, GROUP};
use std::slice;

/// A block to decode.
pub struct CodedBlock<'b> {
    /// The class of each group.
    pub classes: &'b [u8],
    /// The number of its elements.
    pub count: usize,
    /// The states, and the stream.
    pub stored: &'b [u8],
    /// The first windows. Each is two bytes, the lower one first.
    pub out: &'b mut [[u8; 2]],
}

/// Groups of a block, and not its last one.
pub struct Groups<'g, 's> {
    /// The class of each group.
    pub(super) classes: &'g [u8],
    pub(super) coder: &'g mut Coder<'s>,
    /// The windows of each group.
    pub(super) out: &'g mut [[[u8; 2]; GROUP]],
}

/// A block of which some groups are decoded.
pub(super) struct Started<'b> {
    coder: Coder<'b>,
    /// The class of each of `groups`, and of the group after them.
    classes: &'b [u8],
    /// The next groups of which all windows are wanted, without the last of the block.
    pub groups: &'b mut [[[u8; 2]; GROUP]],
    /// The windows after `groups`.
    rest: &'b mut [[u8; 2]],
    /// The elements of the group that `rest` begins with, if it is the last one.
    last: Option<usize>,
}

impl<'b> Started<'b> {
    /// Returns `None` if the block has no states, or `classes` too few.
    pub fn new(CodedBlock { classes, count, stored, out }: CodedBlock<'b>) -> Option<Self> {
        let coder = Coder::new(count, stored)?;
        let last = count.checked_sub(1)? / GROUP;
        let whole = last.min(out.len() / GROUP);
        let (groups, rest) = out.split_at_mut_checked(whole * GROUP)?;
        classes.get(..whole)?;
        let last = (whole == last).then(|| count - last * GROUP);
        Some(Self { coder, classes, groups: groups.as_chunks_mut().0, rest, last })
    }

    /// Returns the first `count` of the groups, or all, and leaves the others.
    pub fn take(&mut self, count: usize) -> Groups<'_, 'b> {
        let count = count.min(self.groups.len());
        // there are as many classes, and at least as many groups
        let classes = self.classes.split_off(..count).unwrap_or_default();
        let out = self.groups.split_off_mut(..count).unwrap_or_default();
        Groups { classes, coder: &mut self.coder, out }
    }

    /// Decodes all that is left, with a function that decodes groups. Returns `None` if the block
    /// is malformed.
    pub fn finish(mut self, model: &BinModel, decode: impl Fn(Groups<'_, '_>)) -> Option<()> {
        decode(self.take(usize::MAX));
        let Self { mut coder, classes, rest, last, .. } = self;
        if let Some(wanted) = rest.len().checked_sub(1) {
            let class = *classes.first()?;
            let mut group = [[0; 2]; GROUP];
            match last {
                Some(count) => {
                    let elements = group.get_mut(..count)?;
                    elements.get(wanted)?;
                    last_group(model, class, &mut coder, elements)?;
                }
                None => {
                    let (classes, out) = (&[class], slice::from_mut(&mut group));
                    decode(Groups { classes, coder: &mut coder, out });
                }
            }
            rest.iter_mut().zip(group).for_each(|(to, from)| *to = from);
        }
        (!coder.is_cut).then_some(())
    }
}
