// The C library of tensilo, a columnar tensor store.
//
// Generated from the crate tensilo-ffi: do not edit.
//
// # Rules
//
// Results. Functions that can fail return a status: TENSILO_OK (0), or the kind of the error.
// `error` may be NULL. Otherwise `*error` becomes NULL, or an error that says what is wrong, where,
// and what to do next; free it with tensilo_error_free. If a call fails, a handle that it would
// have made is NULL, and its other results are as they were.
//
// Handles. Each has a function that makes it, and one that closes it. The latter takes a pointer to
// the handle and sets it to NULL, so that a second call does nothing. A copy of a closed handle
// must not be used. Handles keep what they need of each other, and may be closed in any order.
//
// Threads. The comment of each handle says what threads may do. A handle may move to another
// thread. "One at a time" is for all functions that take the handle, its closing included.
//
// Arguments. A pointer is NULL only where its function says so; others are refused as bad
// arguments, as are numbers that no constant has. Memory that a pointer leads to is the caller's,
// of the stated length, and of any content if it is written to. An array of length 0 may be NULL.
// Text is UTF-8 and ends with a NUL; paths are as the system has them.
//
// Structs that may grow begin with `struct_size`: set it to the size of the struct before the call.
// Zero in the other members of options is the default.
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

// The bytes of the state of a loader.
#define TENSILO_STATE_BYTES 96



// The samples of one step of one rank, column by column. It needs no other handle.
//
// Threads: any number may look at a batch at the same time, but not while one closes it.
typedef struct tensilo_batch tensilo_batch;

// The batches of an epoch, which threads read ahead. These begin with the iterator, and end when
// it is closed.
//
// Threads: one at a time. A process that was forked can go on with an iterator of its parent.
typedef struct tensilo_batches tensilo_batches;

// Samples of one column of any kind: of a fixed shape, ragged or nested. Each call that fills the
// buffer uses its memory again.
//
// Threads: one at a time; any number may look at the samples at the same time.
typedef struct tensilo_buffer tensilo_buffer;

// Reads samples of one column of a file. It owns the memory that decoding needs, and the chunk
// that was decoded last: reading samples of one chunk one after the other costs one decoding.
//
// Samples have the stored elements, whatever they stand for: 150 for a decimal of 1.50, a count
// for a timestamp. The metadata `arrow.type` of a column tell the type and the unit.
//
// Threads: one at a time; give each thread a cursor of its own. It keeps the file open.
typedef struct tensilo_cursor tensilo_cursor;

// An open dataset: files that are read as one sequence of samples.
//
// Threads: any number may use a dataset at the same time, but not while one closes it. Loaders
// keep what they need of it, so it may be closed before them.
typedef struct tensilo_dataset tensilo_dataset;

// An error: what is wrong, where, and what to do next.
//
// Threads: any number may read an error at the same time. Freed by `tensilo_error_free`.
typedef struct tensilo_error tensilo_error;

// A loader: it delivers the batches of a rank, in an order that is the same on every machine.
//
// Threads: any number may use a loader at the same time, but not while one closes it. It has no
// threads itself; `tensilo_batches` has.
typedef struct tensilo_loader tensilo_loader;

// An open file.
//
// Threads: any number may use a reader at the same time, but not while one closes it. Cursors keep
// what they need of the file, so it may be closed before them.
typedef struct tensilo_reader tensilo_reader;

// The report of a verification.
//
// Threads: any number may read a report at the same time.
typedef struct tensilo_report tensilo_report;

// Reads batches of any samples of a dataset. It has no threads, and keeps the files open.
//
// Threads: one at a time; give each thread a reader of its own.
typedef struct tensilo_sample_reader tensilo_sample_reader;

// The columns and metadata of a file, a dataset or a batch.
//
// Threads: any number may read a schema at the same time. It belongs to the handle that has
// returned it, and lives as long as that.
typedef struct tensilo_schema tensilo_schema;

// The result of a call: `TENSILO_OK`, or the kind of the error, which tells who can do something
// about it. Later releases may add values.
typedef int32_t tensilo_status;

// Facts about a batch. Pointers live as long as the batch.
typedef struct tensilo_batch_info {
  // `sizeof(tensilo_batch_info)`, set by the caller.
  size_t struct_size;
  // The epoch, counted from 0.
  uint64_t epoch;
  // The position in the epoch at which the step begins.
  uint64_t position;
  // The number of samples.
  size_t sample_count;
  // The number of columns.
  size_t column_count;
  // The samples, by their numbers in the dataset, in the order of the batch.
  const uint64_t *samples;
  // The positions in the batch of samples that take the place of damaged ones.
  const size_t *substituted;
  // The number of samples that take the place of damaged ones.
  size_t substituted_count;
} tensilo_batch_info;

// The type of elements: the numbers of the file format. Later releases may add values.
typedef uint32_t tensilo_dtype;

// The samples of one column side by side.
//
// The members of a column without lists are its samples, and are called items here as those of
// nested columns. Pointers belong to the handle that has given them.
typedef struct tensilo_samples {
  // `sizeof(tensilo_samples)`, set by the caller.
  size_t struct_size;
  // The type of the elements.
  tensilo_dtype dtype;
  // The number of levels of lists around items, see `tensilo_lists`.
  uint32_t level_count;
  // The number of samples.
  size_t sample_count;
  // The number of items: samples, or members of the lists of the last level.
  size_t item_count;
  // The elements of all items, one after the other, row-major, in the byte order of the machine.
  const uint8_t *values;
  // The bytes of all elements.
  size_t value_bytes;
  // Of a ragged column, `item_count + 1` offsets among the values, in elements: each item, and
  // the end of the last. NULL of a fixed shape.
  const uint64_t *offsets;
  // Of a ragged column, the varying extents of each item, outermost first; as many for each item
  // as vary. NULL of a fixed shape.
  const uint32_t *varying_extents;
  // The number of extents at `varying_extents`.
  size_t varying_extent_count;
  // Bit `i % 8`, 0 the least significant, of byte `i / 8` is 0 if item `i` is null. NULL if none
  // is. A null of a fixed shape has zeros for values.
  const uint8_t *validity;
  // The number of null items.
  size_t null_count;
  // The number of dimensions of the tensor that the values are: samples first. 0 if they are
  // none, because samples have different shapes and are not padded.
  size_t tensor_rank;
  // The extents of the tensor. NULL if the values are none.
  const uint64_t *tensor_extents;
} tensilo_samples;

// The lists of one level of a nested column, side by side. Those of level 0 are the samples.
typedef struct tensilo_lists {
  // `sizeof(tensilo_lists)`, set by the caller.
  size_t struct_size;
  // The number of lists.
  size_t list_count;
  // `list_count + 1` offsets among the members: each list, and the end of the last. Members are
  // the lists of the next level, or items.
  const uint64_t *offsets;
  // The bitmap of lists that are not null, as in `tensilo_samples`. NULL if none is null.
  const uint8_t *validity;
  // The number of null lists.
  size_t null_count;
} tensilo_lists;

// The work of an iterator until now, and where its time went. Times are in nanoseconds.
typedef struct tensilo_metrics {
  // `sizeof(tensilo_metrics)`, set by the caller.
  size_t struct_size;
  // The batches that were taken.
  uint64_t batches;
  // Their samples.
  uint64_t samples;
  // The bytes of their values.
  uint64_t value_bytes;
  // The bytes that were read from files; 0 if they are mapped.
  uint64_t read_bytes;
  // The samples that were damaged, and others delivered instead.
  uint64_t substitutes;
  // The time since the iterator was made.
  uint64_t elapsed_ns;
  // The time that the caller waited for batches, without the first one.
  uint64_t waited_ns;
  // The time from the first request to the first batch.
  uint64_t first_batch_ns;
  // The time that all threads together have planned reads.
  uint64_t planning_ns;
  // The time that all threads together have fetched bytes.
  uint64_t fetching_ns;
  // The time that all threads together have decoded.
  uint64_t decoding_ns;
  // Advice in one sentence: whether the loop waits for data, and what to do. It lives until the
  // next call with this iterator.
  const char *verdict;
} tensilo_metrics;

// The fields of an error. Texts live as long as the error; a text that is not known is NULL.
typedef struct tensilo_error_info {
  // `sizeof(tensilo_error_info)`, set by the caller.
  size_t struct_size;
  // The kind of the error.
  tensilo_status status;
  // The number that the operating system gave (`errno`), or 0.
  int32_t os_code;
  // Everything in one text, for people.
  const char *text;
  // The message alone, without file, column, samples, offset and advice.
  const char *message;
  // The rule of the specification that the file breaks, such as `R-2.6`.
  const char *rule;
  // The path of the file.
  const char *path;
  // The name of the column.
  const char *column;
  // Whether the samples `samples_start` to `samples_end`, without the last, are concerned.
  bool has_samples;
  // Whether `offset` is known.
  bool has_offset;
  // The first sample that is concerned.
  uint64_t samples_start;
  // One more than the last sample that is concerned.
  uint64_t samples_end;
  // The offset in the file, in bytes.
  uint64_t offset;
  // The number of pieces of advice, see `tensilo_error_advice`.
  size_t advice_count;
} tensilo_error_info;

// One sample of a column without lists, in memory of the library.
typedef struct tensilo_sample {
  // `sizeof(tensilo_sample)`, set by the caller.
  size_t struct_size;
  // The elements, row-major, in the byte order of the machine. Text has no NUL at its end.
  const uint8_t *values;
  // The bytes of all elements.
  size_t value_bytes;
  // The `rank` extents of this sample, outermost first.
  const uint32_t *extents;
  // The number of dimensions.
  size_t rank;
  // Whether the sample is null. Its values are zeros of a fixed shape, and none otherwise.
  bool is_null;
} tensilo_sample;

// The I/O method that reads files.
typedef uint32_t tensilo_io;

// The options for opening a dataset. Zero in each member is the default.
typedef struct tensilo_dataset_options {
  // `sizeof(tensilo_dataset_options)`, set by the caller.
  size_t struct_size;
  // The version to open, if `has_version` is 1; otherwise the newest.
  uint64_t version;
  // Whether `version` is set: 0 or 1.
  uint32_t has_version;
  // How files are read.
  tensilo_io io;
  // The maximum number of files that the dataset keeps open. 0 for half of the process's limit,
  // but at most 256, and 4,096 for objects of a store. Raise it for datasets of many files in a
  // shuffled order.
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
  // The id, which a dataset keeps for its life; without a manifest, that of its files.
  uint8_t dataset_id[16];
  // How files are read.
  tensilo_io io;
} tensilo_dataset_info;

// How samples are shuffled.
typedef uint32_t tensilo_order;

// How an epoch ends.
typedef uint32_t tensilo_last_batch;

// The way in which a loader treats samples that are damaged.
typedef uint32_t tensilo_on_damage;

// Another type for a column.
typedef struct tensilo_cast {
  // The name of the column.
  const char *column;
  // The type: of floats any float, rounded to nearest even if it is narrower; of integers a
  // wider one.
  tensilo_dtype dtype;
} tensilo_cast;

// A padding, with which samples of different shapes become one tensor.
typedef struct tensilo_padding {
  // The name of the column.
  const char *column;
  // The value of what is filled up.
  double value;
  // The number of which varying extents become a multiple; 0 for 1.
  uint32_t multiple;
} tensilo_padding;

// Functions that lend memory for the values of batches, such as pinned memory that a device copies
// from. Threads of the loader call them, for each column of each batch; no exception may leave
// them.
typedef struct tensilo_allocator {
  // `sizeof(tensilo_allocator)`, set by the caller.
  size_t struct_size;
  // Returns `byte_count` bytes of any content, aligned to at least 8 bytes, or NULL if there are
  // none.
  void *(*allocate)(void *user,
                    size_t byte_count);
  // Takes back what `allocate` has returned: when the batch is closed and no array that was
  // exported from it is left.
  void (*release)(void *user,
                  void *memory,
                  size_t byte_count);
  // The first argument of both.
  void *user;
} tensilo_allocator;

// The options of a loader. Zero in each member is the default, but `batch_size` has to be set.
// What pointers lead to is copied by the call that takes the options.
typedef struct tensilo_loader_options {
  // `sizeof(tensilo_loader_options)`, set by the caller.
  size_t struct_size;
  // The samples of a batch of this rank.
  uint32_t batch_size;
  // The number of this rank, counted from 0.
  uint32_t rank;
  // The number of ranks; 0 for 1.
  uint32_t world_size;
  // How samples are shuffled.
  tensilo_order order;
  // The samples of a run of `TENSILO_ORDER_WINDOWED`; 0 for what the dataset records.
  uint32_t run_samples;
  // The runs of a window of `TENSILO_ORDER_WINDOWED`; 0 for what the dataset records.
  uint32_t window_runs;
  // How an epoch ends.
  tensilo_last_batch last_batch;
  // The way in which a loader treats samples that are damaged.
  tensilo_on_damage on_damage;
  // The seed of the order, if `has_seed` is 1; otherwise 0 or, if a loader resumes, that of the
  // state.
  uint64_t seed;
  // Whether `seed` is set: 0 or 1.
  uint32_t has_seed;
  // The maximum number of threads that decode at the same time; 0 for one less than the
  // processors. Raise it if `tensilo_metrics` show more decoding than fetching.
  uint32_t decode_threads;
  // The number of batches that are read at the same time; 0 for the decode threads, and at least
  // 4 for objects of a store. Raise it for storage with a high latency.
  uint32_t io_depth;
  // The maximum number of batches that are ready or in work; 0 for twice the I/O depth. Raise it
  // if the times of steps or of the storage vary much.
  uint32_t prefetch;
  // The names of `column_count` columns; NULL for all. Columns of decimals with a scale or more
  // than 18 digits, and of intervals, are refused: their stored elements are not their values.
  const char *const *columns;
  // The number of columns.
  size_t column_count;
  // `cast_count` columns that become another type.
  const struct tensilo_cast *casts;
  // The number of casts.
  size_t cast_count;
  // `padding_count` columns that are padded.
  const struct tensilo_padding *paddings;
  // The number of paddings.
  size_t padding_count;
  // Memory of the caller for values, such as pinned memory; NULL for that of the library.
  const struct tensilo_allocator *allocator;
} tensilo_loader_options;

// Facts about a loader.
typedef struct tensilo_loader_info {
  // `sizeof(tensilo_loader_info)`, set by the caller.
  size_t struct_size;
  // The number of batches of an epoch.
  uint64_t batches_per_epoch;
} tensilo_loader_info;

// The times at which the checksum of a chunk is checked.
typedef uint32_t tensilo_verification;

// The options for opening a file. Zero in each member is the default.
typedef struct tensilo_open_options {
  // `sizeof(tensilo_open_options)`, set by the caller.
  size_t struct_size;
  // How the file is read.
  tensilo_io io;
  // When chunks are checked.
  tensilo_verification verification;
  // The bytes to which a chunk may decode at most; 0 for the limit of the format, 4 GiB. A
  // larger chunk is refused before memory is taken for it: set this for files of strangers.
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
  // The bytes after the last commit, which are not read: normally 0.
  uint64_t tail_bytes;
  // The number of commits.
  uint32_t commit_count;
  // Whether the writer said that the file is complete.
  bool is_finished;
  // The id of the file.
  uint8_t file_id[12];
  // The id of the content up to the commit that is read.
  uint8_t content_id[16];
} tensilo_reader_info;

// One column: the type and shape of its items, and what its samples are.
//
// If `level_count` is 0, a sample is an item. Otherwise it is a list of items or of lists, one
// level in another. Pointers live as long as the schema.
typedef struct tensilo_column_info {
  // `sizeof(tensilo_column_info)`, set by the caller.
  size_t struct_size;
  // The name, which has no NUL.
  const char *name;
  // The type of the samples in words, such as `list<utf8>`.
  const char *type_name;
  // The type of the elements.
  tensilo_dtype dtype;
  // The number of dimensions of an item: 0 of a number, 1 of text and bytes.
  uint32_t rank;
  // The `rank` extents of an item, outermost first: -1 where items have different ones.
  const int64_t *extents;
  // The number of extents that are -1: 0 of a fixed shape.
  uint32_t varying_count;
  // The number of levels of lists around an item.
  uint32_t level_count;
  // For each level, outermost first, whether the members of its lists may be null.
  const bool *level_nullable;
  // Whether samples may be null.
  bool nullable;
  // Whether each sample has `sample_bytes` bytes: the shape is fixed and there are no lists.
  bool is_fixed;
  // The bytes of one sample, if `is_fixed`; otherwise 0.
  size_t sample_bytes;
  // The number of entries of the column's own metadata.
  size_t metadata_count;
} tensilo_column_info;

// An entry of metadata. Both texts end with a NUL, and may have others in them.
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

// The options of a verification. Zero in each member is the default.
typedef struct tensilo_verify_options {
  // `sizeof(tensilo_verify_options)`, set by the caller.
  size_t struct_size;
  // 1 to decode each chunk, and check each value, too. A hostile file of a megabyte can take
  // minutes then: `progress` can end the work.
  uint32_t decode;
  // The number of threads; 0 for one. The report does not depend on it.
  uint32_t thread_count;
  // If not NULL, called from time to time with the bytes that were checked and those of the
  // file. It ends the work with the status `TENSILO_CANCELLED` if it returns anything but 0. The
  // calling thread calls it; no exception may leave it.
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
  // The number of samples in the last valid commit, if `has_commit`.
  uint64_t sample_count;
  // The number of findings; 0: the file is intact and finished.
  size_t damage_count;
  // Whether there is a valid commit.
  bool has_commit;
  // Whether anything is damaged. If not, all samples of the last commit are intact, but a writer
  // may be at work, or have been stopped.
  bool is_damaged;
} tensilo_report_info;

// What a finding of a verification means.
typedef uint32_t tensilo_damage_kind;

// A damaged region, or what a writer that has not finished has left. Pointers live as long as the
// report; what is not known is NULL.
typedef struct tensilo_damage {
  // `sizeof(tensilo_damage)`, set by the caller.
  size_t struct_size;
  // The offset of the first damaged byte.
  uint64_t file_start;
  // One more than the offset of the last damaged byte.
  uint64_t file_end;
  // The kind of the region, such as `chunk`.
  const char *region;
  // The column that it belongs to.
  const char *column;
  // The first sample that is lost or in doubt, if `has_samples`.
  uint64_t samples_start;
  // One more than the last sample that is lost or in doubt.
  uint64_t samples_end;
  // The error, which names the rule of the specification.
  const struct tensilo_error *error;
  // Whether the samples are known.
  bool has_samples;
  // What the finding means.
  tensilo_damage_kind kind;
} tensilo_damage;

// The call succeeded.
#define TENSILO_OK 0

// The bytes break a rule of the format: the file is damaged, incomplete or not a tensilo file.
#define TENSILO_CORRUPT 1

// The file uses a feature that this release does not know. A newer release reads it.
#define TENSILO_TOO_NEW 2

// The file or the call needs a cargo feature that this build of the library lacks.
#define TENSILO_NOT_BUILT 3

// A limit would be exceeded: of the format, of the caller, or of the memory of this machine.
#define TENSILO_OVER_LIMIT 4

// An argument does not fit: sample out of range, wrong length, NULL.
#define TENSILO_BAD_ARGUMENT 5

// An input has values that cannot be converted.
#define TENSILO_BAD_INPUT 6

// A callback of the caller ended the work.
#define TENSILO_CANCELLED 7

// A fault of tensilo, or of the processor or memory of this machine. Please report it.
#define TENSILO_INTERNAL 8

// The operating system reported an error, see `os_code` of `tensilo_error_info`.
#define TENSILO_IO 9

// The state of a loader is damaged, or of a job that this one cannot continue.
#define TENSILO_BAD_STATE 10

// Another writer has published the same version of the dataset first.
#define TENSILO_CONFLICT 11

// The file was written before edition 1 of the format. Convert its source again.
#define TENSILO_TOO_OLD 12

// The file or the batch has no column of this name.
#define TENSILO_UNKNOWN_COLUMN 13

// Values of another type than the column's were given or requested.
#define TENSILO_WRONG_TYPE 14

// Another writer has locked the file. Try again when it is done.
#define TENSILO_BUSY 15

// As `TENSILO_ORDER_WINDOWED`, with the sizes that the dataset records.
#define TENSILO_ORDER_DEFAULT 0

// Runs of consecutive samples are shuffled, and then the samples inside of windows of runs, so
// that files are read in long pieces.
#define TENSILO_ORDER_WINDOWED 1

// Any sample may follow any other.
#define TENSILO_ORDER_SHUFFLED 2

// Samples are in the order of the dataset.
#define TENSILO_ORDER_SEQUENTIAL 3

// As `TENSILO_LAST_BATCH_DROP`; if a loader resumes, as the state says.
#define TENSILO_LAST_BATCH_DEFAULT 0

// Samples that do not fill a batch of each rank are left out.
#define TENSILO_LAST_BATCH_DROP 1

// Samples from the beginning are repeated.
#define TENSILO_LAST_BATCH_PAD 2

// Each sample is delivered once, in smaller batches.
#define TENSILO_LAST_BATCH_EXACT 3

// The batch is an error.
#define TENSILO_ON_DAMAGE_FAIL 0

// Other samples take the places of damaged ones, the same ones on every rank.
#define TENSILO_ON_DAMAGE_SUBSTITUTE 1

// As suits the file: `pread`; for a dataset io_uring, if the build and the system have it.
#define TENSILO_IO_AUTO 0

// `pread`: safe, and right on network file systems.
#define TENSILO_IO_PREAD 1

// Memory maps: no system calls and no copies. As long as a handle that has come from the file
// lives, no process may change or cut off its bytes up to the last commit: they would change under
// their reader, which is undefined behaviour, and a page beyond a new end kills the process
// (`SIGBUS`). tensilo does neither: it replaces files by renaming and appends after the last
// commit. Do not map files on a network file system.
#define TENSILO_IO_MMAP 2

// io_uring with buffered I/O, all ranges of a batch at the same time (datasets, Linux).
#define TENSILO_IO_IO_URING 3

// io_uring with direct I/O (`O_DIRECT`), which bypasses the page cache (datasets, Linux): for
// shuffled datasets larger than memory.
#define TENSILO_IO_DIRECT 4

// Each chunk, when this reader first uses it.
#define TENSILO_VERIFY_FIRST_TOUCH 0

// Each chunk, each time it is loaded.
#define TENSILO_VERIFY_ALWAYS 1

// No chunk: wrong bytes may give wrong values without an error.
#define TENSILO_VERIFY_NEVER 2

// The upper half of a float of 4 bytes: 1 sign, 8 exponent and 7 mantissa bits.
#define TENSILO_BF16 1

// IEEE 754 binary16.
#define TENSILO_F16 2

// `float`.
#define TENSILO_F32 3

// `double`.
#define TENSILO_F64 4

// `int8_t`.
#define TENSILO_I8 5

// `int16_t`.
#define TENSILO_I16 6

// `int32_t`.
#define TENSILO_I32 7

// `int64_t`.
#define TENSILO_I64 8

// `uint8_t`.
#define TENSILO_U8 9

// `uint16_t`.
#define TENSILO_U16 10

// `uint32_t`.
#define TENSILO_U32 11

// `uint64_t`.
#define TENSILO_U64 12

// One byte, 0 or 1.
#define TENSILO_BOOL 13

// A string of bytes for each item.
#define TENSILO_BYTES 14

// UTF-8 text for each item, without a NUL at the end.
#define TENSILO_UTF8 15

// A float of 8 bits: 4 exponent and 3 mantissa bits, no infinities.
#define TENSILO_F8_E4M3FN 16

// A float of 8 bits: 4 exponent and 3 mantissa bits, one NaN, no infinities, no -0.
#define TENSILO_F8_E4M3FNUZ 17

// A float of 8 bits: 5 exponent and 2 mantissa bits.
#define TENSILO_F8_E5M2 18

// A float of 8 bits: 5 exponent and 2 mantissa bits, one NaN, no infinities, no -0.
#define TENSILO_F8_E5M2FNUZ 19

// A scale of 8 bits: a power of two, or NaN.
#define TENSILO_F8_E8M0FNU 20

// A float of 6 bits in a byte: 2 exponent and 3 mantissa bits.
#define TENSILO_F6_E2M3 21

// A float of 6 bits in a byte: 3 exponent and 2 mantissa bits.
#define TENSILO_F6_E3M2 22

// A float of 4 bits in a byte: 2 exponent bits and 1 mantissa bit.
#define TENSILO_F4_E2M1 23

// A signed integer of 4 bits in a byte, whose upper bits are zero: -1 is 0x0F.
#define TENSILO_I4 24

// An unsigned integer of 4 bits in a byte.
#define TENSILO_U4 25

// Two `float`: the real and the imaginary part.
#define TENSILO_COMPLEX64 26

// Bytes are wrong, or missing.
#define TENSILO_DAMAGE_DAMAGED 0

// An append is at work, or was stopped, and has not committed the bytes. They hold no sample of
// the file.
#define TENSILO_DAMAGE_UNCOMMITTED 1

// The file ends with a commit, but its writer has not finished it.
#define TENSILO_DAMAGE_UNFINISHED 2

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of the library, such as `0.1.0`. It lives forever.
const char *tensilo_version(void);

// Exports the samples of a buffer as an array with its type. The values are shared, not copied,
// unless Arrow has another layout (bool, bf16): the array keeps them, also if the buffer is filled
// again or closed. Call `release` of both, once.
//
// Numbers are primitive arrays, tensors lists in lists, of a fixed size where an extent is. Text
// and bytes are large strings and binaries. bf16 becomes float, because Arrow has no bf16. Dates
// and times that were imported from Arrow have their type again.
tensilo_status tensilo_buffer_export_arrow(const struct tensilo_buffer *buffer,
                                           struct ArrowSchema *schema,
                                           struct ArrowArray *array,
                                           struct tensilo_error **error);

// Exports a batch as an array of structs with its type, one field for each column. It shares
// values as `tensilo_buffer_export_arrow` does, and keeps them also if the batch is closed.
tensilo_status tensilo_batch_export_arrow(const struct tensilo_batch *batch,
                                          struct ArrowSchema *schema,
                                          struct ArrowArray *array,
                                          struct tensilo_error **error);

// Exports a whole file as a stream of arrays of structs, with the types of what it was imported
// from. `columns` are the names of `column_count` columns, or NULL for all. A batch has at most
// `batch_samples` samples; 0 for the default. The stream keeps the file open. Call `release` of
// it, once.
//
// Cost: each chunk is decoded once and copied once.
tensilo_status tensilo_reader_export_stream(const struct tensilo_reader *reader,
                                            const char *const *columns,
                                            size_t column_count,
                                            uint64_t batch_samples,
                                            struct ArrowArrayStream *stream,
                                            struct tensilo_error **error);

// Closes a batch, and sets the pointer to NULL: the loader uses its memory again. Does nothing if
// `batch` or `*batch` is NULL.
void tensilo_batch_close(struct tensilo_batch **batch);

// Gives facts about a batch.
tensilo_status tensilo_batch_get_info(const struct tensilo_batch *batch,
                                      struct tensilo_batch_info *info,
                                      struct tensilo_error **error);

// Returns the columns as they are delivered, which live as long as the batch; NULL of NULL.
const struct tensilo_schema *tensilo_batch_schema(const struct tensilo_batch *batch);

// Finds the column of this name in a batch.
tensilo_status tensilo_batch_find_column(const struct tensilo_batch *batch,
                                         const char *name,
                                         size_t *index,
                                         struct tensilo_error **error);

// Gives the samples of column number `column` of a batch, counted from 0. Their pointers live as
// long as the batch. Of a column that is padded, `offsets` and `varying_extents` are those before
// that.
tensilo_status tensilo_batch_get_samples(const struct tensilo_batch *batch,
                                         size_t column,
                                         struct tensilo_samples *samples,
                                         struct tensilo_error **error);

// Gives the lists of a level of a nested column of a batch, both counted from 0. Their pointers
// live as long as the batch.
tensilo_status tensilo_batch_get_lists(const struct tensilo_batch *batch,
                                       size_t column,
                                       size_t level,
                                       struct tensilo_lists *lists,
                                       struct tensilo_error **error);

// Takes the next batch, and waits for it; `*batch` is NULL at the end. Close the batch with
// `tensilo_batch_close`. A batch that cannot be read is an error in its place; the next call goes
// on with the next one.
tensilo_status tensilo_batches_next(struct tensilo_batches *batches,
                                    struct tensilo_batch **batch,
                                    struct tensilo_error **error);

// Waits until the next batch is ready, at most for `timeout_ms` milliseconds. `*is_ready` becomes
// whether it is, so that taking it does not wait; at the end, too.
tensilo_status tensilo_batches_wait(const struct tensilo_batches *batches,
                                    uint64_t timeout_ms,
                                    bool *is_ready,
                                    struct tensilo_error **error);

// Writes the state after the batches that were taken to `state`, which has `TENSILO_STATE_BYTES`
// bytes: `tensilo_loader_resume` goes on there. Cost: some nanoseconds.
tensilo_status tensilo_batches_get_state(const struct tensilo_batches *batches,
                                         uint8_t *state,
                                         size_t state_bytes,
                                         struct tensilo_error **error);

// Gives what the iterator did until now.
tensilo_status tensilo_batches_get_metrics(struct tensilo_batches *batches,
                                           struct tensilo_metrics *metrics,
                                           struct tensilo_error **error);

// Closes an iterator, ends its threads, and sets the pointer to NULL. Batches that were taken
// stay. Does nothing if `batches` or `*batches` is NULL.
void tensilo_batches_close(struct tensilo_batches **batches);

// Returns the kind of an error; `TENSILO_OK` of NULL.
tensilo_status tensilo_error_status(const struct tensilo_error *error);

// Returns everything that is known of an error in one text, for people; an empty text of NULL. It
// lives as long as the error.
const char *tensilo_error_text(const struct tensilo_error *error);

// Returns piece number `index` of the advice of an error, counted from 0: an action with which the
// call succeeds, or which helps. NULL after the last. It lives as long as the error.
const char *tensilo_error_advice(const struct tensilo_error *error,
                                 size_t index);

// Gives the fields of an error. Fails only if an argument is NULL, or the size of `info` is not
// set; there is no error of that but the status.
tensilo_status tensilo_error_get_info(const struct tensilo_error *error,
                                      struct tensilo_error_info *info);

// Frees an error, and sets the pointer to NULL. Does nothing if `error` or `*error` is NULL.
void tensilo_error_free(struct tensilo_error **error);

// Opens a cursor for the column of this name. Close it with `tensilo_cursor_close`.
//
// Cost: linear in the number of columns; keep the cursor.
tensilo_status tensilo_cursor_open(const struct tensilo_reader *reader,
                                   const char *column,
                                   struct tensilo_cursor **cursor,
                                   struct tensilo_error **error);

// Closes a cursor, and sets the pointer to NULL. Does nothing if `cursor` or `*cursor` is NULL.
void tensilo_cursor_close(struct tensilo_cursor **cursor);

// Reads sample number `index`, counted from 0, of a column without lists. The pointers of `sample`
// live until the next call with this cursor.
//
// Cost: if the sample is in the chunk that was decoded last, a bounds check. Else its chunk is
// read, and checked on first touch; the sample is decoded alone, if its encoding can do that. A
// sample that is stored as it is, in a file that is mapped, is not copied.
tensilo_status tensilo_cursor_read(struct tensilo_cursor *cursor,
                                   uint64_t index,
                                   struct tensilo_sample *sample,
                                   struct tensilo_error **error);

// Reads sample number `index` of a column without lists into `out`, which has room for `out_bytes`
// bytes. `*value_bytes` becomes the number of bytes, and `*is_null` whether the sample is null:
// its values are zeros of a fixed shape, and none otherwise. Both may be NULL. Fails if `out` is
// too short.
//
// Cost: as `tensilo_cursor_read`. A sample that is decoded alone goes straight to `out`, any other
// is copied.
tensilo_status tensilo_cursor_read_into(struct tensilo_cursor *cursor,
                                        uint64_t index,
                                        uint8_t *out,
                                        size_t out_bytes,
                                        size_t *value_bytes,
                                        bool *is_null,
                                        struct tensilo_error **error);

// Copies `count` samples of a fixed shape to `out`, in the order of `indices`, and repeated ones
// each time. `out_bytes` is exactly `count` times the `sample_bytes` of the column. Nulls become
// zeros, and `*null_count`, which may be NULL, their number; a `tensilo_buffer` tells which they
// are.
//
// Cost: each chunk is read and decoded at most once; samples that are stored as they are go
// straight to `out`. Nothing is allocated once the cursor has warmed up.
tensilo_status tensilo_cursor_gather(struct tensilo_cursor *cursor,
                                     const uint64_t *indices,
                                     size_t count,
                                     uint8_t *out,
                                     size_t out_bytes,
                                     size_t *null_count,
                                     struct tensilo_error **error);

// Copies the samples from `start` to `end`, without the last, as `tensilo_cursor_gather` does.
tensilo_status tensilo_cursor_gather_range(struct tensilo_cursor *cursor,
                                           uint64_t start,
                                           uint64_t end,
                                           uint8_t *out,
                                           size_t out_bytes,
                                           size_t *null_count,
                                           struct tensilo_error **error);

// Fills a buffer with `count` samples of any column, in the order of `indices`, and repeated ones
// each time. If that fails, the buffer is empty.
//
// Cost: as `tensilo_cursor_gather`; encoded values that are ragged or nested are copied once more.
tensilo_status tensilo_cursor_fill_buffer(struct tensilo_cursor *cursor,
                                          const uint64_t *indices,
                                          size_t count,
                                          struct tensilo_buffer *buffer,
                                          struct tensilo_error **error);

// Fills a buffer with the samples from `start` to `end`, without the last. If that fails, the
// buffer is empty.
//
// Cost: each chunk is decoded once, straight to the buffer, if it is wanted whole.
tensilo_status tensilo_cursor_fill_buffer_range(struct tensilo_cursor *cursor,
                                                uint64_t start,
                                                uint64_t end,
                                                struct tensilo_buffer *buffer,
                                                struct tensilo_error **error);

// Opens a dataset: a folder with a manifest, whose newest version is opened; a folder of `*.tsl`
// files, in the order of their names; or one file. `path` may be an address, such as
// `s3://bucket/train`, if the library has the feature `object`. `options` may be NULL. Close it
// with `tensilo_dataset_close`.
//
// Cost: with a manifest, the reading of one text; without, the opening of all files.
tensilo_status tensilo_dataset_open(const char *path,
                                    const struct tensilo_dataset_options *options,
                                    struct tensilo_dataset **dataset,
                                    struct tensilo_error **error);

// Closes a dataset, and sets the pointer to NULL. Does nothing if `dataset` or `*dataset` is NULL.
void tensilo_dataset_close(struct tensilo_dataset **dataset);

// Returns the columns and the metadata of a dataset, which live as long as the dataset; NULL of
// NULL.
const struct tensilo_schema *tensilo_dataset_schema(const struct tensilo_dataset *dataset);

// Gives facts about a dataset.
tensilo_status tensilo_dataset_get_info(const struct tensilo_dataset *dataset,
                                        struct tensilo_dataset_info *info,
                                        struct tensilo_error **error);

// Makes a loader of a dataset. Starts no thread and opens no file. Close it with
// `tensilo_loader_close`.
tensilo_status tensilo_loader_new(const struct tensilo_dataset *dataset,
                                  const struct tensilo_loader_options *options,
                                  struct tensilo_loader **loader,
                                  struct tensilo_error **error);

// Closes a loader, and sets the pointer to NULL. Its iterators and batches stay. Does nothing if
// `loader` or `*loader` is NULL.
void tensilo_loader_close(struct tensilo_loader **loader);

// Gives facts about a loader.
tensilo_status tensilo_loader_get_info(const struct tensilo_loader *loader,
                                       struct tensilo_loader_info *info,
                                       struct tensilo_error **error);

// Begins an epoch, counted from 0: starts threads that read ahead. Close the iterator with
// `tensilo_batches_close`.
tensilo_status tensilo_loader_begin(const struct tensilo_loader *loader,
                                    uint64_t epoch,
                                    struct tensilo_batches **batches,
                                    struct tensilo_error **error);

// Goes on from a state to the end of its epoch: starts threads that read ahead. The batch size and
// the number of ranks may differ from those before. Close the iterator with
// `tensilo_batches_close`.
//
// Fails with `TENSILO_BAD_STATE` if the state is damaged, or of another dataset, or if the loader
// was told another order, seed or tail.
tensilo_status tensilo_loader_resume(const struct tensilo_loader *loader,
                                     const uint8_t *state,
                                     size_t state_bytes,
                                     struct tensilo_batches **batches,
                                     struct tensilo_error **error);

// Writes the state at the begin of an epoch to `state`, which has `TENSILO_STATE_BYTES` bytes.
tensilo_status tensilo_loader_get_state(const struct tensilo_loader *loader,
                                        uint64_t epoch,
                                        uint8_t *state,
                                        size_t state_bytes,
                                        struct tensilo_error **error);

// Makes a reader of any samples of a dataset, with the columns, casts, paddings and memory of
// `options`, which has a `batch_size` of at least 1. Close it with `tensilo_sample_reader_close`.
tensilo_status tensilo_sample_reader_new(const struct tensilo_dataset *dataset,
                                         const struct tensilo_loader_options *options,
                                         struct tensilo_sample_reader **reader,
                                         struct tensilo_error **error);

// Reads `count` samples, in the order of `indices`, and repeated ones each time. Close the batch
// with `tensilo_batch_close`.
//
// Cost: that of a gather, into memory that is used again when the batch is closed.
tensilo_status tensilo_sample_reader_take(struct tensilo_sample_reader *reader,
                                          const uint64_t *indices,
                                          size_t count,
                                          struct tensilo_batch **batch,
                                          struct tensilo_error **error);

// Closes a reader, and sets the pointer to NULL. Its batches stay. Does nothing if `reader` or
// `*reader` is NULL.
void tensilo_sample_reader_close(struct tensilo_sample_reader **reader);

// Opens a file. `path` may be the address of an object, such as `s3://bucket/x.tsl`, if the
// library has the feature `object`. `options` may be NULL. Close it with `tensilo_reader_close`.
//
// Cost: the same for any number of samples: some reads, and memory for the schema and the index of
// columns.
tensilo_status tensilo_reader_open(const char *path,
                                   const struct tensilo_open_options *options,
                                   struct tensilo_reader **reader,
                                   struct tensilo_error **error);

// Closes a reader, and sets the pointer to NULL. Does nothing if `reader` or `*reader` is NULL.
void tensilo_reader_close(struct tensilo_reader **reader);

// Returns the columns and the metadata of a file, which live as long as the reader; NULL of NULL.
const struct tensilo_schema *tensilo_reader_schema(const struct tensilo_reader *reader);

// Gives facts about a file.
tensilo_status tensilo_reader_get_info(const struct tensilo_reader *reader,
                                       struct tensilo_reader_info *info,
                                       struct tensilo_error **error);

// Makes an empty buffer, for any column. Close it with `tensilo_buffer_close`.
tensilo_status tensilo_buffer_new(struct tensilo_buffer **buffer,
                                  struct tensilo_error **error);

// Closes a buffer, and sets the pointer to NULL. Does nothing if `buffer` or `*buffer` is NULL.
void tensilo_buffer_close(struct tensilo_buffer **buffer);

// Gives the samples of a buffer. Their pointers live until the buffer is filled again or closed.
tensilo_status tensilo_buffer_get_samples(const struct tensilo_buffer *buffer,
                                          struct tensilo_samples *samples,
                                          struct tensilo_error **error);

// Gives the lists of a level of a nested column, counted from 0. Their pointers live as those of
// `tensilo_buffer_get_samples`.
tensilo_status tensilo_buffer_get_lists(const struct tensilo_buffer *buffer,
                                        size_t level,
                                        struct tensilo_lists *lists,
                                        struct tensilo_error **error);

// Returns the name of a type, such as `bf16`; NULL if there is no such type. It lives forever.
const char *tensilo_dtype_name(tensilo_dtype dtype);

// Returns the bytes of one element: 1 of bytes and text, 0 if there is no such type.
size_t tensilo_dtype_bytes(tensilo_dtype dtype);

// Returns the number of columns; 0 of NULL.
size_t tensilo_schema_column_count(const struct tensilo_schema *schema);

// Gives what is known of column number `index`, counted from 0.
tensilo_status tensilo_schema_get_column(const struct tensilo_schema *schema,
                                         size_t index,
                                         struct tensilo_column_info *info,
                                         struct tensilo_error **error);

// Finds the column of this name. If there is none, the error names the most similar column.
tensilo_status tensilo_schema_find_column(const struct tensilo_schema *schema,
                                          const char *name,
                                          size_t *index,
                                          struct tensilo_error **error);

// Returns the number of entries of the metadata of a column, or of the file or dataset, if
// `column` is `TENSILO_NO_COLUMN`; 0 if there is no such column, and of NULL.
size_t tensilo_schema_metadata_count(const struct tensilo_schema *schema,
                                     size_t column);

// Gives entry number `index` of the metadata of a column, or of the file or dataset, if `column`
// is `TENSILO_NO_COLUMN`. Entries are in the order of their keys, and live as long as the schema.
tensilo_status tensilo_schema_get_metadata(const struct tensilo_schema *schema,
                                           size_t column,
                                           size_t index,
                                           struct tensilo_metadata *metadata,
                                           struct tensilo_error **error);

// Checks each byte of a file, which may be an object as in `tensilo_reader_open`. Damage is not an
// error: `*report` lists it. `options` may be NULL. Close the report with `tensilo_report_close`.
//
// Cost: the reading of the file and of some hundred bytes for each chunk.
tensilo_status tensilo_verify(const char *path,
                              const struct tensilo_verify_options *options,
                              struct tensilo_report **report,
                              struct tensilo_error **error);

// Closes a report, and sets the pointer to NULL. Does nothing if `report` or `*report` is NULL.
void tensilo_report_close(struct tensilo_report **report);

// Gives the result of a verification.
tensilo_status tensilo_report_get_info(const struct tensilo_report *report,
                                       struct tensilo_report_info *info,
                                       struct tensilo_error **error);

// Gives finding number `index`, counted from 0, in the order of the file.
tensilo_status tensilo_report_get_damage(const struct tensilo_report *report,
                                         size_t index,
                                         struct tensilo_damage *damage,
                                         struct tensilo_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TENSILO_H */
