//! The schema in a build that cannot read it: it is kept where it stays true, and otherwise
//! removed. An export ignores fields that their columns do not fit.

use super::keys::KEY;
use crate::Metadata;

/// Keeps the schema of several sources if it is the same.
pub(crate) fn join(metadata: &mut Metadata, other: &Metadata) {
    if other.get(KEY).is_some_and(|other| metadata.get(KEY) != Some(other)) {
        metadata.remove(KEY);
    }
}

/// Removes the schema: its fields would have the names of other columns.
pub(crate) fn rename(metadata: &mut Metadata, _: &[(Vec<String>, &str)]) {
    metadata.remove(KEY);
}

/// Removes the schema: its dictionaries may have an order that appended values do not follow.
pub(crate) fn forget_order(metadata: &mut Metadata) {
    metadata.remove(KEY);
}
