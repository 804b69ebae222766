//! Reports of damage, and progress callbacks.

use crate::support::*;
use std::ffi::c_void;
use std::fs;
use std::ptr;
use tensilo::{ColumnSchema, DType, Profile, Reader, Schema, Shape, Value, Writer, WriterOptions};
use tensilo_ffi::*;
use tensilo_testing::Folder;

#[test]
fn a_report_lists_damage() {
    let folder = Folder::new();
    let path = file(&folder, Profile::Raw);
    let chunk = Reader::open(&path).unwrap().column("embedding").unwrap().chunk_of(300).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let flipped = chunk.file_range.end - 9;
    bytes[usize::try_from(flipped).unwrap()] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let mut report = ptr::null_mut();
    let c_path = c_path(&path);
    // SAFETY: arguments as the header requires.
    unsafe {
        done(|e| tensilo_verify(c_path.as_ptr(), ptr::null(), &raw mut report, e));
        let report = Handle(report, tensilo_report_close);
        let mut info: tensilo_report_info = sized();
        done(|e| tensilo_report_get_info(report.0, &raw mut info, e));
        assert!(info.has_commit && info.sample_count == SAMPLES && info.finding_count == 1);
        assert_eq!(info.file_bytes, bytes.len() as u64);
        let mut finding: tensilo_finding = sized();
        done(|e| tensilo_report_get_finding(report.0, 0, &raw mut finding, e));
        assert_eq!(text(finding.column), "embedding");
        assert_eq!(text(finding.region), "chunk");
        assert!(info.is_damaged && finding.kind == TENSILO_FINDING_DAMAGED);
        assert!(finding.has_samples && (finding.samples_start..finding.samples_end).contains(&300));
        assert!(finding.file_start <= flipped && flipped < finding.file_end);
        assert!(text(tensilo_error_text(finding.error)).contains(path.to_str().unwrap()));
        let (status, _) = refused(|e| tensilo_report_get_finding(report.0, 1, &raw mut finding, e));
        assert_eq!(status, TENSILO_ERROR_BAD_ARGUMENT);
    }
}

/// The report of a file whose writer has committed and appended, but not finished.
#[test]
fn a_writer_that_has_not_finished_is_no_damage() {
    let folder = Folder::new();
    let path = folder.path("a.tsl");
    let schema = Schema::new([ColumnSchema::tensor("x", DType::U8, Shape::fixed(&[1024]))]);
    let options = WriterOptions::new().profile(Profile::Raw);
    Writer::create(&path, schema, &options).unwrap().finish().unwrap();
    let mut writer = Writer::append(&path, &options).unwrap();
    for kind in [TENSILO_FINDING_UNCOMMITTED, TENSILO_FINDING_UNFINISHED] {
        // more than a writer buffers
        (0..16_000).for_each(|_| writer.push(&[Value::tensor(&[1_u8; 1024])]).unwrap());
        if kind == TENSILO_FINDING_UNFINISHED {
            writer.commit().unwrap();
        }
        let mut report = ptr::null_mut();
        let c_path = c_path(&path);
        // SAFETY: arguments as the header requires.
        unsafe {
            done(|e| tensilo_verify(c_path.as_ptr(), ptr::null(), &raw mut report, e));
            let report = Handle(report, tensilo_report_close);
            let mut info: tensilo_report_info = sized();
            done(|e| tensilo_report_get_info(report.0, &raw mut info, e));
            assert_eq!((info.is_damaged, info.finding_count), (false, 1));
            let mut finding: tensilo_finding = sized();
            done(|e| tensilo_report_get_finding(report.0, 0, &raw mut finding, e));
            assert_eq!(finding.kind, kind);
        }
    }
}

/// Counts the calls, and stops at the first one.
unsafe extern "C" fn stop(user: *mut c_void, checked: u64, all: u64) -> i32 {
    assert!(checked <= all);
    // SAFETY: the counter of the test.
    unsafe { *user.cast::<u32>() += 1 };
    1
}

#[test]
fn a_callback_ends_a_verification() {
    let folder = Folder::new();
    let path = c_path(&file(&folder, Profile::Raw));
    let (mut calls, mut report) = (0_u32, ptr::null_mut());
    // SAFETY: arguments as the header requires.
    unsafe {
        let mut options: tensilo_verify_options = sized();
        options.progress = Some(stop);
        options.user = (&raw mut calls).cast();
        let (status, _) = refused(|e| tensilo_verify(path.as_ptr(), &raw const options, &raw mut report, e));
        assert!(status == TENSILO_ERROR_CANCELLED && report.is_null() && calls == 1);
    }
}
