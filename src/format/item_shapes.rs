//! Chapter 4.3: the shapes of items, as they become the end of a shape part.

/// Returns the product of extents: the count of a ragged item from its varying ones. Returns `None`
/// if it does not fit; a product with a 0 is 0.
pub(crate) fn product_of_extents(extents: &[u32]) -> Option<usize> {
    if extents.contains(&0) {
        return Some(0);
    }
    extents.iter().try_fold(1_usize, |product, &extent| product.checked_mul(usize::try_from(extent).ok()?))
}

/// Appends the shapes of items to a shape part: `ends`, then the extents by dimension if several
/// vary. `extents` has those of all items, one item after the other, and none if the shape is
/// fixed. The counts add up to less than 2^32: those of one chunk do.
pub(crate) fn push_item_shapes(varying: usize, extents: &[u32], shape: &mut Vec<u8>) {
    let mut end = 0_u32;
    for extents in extents.chunks_exact(varying.max(1)) {
        let count = product_of_extents(extents).and_then(|count| u32::try_from(count).ok());
        end = end.saturating_add(count.unwrap_or(u32::MAX));
        shape.extend(end.to_le_bytes());
    }
    if varying > 1 {
        for dimension in 0..varying {
            let extents = extents.iter().skip(dimension).step_by(varying);
            shape.extend(extents.flat_map(|extent| extent.to_le_bytes()));
        }
    }
}
