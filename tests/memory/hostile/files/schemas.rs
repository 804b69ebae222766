//! File headers and the schemas in them.

use super::Refusal::Opening;
use super::{Row, U8, U64, patched, row};
use crate::support::build::{Build, column};
use tensilo::facts::RegionKind::FileHeader;

pub fn headers() -> Vec<Row> {
    let of_columns = |columns: &[Vec<u8>]| Build::new(columns).finish(0, &[]);
    let raw_column = |record: &[u8]| of_columns(&[record.to_vec()]);
    let mut two_gigabytes = column("x", U8, false, &[]);
    two_gigabytes[..4].copy_from_slice(&(1_u32 << 31).to_le_bytes());
    vec![
        row("2^32 - 1 columns", patched(FileHeader, 64, &[0xFF; 4]), Opening("R-3.6")),
        row(
            "65,536 columns, but only one of them",
            patched(FileHeader, 64, &65_536_u32.to_le_bytes()),
            Opening("R-3.3"),
        ),
        row("a name of 2 GiB", raw_column(&two_gigabytes), Opening("R-3.4")),
        row("2^32 - 1 entries of metadata", patched(FileHeader, 68, &[0xFF; 4]), Opening("R-3.4")),
        row("65,536 missing entries of metadata", patched(FileHeader, 68, &65_536_u32.to_le_bytes()), Opening("R-3.4")),
        row("rank 255", raw_column(&column("x", U8, false, &[1; 255])), Opening("R-3.6")),
        row("16 extents of 2^32 - 2", raw_column(&column("x", U64, false, &[u32::MAX - 1; 16])), Opening("R-3.6")),
        row("extents whose product is 2^64", raw_column(&column("x", U8, false, &[1 << 16; 4])), Opening("R-3.6")),
        row("a schema of 4 GiB", patched(FileHeader, 44, &[0xFF; 4]), Opening("R-2.5")),
        row(
            "a schema of 16 MiB in a small file",
            patched(FileHeader, 44, &(16_u32 << 20).to_le_bytes()),
            Opening("R-2.5"),
        ),
        row("alignment 2^31", patched(FileHeader, 48, &(1_u32 << 31).to_le_bytes()), Opening("R-3.2")),
        row("alignment 0", patched(FileHeader, 48, &[0; 4]), Opening("R-3.2")),
        row("unknown incompatible flags", patched(FileHeader, 32, &[0xFF; 4]), Opening("R-9.1")),
    ]
}
