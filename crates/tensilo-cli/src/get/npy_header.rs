//! The header of NumPy's array file, version 1.0.

/// Returns the header of an array of this type (`<f4`) and shape, in C order.
pub(super) fn npy_header(descr: &str, shape: &[u64]) -> Vec<u8> {
    const ALIGNMENT: usize = 64;
    const BEFORE_TEXT: usize = 10;
    let extents: String = shape.iter().map(|extent| format!("{extent},")).collect();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    let length = BEFORE_TEXT.saturating_add(text.len()).saturating_add(1);
    text.extend(std::iter::repeat_n(' ', length.next_multiple_of(ALIGNMENT).saturating_sub(length)));
    text.push('\n');
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    // with rank 17 the header has fewer than 1,024 bytes
    header.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes());
    header.extend(text.into_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_starts_at_a_multiple_of_64() {
        for shape in [vec![], vec![3], vec![3, 4], vec![u64::MAX; 17]] {
            let header = npy_header("<f4", &shape);
            let length = u16::from_le_bytes([header[8], header[9]]);
            assert_eq!(header.len(), 10 + usize::from(length));
            assert_eq!(header.len() % 64, 0);
            assert_eq!(header.last(), Some(&b'\n'));
        }
    }

    #[test]
    fn shapes_are_python_tuples() {
        let text = |shape: &[u64]| String::from_utf8_lossy(&npy_header("<u2", shape)[10..]).trim_end().to_owned();
        assert_eq!(text(&[]), "{'descr': '<u2', 'fortran_order': False, 'shape': (), }");
        assert_eq!(text(&[3]), "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }");
        assert_eq!(text(&[3, 0]), "{'descr': '<u2', 'fortran_order': False, 'shape': (3,0,), }");
    }
}
