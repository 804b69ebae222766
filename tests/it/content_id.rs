//! Tests that the content id differs exactly for files with different values.

use crate::support::build::seal;
use crate::support::intact::assert_intact;
use crate::support::regions::{regions, u32_at};
use tensilo::facts::{ContentId, FileId, RegionKind};
use tensilo::sink::Stream;
use tensilo::source::InMemory;
use tensilo::verify::{VerifyOptions, verify};
use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};

/// Writes raw samples of four bytes, with commits after these numbers of samples.
fn write(samples: &[[u8; 4]], commits: &[usize], file_id: u8) -> Vec<u8> {
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::fixed(&[4]))]);
    let options = WriterOptions::new().profile(Profile::Raw).chunk_bytes(8).file_id(FileId([file_id; 12]));
    let mut writer = Writer::new(Stream(Vec::new()), schema, &options).unwrap();
    for (i, sample) in samples.iter().enumerate() {
        if commits.contains(&i) {
            writer.commit().unwrap();
        }
        writer.push(&[Value::tensor(sample)]).unwrap();
    }
    let summary = writer.finish().unwrap();
    assert_eq!(summary.content_id, content_id(&summary.sink.0));
    summary.sink.0
}

/// Verifies a file and returns the id of its last commit.
fn content_id(file: &[u8]) -> ContentId {
    assert_intact(&InMemory(file));
    Reader::from_bytes(file.to_vec()).unwrap().content_id()
}

const SAMPLES: [[u8; 4]; 5] = [[1, 2, 3, 4], [5, 6, 7, 8], [9; 4], [0; 4], [7; 4]];

#[test]
fn files_that_differ_in_a_value_differ_in_their_id() {
    let file = write(&SAMPLES, &[], 1);
    for sample in 0..SAMPLES.len() {
        let mut others = SAMPLES;
        others[sample][3] ^= 1;
        let other = write(&others, &[], 1);
        assert_eq!(other.len(), file.len());
        assert_ne!(content_id(&other), content_id(&file), "sample {sample}");
    }
}

#[test]
fn files_that_differ_only_in_their_file_id_have_the_same_content_id() {
    let (one, other) = (write(&SAMPLES, &[2], 1), write(&SAMPLES, &[2], 2));
    assert_ne!(one, other);
    assert_eq!(content_id(&one), content_id(&other));
}

/// The id covers earlier commits, too: the last commits of these files write the same bytes.
#[test]
fn every_commit_is_covered() {
    let file = write(&SAMPLES, &[2, 4], 1);
    let mut others = SAMPLES;
    others[0] = [0; 4];
    assert_ne!(content_id(&write(&others, &[2, 4], 1)), content_id(&file));
    assert_ne!(content_id(&write(&SAMPLES, &[2], 1)), content_id(&file), "laid out in another way");
    let ends = regions(&file).into_iter().filter(|region| region.kind == RegionKind::Trailer).map(|region| region.end);
    let ids: Vec<ContentId> = ends.map(|end| Reader::from_bytes(file[..end].to_vec()).unwrap().content_id()).collect();
    assert_eq!(ids.len(), 3);
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
}

#[test]
fn an_id_that_does_not_match_the_content_is_reported() {
    let intact = write(&SAMPLES, &[2, 4], 1);
    for footer in regions(&intact).into_iter().filter(|region| region.kind == RegionKind::Footer) {
        let mut file = intact.clone();
        file[footer.header + 64] ^= 1;
        seal(&mut file, footer.header);
        assert_ne!(u32_at(&file, footer.header + 56), u32_at(&intact, footer.header + 56));
        assert!(Reader::from_bytes(file.to_vec()).is_ok(), "opening does not read the index");
        let findings = verify(&InMemory(&file), VerifyOptions::new()).unwrap().findings;
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].error.rule(), Some("R-7.9"));
        assert_eq!(findings[0].file_range, footer.header as u64..footer.end as u64);
    }
}

#[test]
fn an_id_is_shown_as_32_digits() {
    let id = ContentId([0, 1, 0xAB, 0xFF, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(id.to_string(), "0001abff0405060708090a0b0c0d0e0f");
}
