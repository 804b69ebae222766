//! The status that calls return.

/// The result of a call: `TENSILO_OK`, or the kind of the error, which tells who can do something
/// about it. Later releases may add values.
pub type tensilo_status = i32;

/// The call succeeded.
pub const TENSILO_OK: tensilo_status = 0;
/// The bytes break a rule of the format: the file is damaged, incomplete or not a tensilo file.
pub const TENSILO_CORRUPT: tensilo_status = 1;
/// The file uses a feature that this release does not know. A newer release reads it.
pub const TENSILO_TOO_NEW: tensilo_status = 2;
/// The file or the call needs a cargo feature that this build of the library lacks.
pub const TENSILO_NOT_BUILT: tensilo_status = 3;
/// A limit would be exceeded: of the format, of the caller, or of the memory of this machine.
pub const TENSILO_OVER_LIMIT: tensilo_status = 4;
/// An argument does not fit: sample out of range, wrong length, NULL.
pub const TENSILO_BAD_ARGUMENT: tensilo_status = 5;
/// An input has values that cannot be converted.
pub const TENSILO_BAD_INPUT: tensilo_status = 6;
/// A callback of the caller ended the work.
pub const TENSILO_CANCELLED: tensilo_status = 7;
/// A fault of tensilo, or of the processor or memory of this machine. Please report it.
pub const TENSILO_INTERNAL: tensilo_status = 8;
/// The operating system reported an error, see `os_code` of `tensilo_error_info`.
pub const TENSILO_IO: tensilo_status = 9;
/// The state of a loader is damaged, or of a job that this one cannot continue.
pub const TENSILO_BAD_STATE: tensilo_status = 10;
/// Another writer has published the same version of the dataset first.
pub const TENSILO_CONFLICT: tensilo_status = 11;
/// The file was written before edition 1 of the format. Convert its source again.
pub const TENSILO_TOO_OLD: tensilo_status = 12;
/// The file or the batch has no column of this name.
pub const TENSILO_UNKNOWN_COLUMN: tensilo_status = 13;
/// Values of another type than the column's were given or requested.
pub const TENSILO_WRONG_TYPE: tensilo_status = 14;
/// Another writer has locked the file. Try again when it is done.
pub const TENSILO_BUSY: tensilo_status = 15;
