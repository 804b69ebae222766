// The C library of tensilo, a columnar tensor store.
//
// Generated from the crate tensilo-ffi: do not edit.
//
// # Rules
//
// Results. Functions that can fail return a status: TENSILO_OK (0), or the kind of the error.
// `error` may be NULL. Otherwise `*error` becomes NULL, or an error that says what is wrong, where,
// and what to do next; free it with tensilo_error_free. If a call fails, the handle that it would
// have created is NULL, and its other results are unchanged.
//
// Handles. For each handle, one function creates it and one closes it. The latter takes a pointer
// to the handle and sets it to NULL, so that a second call does nothing. A copy of a closed handle
// must not be used. Handles may be closed in any order: each keeps alive whatever it needs.
//
// Threads. The comment of each handle says what threads may do. A handle may move to another
// thread. "One at a time" applies to all functions that take the handle, including the one that
// closes it.
//
// Arguments. A pointer may be NULL only where its function says so. Other NULL pointers, and numbers
// without a constant, are refused as bad arguments. The caller owns the memory behind a pointer,
// which has the stated length, and any content if it is written to. An array of length 0 may be
// NULL. Text is UTF-8 and ends with a NUL; paths have the encoding of the system.
//
// Structs that may grow start with `struct_size`: set it to the size of the struct before the call.
// In options, zero in any other member selects the default.
//
//     tensilo_column_info info = {.struct_size = sizeof info};       // C
//     tensilo_column_info info{}; info.struct_size = sizeof info;    // C++
//
// Callbacks must return: neither exceptions nor longjmp may leave them.

#ifndef TENSILO_H
#define TENSILO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The Arrow C data interface and C stream interface, as Arrow's specification defines them.
#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};

#endif

// Selects the metadata of the file or dataset itself, instead of a column.
#define TENSILO_NO_COLUMN SIZE_MAX



// The length of a loader's state in bytes.
#define TENSILO_STATE_BYTES 96

// The samples of one step of one rank, column by column. A batch stays valid even if all other
// handles are closed.
//
// Threads: any number may read a batch at the same time, but not while it is being closed.
typedef struct tensilo_batch tensilo_batch;

// An iterator over the batches of an epoch. Threads read ahead from its creation until it is
// closed.
//
// Threads: one at a time. A forked process can continue an iterator of its parent.
typedef struct tensilo_batches tensilo_batches;

// A buffer for samples of one column, which can be fixed, ragged or nested. Each call that fills
// the buffer reuses its memory.
//
// Threads: only one thread at a time may call functions on a buffer. Any number of threads may
// read its samples at the same time.
typedef struct tensilo_buffer tensilo_buffer;

// A cursor reads samples of one column of a file. It owns the memory for decoding, and caches the
// last decoded chunk, so reading all samples of a chunk one after another decodes it once.
//
// Samples are returned as stored elements, whatever these represent: the decimal 1.50 is 150, and
// a timestamp is a number of time units. The metadata entry `arrow.type` of a column names the
// type and the unit.
//
// Threads: one at a time; give each thread its own cursor. A cursor keeps the file open.
typedef struct tensilo_cursor tensilo_cursor;

// An open dataset: files that are read as one sequence of samples.
//
// Threads: any number may use a dataset at the same time, but not while it is being closed. A
// dataset may be closed before its loaders.
typedef struct tensilo_dataset tensilo_dataset;

// An error: what is wrong, where, and what to do next.
//
// Threads: any number may read an error at the same time. Free it with `tensilo_error_free`.
typedef struct tensilo_error tensilo_error;

// A loader delivers the batches of a rank, in an order that is the same on every machine.
//
// Threads: any number may use a loader at the same time, but not while it is being closed. It has
// no threads of its own; `tensilo_batches` does.
typedef struct tensilo_loader tensilo_loader;

// An open file.
//
// Threads: any number may use a reader at the same time, but not while it is being closed. A
// reader may be closed before its cursors.
typedef struct tensilo_reader tensilo_reader;

// The report of a verification.
//
// Threads: any number may read a report at the same time.
typedef struct tensilo_report tensilo_report;

// A sample reader reads batches of any samples of a dataset. It has no threads, and keeps files
// open.
//
// Threads: one at a time; give each thread its own reader.
typedef struct tensilo_sample_reader tensilo_sample_reader;

// The columns and metadata of a file, a dataset or a batch.
//
// Threads: any number may read a schema at the same time. It belongs to the handle that returned
// it, and lives as long as that handle.
typedef struct tensilo_schema tensilo_schema;

// The result of a call: `TENSILO_OK`, or the kind of the error, which tells whether the file, the
// caller or the environment is at fault. Later releases may add values.
typedef int32_t tensilo_status;

// The fields of an error. Strings live as long as the error. A string that is not known is NULL.
typedef struct tensilo_error_info {
  // `sizeof(tensilo_error_info)`, set by the caller.
  size_t struct_size;
  // The kind of the error.
  tensilo_status status;
  // The error code of the operating system (`errno`), or 0.
  int32_t os_code;
  // All fields in one human-readable string.
  const char *text;
  // The message only, without file, column, samples, offset and advice.
  const char *message;
  // The rule of the specification that the file breaks, such as `R-2.6`.
  const char *rule;
  // The path of the file.
  const char *path;
  // The name of the column.
  const char *column;
  // Whether `samples_start` and `samples_end` are known.
  bool has_samples;
  // Whether `offset` is known.
  bool has_offset;
  // The first affected sample.
  uint64_t samples_start;
  // One more than the last affected sample.
  uint64_t samples_end;
  // The offset in the file, in bytes.
  uint64_t offset;
  // The number of advice strings; see `tensilo_error_advice`.
  size_t advice_count;
} tensilo_error_info;

// The type of the elements. Its values are the numbers of the types in the file format. Later
// releases may add values.
typedef uint32_t tensilo_dtype;

// One column: the type and shape of its items, and the lists around them.
//
// If `level_count` is 0, a sample is an item. Otherwise it is a list of items, or of nested lists.
// Pointers live as long as the schema.
typedef struct tensilo_column_info {
  // `sizeof(tensilo_column_info)`, set by the caller.
  size_t struct_size;
  // The name, which contains no NUL.
  const char *name;
  // The type of the samples as text, such as `list<utf8>`.
  const char *type_name;
  // The type of the elements.
  tensilo_dtype dtype;
  // The number of dimensions of an item: 0 for a number, 1 for text and bytes.
  uint32_t ndim;
  // The `ndim` extents of an item, outermost first. A varying extent is -1.
  const int64_t *extents;
  // The number of varying extents; 0 for a fixed shape.
  uint32_t varying_count;
  // The number of levels of lists around an item.
  uint32_t level_count;
  // For each level, outermost first, whether the members of its lists may be null.
  const bool *level_nullable;
  // Whether samples may be null.
  bool nullable;
  // Whether all samples have `sample_bytes` bytes: the shape is fixed and there are no lists.
  bool is_fixed;
  // The size of one sample in bytes, if `is_fixed`; otherwise 0.
  size_t sample_bytes;
  // The number of metadata entries of the column.
  size_t metadata_count;
} tensilo_column_info;

// A metadata entry. Both strings end with a NUL, and may contain other NULs.
typedef struct tensilo_metadata {
  // The key.
  const char *key;
  // The length of the key in bytes.
  size_t key_bytes;
  // The value.
  const char *value;
  // The length of the value in bytes.
  size_t value_bytes;
} tensilo_metadata;

// The I/O method for reading files.
typedef uint32_t tensilo_io;

// When the checksum of a chunk is verified.
typedef uint32_t tensilo_verification;

// The options for opening a file. Zero in each member selects the default.
typedef struct tensilo_open_options {
  // `sizeof(tensilo_open_options)`, set by the caller.
  size_t struct_size;
  // The I/O method.
  tensilo_io io;
  // When chunks are verified.
  tensilo_verification verification;
  // The maximum decoded size of a chunk in bytes. 0 means the limit of the format, 4 GiB. A
  // larger chunk is refused before memory is allocated for it. Set this for untrusted files.
  uint64_t max_chunk_bytes;
} tensilo_open_options;

// Facts about an open file.
typedef struct tensilo_reader_info {
  // `sizeof(tensilo_reader_info)`, set by the caller.
  size_t struct_size;
  // The number of samples.
  uint64_t sample_count;
  // The length of the file in bytes.
  uint64_t file_bytes;
  // The length of the uncommitted tail, which is ignored; normally 0.
  uint64_t tail_bytes;
  // The number of commits.
  uint32_t commit_count;
  // Whether the writer finished the file.
  bool is_finished;
  // The id of the file.
  uint8_t file_id[12];
  // The id of the content up to the commit that is read.
  uint8_t content_id[16];
} tensilo_reader_info;

// One sample of a column without lists, in memory that belongs to the library.
typedef struct tensilo_sample {
  // `sizeof(tensilo_sample)`, set by the caller.
  size_t struct_size;
  // The elements, row-major, in the byte order of the machine. Text does not end with a NUL.
  const uint8_t *values;
  // The size of all elements in bytes.
  size_t value_bytes;
  // The `ndim` extents of this sample, outermost first.
  const uint32_t *extents;
  // The number of dimensions.
  size_t ndim;
  // Whether the sample is null. If the shape is fixed, a null has zeros as values. Otherwise, it
  // has no values.
  bool is_null;
} tensilo_sample;

// The samples of one column, stored contiguously.
//
// Values belong to items. In a column without lists, each sample is an item; in a nested column,
// items are the members of the innermost lists. The memory behind the pointers belongs to the
// handle that returned them.
typedef struct tensilo_samples {
  // `sizeof(tensilo_samples)`, set by the caller.
  size_t struct_size;
  // The type of the elements.
  tensilo_dtype dtype;
  // The number of levels of lists around items; see `tensilo_lists`.
  uint32_t level_count;
  // The number of samples.
  size_t sample_count;
  // The number of items: samples, or members of the innermost lists.
  size_t item_count;
  // The elements of all items, one item after another, row-major, in the byte order of the
  // machine.
  const uint8_t *values;
  // The size of all elements in bytes.
  size_t value_bytes;
  // For a ragged column, `item_count + 1` offsets into the values, in elements: the start of
  // each item, and the end of the last. NULL for a fixed shape.
  const uint64_t *offsets;
  // For a ragged column, the varying extents of each item, outermost first, one item after
  // another. NULL for a fixed shape.
  const uint32_t *varying_extents;
  // The number of extents at `varying_extents`.
  size_t varying_extent_count;
  // Bit `i % 8` of byte `i / 8` (bit 0 is the least significant) is 0 if item `i` is null. NULL
  // if no item is null. If the shape is fixed, a null item has zeros as values.
  const uint8_t *validity;
  // The number of null items.
  size_t null_count;
  // The number of dimensions, if all values form one tensor whose first dimension is the
  // samples. 0 if the values do not form one tensor, because samples have different shapes and
  // are not padded.
  size_t tensor_ndim;
  // The extents of this tensor. NULL if the values do not form one tensor.
  const uint64_t *tensor_extents;
} tensilo_samples;

// The lists of one level of a nested column, stored contiguously. The lists of level 0 are the
// samples.
typedef struct tensilo_lists {
  // `sizeof(tensilo_lists)`, set by the caller.
  size_t struct_size;
  // The number of lists.
  size_t list_count;
  // `list_count + 1` offsets into the members: the start of each list, and the end of the last.
  // Members are the lists of the next level, or items.
  const uint64_t *offsets;
  // The bitmap of lists that are not null, as in `tensilo_samples`. NULL if none is null.
  const uint8_t *validity;
  // The number of null lists.
  size_t null_count;
} tensilo_lists;

// Facts about a batch. Pointers live as long as the batch.
typedef struct tensilo_batch_info {
  // `sizeof(tensilo_batch_info)`, set by the caller.
  size_t struct_size;
  // The epoch, counted from 0.
  uint64_t epoch;
  // The position in the epoch at which the step starts.
  uint64_t position;
  // The number of samples.
  size_t sample_count;
  // The number of columns.
  size_t column_count;
  // The indices of the samples in the dataset, in the order of the batch.
  const uint64_t *indices;
  // The positions within the batch at which a sample replaces a damaged one.
  const size_t *substituted;
  // The number of samples that replace damaged ones.
  size_t substituted_count;
} tensilo_batch_info;

// The work that an iterator has done so far, and where its time went. Times are in nanoseconds.
typedef struct tensilo_metrics {
  // `sizeof(tensilo_metrics)`, set by the caller.
  size_t struct_size;
  // The number of batches taken.
  uint64_t batches;
  // The number of samples in these batches.
  uint64_t samples;
  // The size of the values in these batches, in bytes.
  uint64_t value_bytes;
  // The number of bytes read from files; 0 if the files are mapped.
  uint64_t read_bytes;
  // The number of damaged samples that other samples replaced.
  uint64_t substitutes;
  // The time since the iterator was created.
  uint64_t elapsed_ns;
  // The time that the caller waited for batches, not counting the first one.
  uint64_t waited_ns;
  // The time from the first request to the first batch.
  uint64_t first_batch_ns;
  // The time spent planning reads, summed over all threads.
  uint64_t planning_ns;
  // The time spent fetching bytes, summed over all threads.
  uint64_t fetching_ns;
  // The time spent decoding, summed over all threads.
  uint64_t decoding_ns;
  // One sentence of advice: whether the loop waits for data, and what to do about it. It lives
  // until the next call with this iterator.
  const char *verdict;
} tensilo_metrics;

// The options for opening a dataset. Zero in each member selects the default.
typedef struct tensilo_dataset_options {
  // `sizeof(tensilo_dataset_options)`, set by the caller.
  size_t struct_size;
  // The version to open, if `has_version` is 1. Otherwise, the newest version is opened.
  uint64_t version;
  // Whether `version` is set: 0 or 1.
  uint32_t has_version;
  // The I/O method.
  tensilo_io io;
  // The maximum number of open files. 0 means 4,096 for objects in a store. For files, 0 means
  // half of the process's limit, but at most 256. Raise this number for datasets of many files
  // that are read in a shuffled order.
  size_t max_open_files;
} tensilo_dataset_options;

// Facts about an open dataset.
typedef struct tensilo_dataset_info {
  // `sizeof(tensilo_dataset_info)`, set by the caller.
  size_t struct_size;
  // The number of samples.
  uint64_t sample_count;
  // The version; 0 without a manifest.
  uint64_t version;
  // The id, which all versions of a dataset share. Without a manifest, the id is derived from
  // the files.
  uint8_t dataset_id[16];
  // The I/O method.
  tensilo_io io;
} tensilo_dataset_info;

// How samples are shuffled.
typedef uint32_t tensilo_order;

// How an epoch ends.
typedef uint32_t tensilo_last_batch;

// How a loader treats damaged samples.
typedef uint32_t tensilo_on_damage;

// A conversion of a column to another type.
typedef struct tensilo_cast {
  // The name of the column.
  const char *column;
  // The new type. Floats can be cast to any float type; a cast to a narrower type rounds to
  // nearest, with ties to even. Integers of at most 2 bytes and bools can be cast to `float`,
  // and integers of 4 bytes to `double`. Integers and bools can be cast to wider integers that
  // represent all of their values.
  tensilo_dtype dtype;
} tensilo_cast;

// The padding of a column, which turns samples of different shapes into one tensor.
typedef struct tensilo_padding {
  // The name of the column.
  const char *column;
  // The value of added elements.
  double value;
  // Varying extents are rounded up to a multiple of this number; 0 means 1.
  uint32_t multiple;
} tensilo_padding;

// Functions that allocate memory for the values of batches, such as pinned memory that a device
// copies from. Threads of the loader call them for each column of each batch. The functions must
// not throw exceptions.
typedef struct tensilo_allocator {
  // `sizeof(tensilo_allocator)`, set by the caller.
  size_t struct_size;
  // Returns `byte_count` bytes of memory, which may be uninitialized, aligned to at least 8
  // bytes, or NULL on failure.
  void *(*allocate)(void *user,
                    size_t byte_count);
  // Releases memory that `allocate` returned, after the batch is closed and all arrays exported
  // from it are released.
  void (*release)(void *user,
                  void *memory,
                  size_t byte_count);
  // The first argument of both functions.
  void *user;
} tensilo_allocator;

// The options of a loader. Zero in each member selects the default, but `batch_size` must be set.
// The call that takes the options copies everything they point to.
typedef struct tensilo_loader_options {
  // `sizeof(tensilo_loader_options)`, set by the caller.
  size_t struct_size;
  // The number of samples in a batch of this rank.
  uint32_t batch_size;
  // The number of this rank, counted from 0.
  uint32_t rank;
  // The number of ranks; 0 means 1.
  uint32_t world_size;
  // How samples are shuffled.
  tensilo_order order;
  // The number of samples in a run of `TENSILO_ORDER_WINDOWED`; 0 selects the size that the
  // dataset records.
  uint32_t run_samples;
  // The number of runs in a window of `TENSILO_ORDER_WINDOWED`; 0 selects the size that the
  // dataset records.
  uint32_t window_runs;
  // The number of streams of `TENSILO_ORDER_WINDOWED`, a power of two up to 1024; 0 selects the
  // number that the dataset records.
  uint32_t streams;
  // How an epoch ends.
  tensilo_last_batch last_batch;
  // How damaged samples are treated.
  tensilo_on_damage on_damage;
  // The seed of the order, if `has_seed` is 1. Otherwise, the seed is 0 or, if a loader resumes,
  // the seed in the state.
  uint64_t seed;
  // Whether `seed` is set: 0 or 1.
  uint32_t has_seed;
  // The maximum number of threads that decode at the same time; 0 means one less than the number
  // of CPUs, but at least 1. Raise this number if `tensilo_metrics` shows more time for
  // decoding than for fetching.
  uint32_t decode_threads;
  // The number of batches that are fetched at the same time; 0 means the number of decode
  // threads, but at least 4 for objects in a store. Raise this number for storage with a high
  // latency.
  uint32_t io_depth;
  // The prefetch depth: the maximum number of batches that are ready or in progress; 0 means
  // twice the I/O depth. Raise this number if the duration of steps or of reads varies a lot.
  uint32_t prefetch;
  // The names of `column_count` columns; NULL for all. Intervals, and decimals with a scale or
  // with more than 18 digits, are refused, because their stored elements are not their values.
  const char *const *columns;
  // The number of columns.
  size_t column_count;
  // The `cast_count` casts.
  const struct tensilo_cast *casts;
  // The number of casts.
  size_t cast_count;
  // The `padding_count` paddings.
  const struct tensilo_padding *paddings;
  // The number of paddings.
  size_t padding_count;
  // Allocates the caller's memory for values, such as pinned memory; NULL for library memory.
  const struct tensilo_allocator *allocator;
} tensilo_loader_options;

// Facts about a loader.
typedef struct tensilo_loader_info {
  // `sizeof(tensilo_loader_info)`, set by the caller.
  size_t struct_size;
  // The number of batches in an epoch.
  uint64_t batches_per_epoch;
} tensilo_loader_info;

// The options of a verification. Zero in each member selects the default.
typedef struct tensilo_verify_options {
  // `sizeof(tensilo_verify_options)`, set by the caller.
  size_t struct_size;
  // 1 to also decode each chunk and check each value. A hostile file of one megabyte can then
  // take minutes; `progress` can cancel the work.
  uint32_t deep;
  // The number of threads; 0 means 1. The report does not depend on this number.
  uint32_t thread_count;
  // If not NULL, this function is called from time to time with the number of checked bytes and
  // the length of the file. If it returns anything but 0, the work ends with the status
  // `TENSILO_ERROR_CANCELLED`. It runs on the calling thread; no exception may leave it.
  int32_t (*progress)(void *user,
                      uint64_t checked_bytes,
                      uint64_t file_bytes);
  // The first argument of `progress`.
  void *user;
} tensilo_verify_options;

// The result of a verification.
typedef struct tensilo_report_info {
  // `sizeof(tensilo_report_info)`, set by the caller.
  size_t struct_size;
  // The length of the file.
  uint64_t file_bytes;
  // The number of intact chunks.
  uint64_t chunk_count;
  // The number of samples in the last valid commit, if `has_commit` is true.
  uint64_t sample_count;
  // The number of findings; 0 means that the file is intact and finished.
  size_t finding_count;
  // Whether there is a valid commit.
  bool has_commit;
  // Whether anything is damaged. If not, all samples of the last commit are intact, but a writer
  // may still be running, or may have been stopped.
  bool is_damaged;
} tensilo_report_info;

// The kind of a finding.
typedef uint32_t tensilo_finding_kind;

// A finding: a damaged region, or bytes of a writer that has not finished. Pointers live as long
// as the report. A pointer is NULL if its value is not known.
typedef struct tensilo_finding {
  // `sizeof(tensilo_finding)`, set by the caller.
  size_t struct_size;
  // The offset of the first affected byte.
  uint64_t file_start;
  // One more than the offset of the last affected byte.
  uint64_t file_end;
  // The kind of the region, such as `chunk`.
  const char *region;
  // The column of the region.
  const char *column;
  // The first affected sample, if `has_samples` is true: a lost sample, or, for a damaged index
  // page, a sample that is found through this page.
  uint64_t samples_start;
  // One more than the last affected sample.
  uint64_t samples_end;
  // The error, which names the broken rule of the specification.
  const struct tensilo_error *error;
  // Whether `samples_start` and `samples_end` are known.
  bool has_samples;
  // The kind of the finding.
  tensilo_finding_kind kind;
} tensilo_finding;

// The call succeeded.
#define TENSILO_OK 0

// The bytes break a rule of the format: the file is damaged, incomplete or not a tensilo file.
#define TENSILO_ERROR_CORRUPT 1

// The file uses a feature that this release does not support. Use a newer release.
#define TENSILO_ERROR_TOO_NEW 2

// The file or the call needs a cargo feature that this build of the library lacks.
#define TENSILO_ERROR_NOT_BUILT 3

// The call would exceed a limit of the format, a limit that the caller set, or the memory of this
// machine.
#define TENSILO_ERROR_OVER_LIMIT 4

// An argument is not valid, for example a sample that is out of range, a wrong length, or NULL.
#define TENSILO_ERROR_BAD_ARGUMENT 5

// An input has values that cannot be converted.
#define TENSILO_ERROR_BAD_INPUT 6

// A callback cancelled the work.
#define TENSILO_ERROR_CANCELLED 7

// A bug in tensilo, or a fault of the processor or memory of this machine. Please report this.
#define TENSILO_ERROR_INTERNAL 8

// The operating system reported an error; see `os_code` in `tensilo_error_info`.
#define TENSILO_ERROR_IO 9

// The state of a loader is damaged, or belongs to a job that this loader cannot continue.
#define TENSILO_ERROR_BAD_STATE 10

// Another writer published the same version of the dataset first.
#define TENSILO_ERROR_CONFLICT 11

// The file was written before edition 1 of the format. Convert its source again.
#define TENSILO_ERROR_TOO_OLD 12

// The file or the batch has no column of this name.
#define TENSILO_ERROR_UNKNOWN_COLUMN 13

// The caller passed or requested values of a type that differs from the type of the column.
#define TENSILO_ERROR_WRONG_TYPE 14

// Another writer holds the lock of the file. Try again when it is done.
#define TENSILO_ERROR_BUSY 15

// bfloat16, the upper half of a `float`: 1 sign bit, 8 exponent bits and 7 mantissa bits.
#define TENSILO_DTYPE_BF16 1

// IEEE 754 binary16.
#define TENSILO_DTYPE_F16 2

// `float`.
#define TENSILO_DTYPE_F32 3

// `double`.
#define TENSILO_DTYPE_F64 4

// `int8_t`.
#define TENSILO_DTYPE_I8 5

// `int16_t`.
#define TENSILO_DTYPE_I16 6

// `int32_t`.
#define TENSILO_DTYPE_I32 7

// `int64_t`.
#define TENSILO_DTYPE_I64 8

// `uint8_t`.
#define TENSILO_DTYPE_U8 9

// `uint16_t`.
#define TENSILO_DTYPE_U16 10

// `uint32_t`.
#define TENSILO_DTYPE_U32 11

// `uint64_t`.
#define TENSILO_DTYPE_U64 12

// One byte, 0 or 1.
#define TENSILO_DTYPE_BOOL 13

// A byte string for each item.
#define TENSILO_DTYPE_BYTES 14

// UTF-8 text for each item, without a NUL at the end.
#define TENSILO_DTYPE_UTF8 15

// An 8-bit float: 4 exponent and 3 mantissa bits, no infinities.
#define TENSILO_DTYPE_F8_E4M3FN 16

// An 8-bit float: 4 exponent and 3 mantissa bits, one NaN, no infinities, no -0.
#define TENSILO_DTYPE_F8_E4M3FNUZ 17

// An 8-bit float: 5 exponent and 2 mantissa bits.
#define TENSILO_DTYPE_F8_E5M2 18

// An 8-bit float: 5 exponent and 2 mantissa bits, one NaN, no infinities, no -0.
#define TENSILO_DTYPE_F8_E5M2FNUZ 19

// An 8-bit scale: a power of two, or NaN.
#define TENSILO_DTYPE_F8_E8M0FNU 20

// A 6-bit float in a byte: 2 exponent and 3 mantissa bits.
#define TENSILO_DTYPE_F6_E2M3 21

// A 6-bit float in a byte: 3 exponent and 2 mantissa bits.
#define TENSILO_DTYPE_F6_E3M2 22

// A 4-bit float in a byte: 2 exponent bits and 1 mantissa bit.
#define TENSILO_DTYPE_F4_E2M1 23

// A 4-bit signed integer in a byte. The upper bits of the byte are zero: -1 is 0x0F.
#define TENSILO_DTYPE_I4 24

// A 4-bit unsigned integer in a byte.
#define TENSILO_DTYPE_U4 25

// Two `float` values: the real and the imaginary part.
#define TENSILO_DTYPE_COMPLEX64 26

// The default: positional reads (`pread`) for a file; for a dataset, io_uring if the build and the
// system provide it.
#define TENSILO_IO_AUTO 0

// Positional reads (`pread`): safe, and suitable for network file systems.
#define TENSILO_IO_PREAD 1

// Memory maps: no system calls and no copies. While any handle of the file is open, no process may
// change or truncate the bytes up to the last commit. If bytes change, the behavior is undefined.
// If the file is truncated, accessing a page beyond the new end kills the process (`SIGBUS`).
// tensilo itself does neither: it replaces files by renaming, and appends after the last commit.
// Do not map files on a network file system.
#define TENSILO_IO_MMAP 2

// io_uring with buffered I/O, which reads all ranges of a batch at the same time. Only for
// datasets on Linux.
#define TENSILO_IO_IO_URING 3

// io_uring with direct I/O (`O_DIRECT`), which bypasses the page cache. Suits shuffled datasets
// that are larger than memory. Only for datasets on Linux.
#define TENSILO_IO_DIRECT 4

// When this reader first uses the chunk.
#define TENSILO_VERIFICATION_FIRST_TOUCH 0

// Each time the chunk is loaded.
#define TENSILO_VERIFICATION_ALWAYS 1

// Never. Damaged bytes can then lead to wrong values without an error.
#define TENSILO_VERIFICATION_NEVER 2

// Like `TENSILO_ORDER_WINDOWED`, with the sizes that the dataset records, or, when a loader
// resumes, as recorded in the state.
#define TENSILO_ORDER_DEFAULT 0

// Runs of consecutive samples are shuffled first, then the samples within each window of runs. So
// files are read in long ranges.
#define TENSILO_ORDER_WINDOWED 1

// Any sample may follow any other.
#define TENSILO_ORDER_SHUFFLED 2

// Samples are in the order of the dataset.
#define TENSILO_ORDER_SEQUENTIAL 3

// Like `TENSILO_LAST_BATCH_DROP`, or, when a loader resumes, as recorded in the state.
#define TENSILO_LAST_BATCH_DEFAULT 0

// The last samples are dropped if they do not fill a batch for each rank.
#define TENSILO_LAST_BATCH_DROP 1

// Samples from the start of the epoch are repeated to fill the last batches.
#define TENSILO_LAST_BATCH_PAD 2

// Each sample is delivered once. The last batches can be smaller.
#define TENSILO_LAST_BATCH_EXACT 3

// Reading the batch fails.
#define TENSILO_ON_DAMAGE_ERROR 0

// Other samples replace damaged ones. All ranks choose the same replacements.
#define TENSILO_ON_DAMAGE_SUBSTITUTE 1

// Bytes are wrong or missing.
#define TENSILO_FINDING_DAMAGED 0

// An append has not committed the bytes: it is still running, or it was stopped. The bytes contain
// no sample of the file.
#define TENSILO_FINDING_UNCOMMITTED 1

// The file ends with a commit, but its writer has not finished the file.
#define TENSILO_FINDING_UNFINISHED 2

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library, such as `0.1.0`. The string is static: do not free it.
const char *tensilo_version(void);

// Returns the kind of an error; `TENSILO_OK` for NULL.
tensilo_status tensilo_error_status(const struct tensilo_error *error);

// Returns all details of an error in one human-readable string, or an empty string for NULL. The
// string lives as long as the error.
const char *tensilo_error_text(const struct tensilo_error *error);

// Returns advice string number `index` of an error, counted from 0. It describes an action that
// makes the call succeed, or that helps in another way. Returns NULL after the last string. The
// string lives as long as the error.
const char *tensilo_error_advice(const struct tensilo_error *error,
                                 size_t index);

// Fills `info` with the fields of an error. Fails only if an argument is NULL or `struct_size` of
// `info` is not set. In this case, it returns a status but no error.
tensilo_status tensilo_error_get_info(const struct tensilo_error *error,
                                      struct tensilo_error_info *info);

// Frees an error and sets the pointer to NULL. Does nothing if `error` or `*error` is NULL.
void tensilo_error_free(struct tensilo_error **error);

// Returns the name of a type, such as `bf16`, or NULL if there is no such type. The string is
// static: do not free it.
const char *tensilo_dtype_name(tensilo_dtype dtype);

// Returns the size of one element in bytes: 1 for bytes and text, 0 if there is no such type.
size_t tensilo_dtype_bytes(tensilo_dtype dtype);

// Returns the number of columns; 0 for NULL.
size_t tensilo_schema_column_count(const struct tensilo_schema *schema);

// Fills `info` with facts about column number `index`, counted from 0.
tensilo_status tensilo_schema_get_column(const struct tensilo_schema *schema,
                                         size_t index,
                                         struct tensilo_column_info *info,
                                         struct tensilo_error **error);

// Sets `*index` to the number of the column with this name. If there is no such column, the error
// names the most similar one.
tensilo_status tensilo_schema_find_column(const struct tensilo_schema *schema,
                                          const char *name,
                                          size_t *index,
                                          struct tensilo_error **error);

// Returns the number of metadata entries of a column, or of the file or dataset if `column` is
// `TENSILO_NO_COLUMN`. Returns 0 if there is no such column, and for NULL.
size_t tensilo_schema_metadata_count(const struct tensilo_schema *schema,
                                     size_t column);

// Fills `metadata` with metadata entry number `index` of a column, or of the file or dataset if
// `column` is `TENSILO_NO_COLUMN`. Entries are sorted by key, and live as long as the schema.
tensilo_status tensilo_schema_get_metadata(const struct tensilo_schema *schema,
                                           size_t column,
                                           size_t index,
                                           struct tensilo_metadata *metadata,
                                           struct tensilo_error **error);

// Opens a file. `path` may be the address of an object, such as `s3://bucket/x.tsl`, if the
// library has the feature `object`. `options` may be NULL. Close the reader with
// `tensilo_reader_close`.
//
// Cost: a few reads, and memory for the schema and for facts about each column, no matter how many
// samples the file has.
tensilo_status tensilo_reader_open(const char *path,
                                   const struct tensilo_open_options *options,
                                   struct tensilo_reader **reader,
                                   struct tensilo_error **error);

// Closes a reader and sets the pointer to NULL. Does nothing if `reader` or `*reader` is NULL.
void tensilo_reader_close(struct tensilo_reader **reader);

// Returns the schema of a file: its columns and its metadata. The schema lives as long as the
// reader. Returns NULL for NULL.
const struct tensilo_schema *tensilo_reader_schema(const struct tensilo_reader *reader);

// Fills `info` with facts about a file.
tensilo_status tensilo_reader_get_info(const struct tensilo_reader *reader,
                                       struct tensilo_reader_info *info,
                                       struct tensilo_error **error);

// Opens a cursor for the column with this name. Close it with `tensilo_cursor_close`.
//
// Cost: linear in the number of columns, so open a cursor once and keep it.
tensilo_status tensilo_cursor_open(const struct tensilo_reader *reader,
                                   const char *column,
                                   struct tensilo_cursor **cursor,
                                   struct tensilo_error **error);

// Closes a cursor and sets the pointer to NULL. Does nothing if `cursor` or `*cursor` is NULL.
void tensilo_cursor_close(struct tensilo_cursor **cursor);

// Reads sample number `index`, counted from 0, of a column without lists. The pointers of `sample`
// live until the next call with this cursor.
//
// Cost: a bounds check if the sample is in the cached chunk. Otherwise, the chunk is read, and
// verified on first touch. If the encoding allows it, only the sample is decoded. A raw sample of
// a mapped file is not copied.
tensilo_status tensilo_cursor_read(struct tensilo_cursor *cursor,
                                   uint64_t index,
                                   struct tensilo_sample *sample,
                                   struct tensilo_error **error);

// Reads sample number `index` of a column without lists into `out`, which is `out_bytes` bytes
// long. Fails if the sample does not fit. Sets `*value_bytes` to the size of the sample and
// `*is_null` to whether it is null; either pointer may be NULL. If the shape is fixed, a null has
// zeros as values. Otherwise, it has no values.
//
// Cost: the same as for `tensilo_cursor_read`. If only the sample is decoded, it is decoded
// directly into `out`. Otherwise, it is copied.
tensilo_status tensilo_cursor_read_into(struct tensilo_cursor *cursor,
                                        uint64_t index,
                                        uint8_t *out,
                                        size_t out_bytes,
                                        size_t *value_bytes,
                                        bool *is_null,
                                        struct tensilo_error **error);

// Copies `count` samples of a fixed shape to `out`, in the order of `indices`. Indices may repeat.
// `out_bytes` must be exactly `count` times the `sample_bytes` of the column. Nulls become zeros.
// Sets `*null_count` to the number of nulls; the pointer may be NULL. To find out which samples
// are null, use a `tensilo_buffer`.
//
// Cost: each chunk is read and decoded at most once; raw samples are copied directly to `out`.
// After the first calls, nothing is allocated.
tensilo_status tensilo_cursor_gather(struct tensilo_cursor *cursor,
                                     const uint64_t *indices,
                                     size_t count,
                                     uint8_t *out,
                                     size_t out_bytes,
                                     size_t *null_count,
                                     struct tensilo_error **error);

// Copies the samples from `start` to `end` (exclusive), like `tensilo_cursor_gather`.
tensilo_status tensilo_cursor_gather_range(struct tensilo_cursor *cursor,
                                           uint64_t start,
                                           uint64_t end,
                                           uint8_t *out,
                                           size_t out_bytes,
                                           size_t *null_count,
                                           struct tensilo_error **error);

// Fills a buffer with `count` samples of any column, in the order of `indices`. Indices may
// repeat. On failure, the buffer is empty.
//
// Cost: the same as for `tensilo_cursor_gather`. Encoded values that are ragged or nested need one
// additional copy.
tensilo_status tensilo_cursor_fill_buffer(struct tensilo_cursor *cursor,
                                          const uint64_t *indices,
                                          size_t count,
                                          struct tensilo_buffer *buffer,
                                          struct tensilo_error **error);

// Fills a buffer with the samples from `start` to `end` (exclusive). On failure, the buffer is
// empty.
//
// Cost: each chunk is decoded once. A chunk that is entirely within the range is decoded directly
// into the buffer.
tensilo_status tensilo_cursor_fill_buffer_range(struct tensilo_cursor *cursor,
                                                uint64_t start,
                                                uint64_t end,
                                                struct tensilo_buffer *buffer,
                                                struct tensilo_error **error);

// Creates an empty buffer, for any column. Close it with `tensilo_buffer_close`.
tensilo_status tensilo_buffer_new(struct tensilo_buffer **buffer,
                                  struct tensilo_error **error);

// Closes a buffer and sets the pointer to NULL. Does nothing if `buffer` or `*buffer` is NULL.
void tensilo_buffer_close(struct tensilo_buffer **buffer);

// Fills `samples` with the samples of a buffer. The pointers in `samples` live until the buffer is
// filled again or closed.
tensilo_status tensilo_buffer_get_samples(const struct tensilo_buffer *buffer,
                                          struct tensilo_samples *samples,
                                          struct tensilo_error **error);

// Fills `lists` with the lists of level number `level` of a nested column, counted from 0. The
// pointers in `lists` live until the buffer is filled again or closed.
tensilo_status tensilo_buffer_get_lists(const struct tensilo_buffer *buffer,
                                        size_t level,
                                        struct tensilo_lists *lists,
                                        struct tensilo_error **error);

// Closes a batch and sets the pointer to NULL. The loader then reuses the memory of the batch.
// Does nothing if `batch` or `*batch` is NULL.
void tensilo_batch_close(struct tensilo_batch **batch);

// Fills `info` with facts about a batch.
tensilo_status tensilo_batch_get_info(const struct tensilo_batch *batch,
                                      struct tensilo_batch_info *info,
                                      struct tensilo_error **error);

// Returns the schema of the delivered columns, after casts and paddings. It lives as long as the
// batch. Returns NULL for NULL.
const struct tensilo_schema *tensilo_batch_schema(const struct tensilo_batch *batch);

// Sets `*index` to the number of the column with this name in a batch.
tensilo_status tensilo_batch_find_column(const struct tensilo_batch *batch,
                                         const char *name,
                                         size_t *index,
                                         struct tensilo_error **error);

// Fills `samples` with the samples of column number `column` of a batch, counted from 0. The
// pointers in `samples` live as long as the batch. For a padded column, `offsets` and
// `varying_extents` describe the samples before padding.
tensilo_status tensilo_batch_get_samples(const struct tensilo_batch *batch,
                                         size_t column,
                                         struct tensilo_samples *samples,
                                         struct tensilo_error **error);

// Fills `lists` with the lists of one level of a nested column of a batch; columns and levels are
// counted from 0. The pointers in `lists` live as long as the batch.
tensilo_status tensilo_batch_get_lists(const struct tensilo_batch *batch,
                                       size_t column,
                                       size_t level,
                                       struct tensilo_lists *lists,
                                       struct tensilo_error **error);

// Waits for the next batch and takes it. At the end of the epoch, `*batch` is NULL. Close the
// batch with `tensilo_batch_close`. If a batch cannot be read, the call fails, and the next call
// continues with the batch after it.
tensilo_status tensilo_batches_next(struct tensilo_batches *batches,
                                    struct tensilo_batch **batch,
                                    struct tensilo_error **error);

// Waits until the next batch is ready, for at most `timeout_ms` milliseconds. Sets `*is_ready` to
// whether `tensilo_batches_next` would return at once, which it also does at the end of the epoch.
tensilo_status tensilo_batches_wait(const struct tensilo_batches *batches,
                                    uint64_t timeout_ms,
                                    bool *is_ready,
                                    struct tensilo_error **error);

// Writes the state after the batches taken so far to `state`, which is `TENSILO_STATE_BYTES` bytes
// long. `tensilo_loader_resume` continues from it. Cost: a few nanoseconds.
tensilo_status tensilo_batches_get_state(const struct tensilo_batches *batches,
                                         uint8_t *state,
                                         size_t state_bytes,
                                         struct tensilo_error **error);

// Fills `metrics` with the totals since the iterator was created.
tensilo_status tensilo_batches_get_metrics(struct tensilo_batches *batches,
                                           struct tensilo_metrics *metrics,
                                           struct tensilo_error **error);

// Closes an iterator, ends its threads, and sets the pointer to NULL. Batches that were taken stay
// valid. Does nothing if `batches` or `*batches` is NULL.
void tensilo_batches_close(struct tensilo_batches **batches);

// Opens a dataset: a folder with a manifest, a folder of `*.tsl` files in the order of their
// names, or a single file. With a manifest, the default is the newest version. `path` may be an
// address, such as `s3://bucket/train`, if the library has the feature `object`. `options` may be
// NULL. Close the dataset with `tensilo_dataset_close`.
//
// Cost: reads one manifest file. Without a manifest, opens all files.
tensilo_status tensilo_dataset_open(const char *path,
                                    const struct tensilo_dataset_options *options,
                                    struct tensilo_dataset **dataset,
                                    struct tensilo_error **error);

// Closes a dataset and sets the pointer to NULL. Does nothing if `dataset` or `*dataset` is NULL.
void tensilo_dataset_close(struct tensilo_dataset **dataset);

// Returns the schema of a dataset: its columns and its metadata. The schema lives as long as the
// dataset. Returns NULL for NULL.
const struct tensilo_schema *tensilo_dataset_schema(const struct tensilo_dataset *dataset);

// Fills `info` with facts about a dataset.
tensilo_status tensilo_dataset_get_info(const struct tensilo_dataset *dataset,
                                        struct tensilo_dataset_info *info,
                                        struct tensilo_error **error);

// Creates a loader for a dataset, without starting threads or opening files. Close it with
// `tensilo_loader_close`.
tensilo_status tensilo_loader_new(const struct tensilo_dataset *dataset,
                                  const struct tensilo_loader_options *options,
                                  struct tensilo_loader **loader,
                                  struct tensilo_error **error);

// Closes a loader and sets the pointer to NULL. Its iterators and batches stay valid. Does nothing
// if `loader` or `*loader` is NULL.
void tensilo_loader_close(struct tensilo_loader **loader);

// Fills `info` with facts about a loader.
tensilo_status tensilo_loader_get_info(const struct tensilo_loader *loader,
                                       struct tensilo_loader_info *info,
                                       struct tensilo_error **error);

// Starts epoch number `epoch`, counted from 0, and threads that read ahead. Close the iterator
// with `tensilo_batches_close`.
tensilo_status tensilo_loader_begin(const struct tensilo_loader *loader,
                                    uint64_t epoch,
                                    struct tensilo_batches **batches,
                                    struct tensilo_error **error);

// Continues from a state to the end of its epoch, and starts threads that read ahead. The job that
// saved the state may have had a different batch size and number of ranks. Close the iterator with
// `tensilo_batches_close`.
//
// Fails with `TENSILO_ERROR_BAD_STATE` if the state is damaged or belongs to a different dataset,
// or if the options of the loader set a different order, seed or `last_batch`.
tensilo_status tensilo_loader_resume(const struct tensilo_loader *loader,
                                     const uint8_t *state,
                                     size_t state_bytes,
                                     struct tensilo_batches **batches,
                                     struct tensilo_error **error);

// Writes the state at the start of an epoch to `state`, which is `TENSILO_STATE_BYTES` bytes long.
tensilo_status tensilo_loader_get_state(const struct tensilo_loader *loader,
                                        uint64_t epoch,
                                        uint8_t *state,
                                        size_t state_bytes,
                                        struct tensilo_error **error);

// Creates a reader for any samples of a dataset. It uses the columns, casts, paddings and
// allocator of `options`, whose `batch_size` must be at least 1. Close it with
// `tensilo_sample_reader_close`.
tensilo_status tensilo_sample_reader_new(const struct tensilo_dataset *dataset,
                                         const struct tensilo_loader_options *options,
                                         struct tensilo_sample_reader **reader,
                                         struct tensilo_error **error);

// Reads `count` samples in the order of `indices`. Indices may repeat. Close the batch with
// `tensilo_batch_close`.
//
// Cost: reads each sample into memory that is reused after the batch is closed.
tensilo_status tensilo_sample_reader_take(struct tensilo_sample_reader *reader,
                                          const uint64_t *indices,
                                          size_t count,
                                          struct tensilo_batch **batch,
                                          struct tensilo_error **error);

// Closes a reader and sets the pointer to NULL. Its batches stay valid. Does nothing if `reader`
// or `*reader` is NULL.
void tensilo_sample_reader_close(struct tensilo_sample_reader **reader);

// Exports the samples of a buffer as an Arrow array and its type. Call the `release` functions of
// `schema` and of `array` exactly once each.
//
// The values are shared, not copied, unless Arrow uses a different layout, as for bool and bf16.
// The array stays valid when the buffer is filled again or closed.
//
// Numbers become primitive arrays. Tensors become nested lists; fixed extents become lists of a
// fixed size. Text and bytes become large strings and large binaries. bf16 becomes float, because
// Arrow has no bf16. Dates and times that were imported from Arrow get their Arrow type back.
tensilo_status tensilo_buffer_export_arrow(const struct tensilo_buffer *buffer,
                                           struct ArrowSchema *schema,
                                           struct ArrowArray *array,
                                           struct tensilo_error **error);

// Exports a batch as an Arrow array of structs and its type, with one field for each column. The
// array shares values as in `tensilo_buffer_export_arrow`, and stays valid when the batch is
// closed.
tensilo_status tensilo_batch_export_arrow(const struct tensilo_batch *batch,
                                          struct ArrowSchema *schema,
                                          struct ArrowArray *array,
                                          struct tensilo_error **error);

// Exports a whole file as a stream of Arrow arrays of structs, with the Arrow types of the source
// that the file was converted from. `columns` has the names of `column_count` columns, or is NULL
// for all columns. Each array has at most `batch_samples` samples; 0 selects the default. The
// stream keeps the file open. Call its `release` function exactly once.
//
// Cost: each chunk is decoded once and copied once.
tensilo_status tensilo_reader_export_stream(const struct tensilo_reader *reader,
                                            const char *const *columns,
                                            size_t column_count,
                                            uint64_t batch_samples,
                                            struct ArrowArrayStream *stream,
                                            struct tensilo_error **error);

// Checks every byte of a file. As in `tensilo_reader_open`, the file may be an object. Damage is
// not an error; `*report` lists it. `options` may be NULL. Close the report with
// `tensilo_report_close`.
//
// Cost: one pass over the file, and 40 bytes of memory for each chunk.
tensilo_status tensilo_verify(const char *path,
                              const struct tensilo_verify_options *options,
                              struct tensilo_report **report,
                              struct tensilo_error **error);

// Closes a report and sets the pointer to NULL. Does nothing if `report` or `*report` is NULL.
void tensilo_report_close(struct tensilo_report **report);

// Fills `info` with the result of a verification.
tensilo_status tensilo_report_get_info(const struct tensilo_report *report,
                                       struct tensilo_report_info *info,
                                       struct tensilo_error **error);

// Fills `finding` with finding number `index`, counted from 0, in the order of the file.
tensilo_status tensilo_report_get_finding(const struct tensilo_report *report,
                                          size_t index,
                                          struct tensilo_finding *finding,
                                          struct tensilo_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TENSILO_H */
