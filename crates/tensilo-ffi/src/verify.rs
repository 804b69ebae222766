//! Checks a whole file, and reports its damage.
//!
//! Damage is a result, not an error: a [`tensilo_report`] lists each finding with its byte range,
//! column and samples. The report owns all its strings and errors, so calls return pointers into
//! it.

use crate::boundary::call::{HandleSlot, call, close, fill, flag, options as read_options, path as read_path, shared};
use crate::boundary::error::{Result, tensilo_error, tensilo_status};
use crate::boundary::values::{Options, Output, Text};
use std::ffi::{c_char, c_void};
use std::ops::ControlFlow;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use tensilo::source::Source;
use tensilo::verify::{FileState, Finding, FindingKind, VerifyOptions, verify};

/// The report of a verification.
///
/// Threads: any number may read a report at the same time.
pub struct tensilo_report {
    info: tensilo_report_info,
    findings: Vec<FindingRecord>,
}

struct FindingRecord {
    file_start: u64,
    file_end: u64,
    region: Option<Text>,
    error: Box<tensilo_error>,
    column: Option<Text>,
    samples: Option<(u64, u64)>,
    kind: tensilo_finding_kind,
}

/// The options of a verification. Zero in each member selects the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_verify_options {
    /// `sizeof(tensilo_verify_options)`, set by the caller.
    pub struct_size: usize,
    /// 1 to also decode each chunk and check each value. A hostile file of one megabyte can then
    /// take minutes; `progress` can cancel the work.
    pub deep: u32,
    /// The number of threads; 0 means 1. The report does not depend on this number.
    pub thread_count: u32,
    /// If not NULL, this function is called from time to time with the number of checked bytes and
    /// the length of the file. If it returns anything but 0, the work ends with the status
    /// `TENSILO_ERROR_CANCELLED`. It runs on the calling thread; no exception may leave it.
    pub progress: Option<unsafe extern "C" fn(user: *mut c_void, checked_bytes: u64, file_bytes: u64) -> i32>,
    /// The first argument of `progress`.
    pub user: *mut c_void,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_verify_options {}
// SAFETY: integers and pointers only.
unsafe impl Options for tensilo_verify_options {}

/// The result of a verification.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_report_info {
    /// `sizeof(tensilo_report_info)`, set by the caller.
    pub struct_size: usize,
    /// The length of the file.
    pub file_bytes: u64,
    /// The number of intact chunks.
    pub chunk_count: u64,
    /// The number of samples in the last valid commit, if `has_commit` is true.
    pub sample_count: u64,
    /// The number of findings; 0 means that the file is intact and finished.
    pub finding_count: usize,
    /// Whether there is a valid commit.
    pub has_commit: bool,
    /// Whether anything is damaged. If not, all samples of the last commit are intact, but a writer
    /// may still be running, or may have been stopped.
    pub is_damaged: bool,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_report_info {}

/// The kind of a finding.
pub type tensilo_finding_kind = u32;

/// Bytes are wrong or missing.
pub const TENSILO_FINDING_DAMAGED: tensilo_finding_kind = 0;
/// An append has not committed the bytes: it is still running, or it was stopped. The bytes contain
/// no sample of the file.
pub const TENSILO_FINDING_UNCOMMITTED: tensilo_finding_kind = 1;
/// The file ends with a commit, but its writer has not finished the file.
pub const TENSILO_FINDING_UNFINISHED: tensilo_finding_kind = 2;

/// A finding: a damaged region, or bytes of a writer that has not finished. Pointers live as long
/// as the report. A pointer is NULL if its value is not known.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct tensilo_finding {
    /// `sizeof(tensilo_finding)`, set by the caller.
    pub struct_size: usize,
    /// The offset of the first affected byte.
    pub file_start: u64,
    /// One more than the offset of the last affected byte.
    pub file_end: u64,
    /// The kind of the region, such as `chunk`.
    pub region: *const c_char,
    /// The column of the region.
    pub column: *const c_char,
    /// The first affected sample, if `has_samples` is true: a lost sample, or, for a damaged index
    /// page, a sample that is found through this page.
    pub samples_start: u64,
    /// One more than the last affected sample.
    pub samples_end: u64,
    /// The error, which names the broken rule of the specification.
    pub error: *const tensilo_error,
    /// Whether `samples_start` and `samples_end` are known.
    pub has_samples: bool,
    /// The kind of the finding.
    pub kind: tensilo_finding_kind,
}

// SAFETY: `repr(C)`, and starts with its size.
unsafe impl Output for tensilo_finding {}

impl From<Finding> for FindingRecord {
    fn from(finding: Finding) -> Self {
        Self {
            file_start: finding.file_range.start,
            file_end: finding.file_range.end,
            region: finding.region.map(|region| Text::new(region.name())),
            column: finding.column.as_deref().map(Text::new),
            samples: finding.samples.map(|samples| (samples.start, samples.end)),
            error: finding.error.into(),
            kind: match finding.kind {
                FindingKind::Uncommitted => TENSILO_FINDING_UNCOMMITTED,
                FindingKind::Unfinished => TENSILO_FINDING_UNFINISHED,
                _ => TENSILO_FINDING_DAMAGED,
            },
        }
    }
}

#[cfg(feature = "object")]
fn source(path: &Path) -> Result<Arc<dyn Source>> {
    Ok(tensilo_object::source_at(path)?)
}

#[cfg(not(feature = "object"))]
fn source(path: &Path) -> Result<Arc<dyn Source>> {
    Ok(Arc::new(tensilo::source::PositionedFile::open(path)?))
}

fn check(path: &Path, given: &tensilo_verify_options) -> Result<tensilo_report> {
    let source = source(path)?;
    let file_bytes = source.byte_count();
    let mut progress = |checked| match given.progress {
        // SAFETY: the caller's function, with the arguments that the header states.
        Some(progress) if unsafe { progress(given.user, checked, file_bytes) } != 0 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let threads = usize::try_from(given.thread_count).unwrap_or(usize::MAX).clamp(1, 1024);
    let options = VerifyOptions::new().deep(flag(given.deep, "deep")?).threads(threads);
    let report = verify(&*source, options.progress(&mut progress)).map_err(|error| error.with_path(path))?;
    let info = tensilo_report_info {
        struct_size: 0,
        file_bytes: report.file_bytes,
        chunk_count: report.chunk_count,
        sample_count: report.sample_count.unwrap_or(0),
        finding_count: report.findings.len(),
        has_commit: report.sample_count.is_some(),
        is_damaged: report.state() == FileState::Damaged,
    };
    let findings = report.findings.into_iter().map(|mut finding| {
        finding.error = finding.error.with_path(path);
        finding.into()
    });
    Ok(tensilo_report { info, findings: findings.collect() })
}

/// Checks every byte of a file. As in `tensilo_reader_open`, the file may be an object. Damage is
/// not an error; `*report` lists it. `options` may be NULL. Close the report with
/// `tensilo_report_close`.
///
/// Cost: one pass over the file, and 40 bytes of memory for each chunk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_verify(
    path: *const c_char,
    options: *const tensilo_verify_options,
    report: *mut *mut tensilo_report,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let slot = HandleSlot::new(report, "report")?;
            slot.fill(check(&read_path(path, "path")?, &read_options(options, "options")?)?);
            Ok(())
        })
    }
}

/// Closes a report and sets the pointer to NULL. Does nothing if `report` or `*report` is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_report_close(report: *mut *mut tensilo_report) {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { close(report) }
}

/// Fills `info` with the result of a verification.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_report_get_info(
    report: *const tensilo_report,
    info: *mut tensilo_report_info,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe { call(error, || fill(info, shared(report, "report")?.info, "info")) }
}

/// Fills `finding` with finding number `index`, counted from 0, in the order of the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tensilo_report_get_finding(
    report: *const tensilo_report,
    index: usize,
    finding: *mut tensilo_finding,
    error: *mut *mut tensilo_error,
) -> tensilo_status {
    // SAFETY: the caller upholds the rules in `tensilo.h`.
    unsafe {
        call(error, || {
            let findings = &shared(report, "report")?.findings;
            let found = findings.get(index).ok_or_else(|| {
                tensilo_error::bad_argument(format!(
                    "finding {index} is out of range: the report has {} findings, counted from 0",
                    findings.len()
                ))
            })?;
            let samples = found.samples.unwrap_or((0, 0));
            let found = tensilo_finding {
                struct_size: 0,
                file_start: found.file_start,
                file_end: found.file_end,
                region: Text::pointer_of(found.region.as_ref()),
                column: Text::pointer_of(found.column.as_ref()),
                samples_start: samples.0,
                samples_end: samples.1,
                error: ptr::from_ref(&*found.error),
                has_samples: found.samples.is_some(),
                kind: found.kind,
            };
            fill(finding, found, "finding")
        })
    }
}
