"""The types of the extension module. The docstrings are copies from the Rust sources, for editors."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, Protocol, SupportsIndex, TypeVar, final, overload

__version__: str

_T = TypeVar("_T")

class _SupportsDLPack(Protocol):
    def __dlpack__(self) -> Any: ...

_Path = str | PathLike[str]
_Paths = _Path | Sequence[_Path]
# "bf16" or "float32", a type such as `float` or `np.int64`, or a dtype of NumPy, PyTorch or JAX. These
# dtypes have no common base class.
_DType = Any
# an integer, a slice, integers, or a mask with one bool per sample
_Indices = SupportsIndex | slice | Iterable[SupportsIndex] | _SupportsDLPack
_Profile = Literal["balanced", "fast", "small", "raw", "bitshuffle-zstd"]
_Io = Literal["auto", "mmap", "pread", "io_uring", "direct"]
_Progress = Callable[[str, int, int | None], object]
_Job = tuple[_Path, int, int]
_PlannedInput = tuple[str, int, bytes]
_Plan = tuple["list[_PlannedInput]", "Schema", "list[tuple[int, int, bytes]]"]
_JobFile = tuple[int, int, int, int, bytes]

@final
class Array:
    """A row-major tensor whose memory NumPy, PyTorch and JAX share without a copy.

    ``numpy()``, ``torch()`` and ``jax()`` return arrays of these libraries.
    ``torch.from_dlpack(array)``, ``np.asarray(array)`` and ``memoryview(array)`` also work. The
    memory is writable and belongs to the array, unless ``readonly`` is true. ``len(array)`` is the
    first extent. An integer index or a slice returns a view along the first dimension.
    """

    dtype: str
    """The dtype: "bf16", "f16", "f32", "f64", "i8" to "i64", "u8" to "u64", "bool", "complex64", a
    float of 4 to 8 bits, such as "f8_e4m3fn" or "f4_e2m1", or an integer of 4 bits, such as
    "i4".
    """

    shape: tuple[int, ...]
    """The extents, outermost first."""

    ndim: int
    """The number of dimensions."""

    nbytes: int
    """The size of all elements, in bytes."""

    readonly: bool
    """Whether the memory is read-only."""

    def numpy(self, dtype: _DType = None, *, view: _DType = None) -> Any:
        """Returns a NumPy array that shares the memory.

        bf16 becomes ``ml_dtypes.bfloat16`` if that package is installed. Without it,
        ``dtype="float32"`` converts exactly, and ``view="uint16"`` returns the bits. Floats of 4 to
        8 bits and integers of 4 bits also get dtypes of ``ml_dtypes``; without it, ``view="uint8"``
        returns the bits.

        Args:
            dtype (dtype or str, optional): the NumPy dtype to convert to. The result is a copy,
                unless the dtype stays the same. Default: no conversion.
            view (dtype or str, optional): the NumPy dtype to reinterpret the bytes as, of the same
                width. Default: no reinterpretation.
        """

    def torch(self) -> Any:
        """Returns a PyTorch tensor that shares the memory, or a copy of read-only memory."""

    def jax(self) -> Any:
        """Returns a JAX array on the CPU. It shares the memory if the memory is aligned to 64 bytes."""

    def view(self, dtype: _DType) -> Array:
        """Returns an array that shares the memory, but reinterprets its bytes as another dtype of the
        same width.

        Args:
            dtype (str or dtype): the dtype of the result.
        """

    def tolist(self) -> Any:
        """Returns the elements as nested lists, or the only element of a 0-dimensional array."""

    def item(self) -> Any:
        """Returns the only element as a Python number."""

    def tobytes(self) -> bytes:
        """Returns a copy of the bytes."""

    def __array__(self, dtype: _DType = None, *, copy: bool | None = None) -> Any: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Exports the array through DLPack. The capsule is versioned if ``max_version`` allows it, as
        in NumPy 2 and PyTorch 2.9, and unversioned otherwise.
        """

    def __dlpack_device__(self) -> tuple[int, int]: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...
        def __release_buffer__(self, buffer: memoryview, /) -> None: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __bool__(self) -> bool: ...
    def __index__(self) -> int: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> Array: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...

@final
class BatchColumn:
    """The samples of one column of a batch.

    Samples of a fixed shape are one tensor: ``numpy()``, ``torch()``, ``jax()`` and
    ``torch.from_dlpack(column)`` share its memory. For samples of different shapes, ``ragged()``
    returns values and offsets, and ``padded()`` a padded tensor. ``tolist()`` returns text and
    bytes. Arrow libraries accept any column: ``pa.array(column)``.
    """

    name: str
    """The name of the column."""

    dtype: str
    """The dtype of the elements, such as "bf16"."""

    logical_type: str | None
    """The type that the elements represent, such as "decimal128[22, 2]" or "timestamp[us, UTC]";
    None if they are plain numbers, text or bytes.
    """

    stored: BatchColumn
    """The same samples as stored elements, without their logical type: decimals, for example, as
    unscaled integers.
    """

    shape: tuple[int | None, ...]
    """The number of samples followed by the shape of a sample; None where an extent varies."""

    levels: list[bool]
    """For each level of lists around the items, outermost first, whether its members may be null."""

    nullable: bool
    """Whether samples may be null."""

    is_tensor: bool
    """Whether the samples are one tensor because they have a fixed shape or were padded."""

    null_count: int
    """The number of null samples."""

    def nulls(self) -> Array | None:
        """Returns a bool array that is true for null samples, or None if there are no nulls.

        If the shape is fixed, the elements of a null sample are zeros; otherwise, a null sample has
        no elements.
        """

    def numpy(self, dtype: _DType = None, *, view: _DType = None) -> Any:
        """Returns a NumPy array. For samples of a fixed shape, it shares the memory; for text and
        bytes, it is an object array.

        Args:
            dtype (dtype or str, optional): the NumPy dtype to convert to, such as "float32".
                Default: no conversion.
            view (dtype or str, optional): the NumPy dtype to reinterpret the bytes as, such as
                "uint16" for bf16. Default: no reinterpretation.
        """

    def torch(self) -> Any:
        """Returns a PyTorch tensor. For samples of a fixed shape, it shares the memory; for samples
        whose first extent varies, it is a nested tensor of layout ``torch.jagged``.
        """

    def jax(self) -> Any:
        """Returns a JAX array of samples of a fixed shape."""

    def array(self) -> Array:
        """Returns samples of a fixed shape as one ``Array``."""

    def ragged(self) -> tuple[Array, ...]:
        """Returns the concatenated values of all samples and the offsets of each level, outermost
        first. For samples that are not lists, the result is ``(values, offsets)``.

        If only the first extent varies, the other extents are dimensions of ``values``, and offsets
        are numbers of rows; otherwise, offsets are numbers of elements. Sample ``i`` is
        ``values[offsets[i]:offsets[i + 1]]``.
        """

    @overload
    def padded(self, value: float = 0.0, *, multiple: int = 1, out: None = None) -> Array:
        """Returns samples of different shapes as one tensor, padded to the longest sample of the
        batch.

        Args:
            value (float, optional): the padding value, which also fills null samples. Default: 0.
            multiple (int, optional): rounds the padded length up to a multiple of this number, so
                fewer different shapes occur. Default: 1.
            out (optional): the array to write to and to return. It can be any writable object with
                DLPack or the buffer protocol, and must have the shape that ``padded_shape``
                returns. Default: a new ``Array``.
        """

    @overload
    def padded(self, value: float = 0.0, *, multiple: int = 1, out: _T) -> _T: ...
    def padded_shape(self, *, multiple: int = 1) -> tuple[int, ...]:
        """Returns the shape of the tensor that ``padded`` returns.

        Args:
            multiple (int, optional): rounds the padded length up, as in ``padded``. Default: 1.
        """

    _device_range: tuple[int, int] | None
    """The start and end of the values in the device memory of the batch; None if they are in host
    memory.
    """

    _element_bytes: int
    """The size of an element, in bytes."""

    def _row_offsets(self) -> Array:
        """Returns the offsets of samples whose first extent varies, in rows of values."""

    def _sample_slots(self) -> list[tuple[int, tuple[int, ...]] | None]:
        """Returns, for each sample, its byte offset in the values and its shape; None for nulls."""

    def tolist(self) -> list[Any]:
        """Returns the samples as Python numbers, strings, bytes and lists; None for nulls."""

    def __array__(self, dtype: _DType = None, *, copy: bool | None = None) -> Any: ...
    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, ...]: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Any: ...
    @overload
    def __getitem__(self, index: slice | Iterable[int], /) -> BatchColumn: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...

@final
class Batch:
    """Samples of several columns, in the requested order.

    ``batch["mel"]`` is a ``BatchColumn``, ``batch[3]`` a sample as a dict. ``batch[2:4]``,
    ``batch[[5, 3]]`` and ``batch[mask]`` are copies of the selected samples. A batch is a mapping
    from names to columns, but ``len(batch)`` is the number of samples. Arrow libraries accept it:
    ``pa.table(batch)``. Its pickle contains the values.
    """

    indices: Array
    """The indices of the samples in the dataset: an i64 array."""

    epoch: int
    """The epoch in which a loader delivered the batch, counted from 0."""

    position: int
    """The position in the epoch at which the step starts, counted over all ranks."""

    substituted: list[int]
    """The samples that replace damaged samples, as indices in the batch."""

    def keys(self) -> list[str]:
        """Returns the names of the columns."""

    def values(self) -> list[BatchColumn]:
        """Returns the columns."""

    def items(self) -> list[tuple[str, BatchColumn]]:
        """Returns the names and the columns."""

    def get(self, name: str, default: _T | None = None) -> BatchColumn | _T | None:
        """Returns a column, or ``default`` if the batch does not have it."""

    def rows(self) -> list[dict[str, Any]]:
        """Returns the samples as dicts."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, ...]: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __array__(self, *_arguments: Any, **_options: Any) -> Any:
        """Raises TypeError, so that NumPy and pandas do not mistake the column names for the values."""

    def __len__(self) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    @overload
    def __getitem__(self, key: str, /) -> BatchColumn: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice | Iterable[int], /) -> Batch: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...

@final
class ColumnType:
    """The type of a column: the dtype of its elements, the shape of a sample, and whether samples may
    be null.

    ``tensor``, ``utf8``, ``binary`` and ``list_`` create column types.
    """

    dtype: str
    """The dtype of the elements, such as "bf16"."""

    logical_type: str | None
    """The type that the elements represent, such as "decimal128[22, 2]" or "timestamp[us, UTC]";
    None if they are plain numbers, text or bytes.
    """

    _advice: str | None
    """What to do before training on this column, if its elements only encode its values; otherwise
    None.
    """

    shape: tuple[int | None, ...]
    """The shape of a sample, or of an item of its lists; None where an extent varies."""

    nullable: bool
    """Whether samples may be null."""

    levels: list[bool]
    """For each level of lists around the items, outermost first, whether its members may be null.
    Empty if samples are not lists.
    """

    cast_from: str | None
    """The dtype that values were rounded from, or None."""

    metadata: dict[str, str]
    """The metadata of the column: a dict of strings."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __lt__(self, other: Any, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...

@final
class Schema:
    """The columns of a dataset: a mapping from names to ``ColumnType``."""

    metadata: dict[str, str]
    """The metadata of the dataset: a dict of strings."""

    def __new__(
        cls, columns: Mapping[str, ColumnType] | Schema, *, metadata: dict[str, str] | None = None
    ) -> Schema: ...
    def get(self, name: str, default: _T | None = None) -> ColumnType | _T | None:
        """Returns the type of a column, or ``default`` if the schema does not have it."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __ge__(self, other: Any, /) -> bool: ...
    def __gt__(self, other: Any, /) -> bool: ...
    def __le__(self, other: Any, /) -> bool: ...
    def __lt__(self, other: Any, /) -> bool: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...
    def keys(self) -> list[str]: ...
    def values(self) -> list[ColumnType]: ...
    def items(self) -> list[tuple[str, ColumnType]]: ...
    def _repr_html_(self) -> str: ...
    def __len__(self) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __getitem__(self, name: str, /) -> ColumnType: ...

@final
class Column:
    """A column of a dataset.

    ``column[17]`` is one sample. ``column[1000:1256]`` and ``column.take(indices)`` return a
    ``BatchColumn``.
    """

    name: str
    """The name of the column."""

    dtype: str
    """The dtype of the elements, such as "bf16"."""

    logical_type: str | None
    """The type that the elements represent, such as "decimal128[22, 2]" or "timestamp[us, UTC]";
    None if they are plain numbers, text or bytes.
    """

    shape: tuple[int | None, ...]
    """The shape of a sample, or of an item of its lists; None where an extent varies."""

    nullable: bool
    """Whether samples may be null."""

    type: ColumnType
    """The full type of the column in the schema."""

    @overload
    def take(self, indices: _Indices, *, dtype: _DType = None, out: None = None) -> BatchColumn:
        """Reads samples in the order of ``indices``, which may contain duplicates.

        Args:
            indices: the sample indices: a list, a range, an array or a tensor of integers, or a
                boolean mask. Negative indices count from the end.
            dtype (str or dtype, optional): the dtype to convert to. Floats convert to any float
                dtype; if it is narrower, they are rounded to nearest even. Integers convert to
                wider integers. Default: the dtype of the column.
            out (optional): the array to read into and to return. It can be any writable object with
                DLPack or the buffer protocol, and must have the shape ``(len(indices), *shape)``.
                If the call fails, the content of the array is unspecified. Default: a new
                ``BatchColumn``.

        Cost: decodes the samples into one allocation, without the GIL.
        """

    @overload
    def take(self, indices: _Indices, *, dtype: _DType = None, out: _T) -> _T: ...
    def view(self, index: int) -> Array:
        """Returns a read-only view of a sample in the mapped file, without a copy. Only chunks that
        are stored raw in a mapped file can be viewed.

        Args:
            index (int): the sample index. Negative indices count from the end.

        Cost: a few cache misses; the first view of a chunk verifies its checksum.
        """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Reads all samples, for ``numpy.asarray``."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> Any: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...

@final
class Dataset:
    """A versioned dataset, a file, or a list of files, read as one sequence of samples.

    ``len(dataset)`` is the number of samples. ``dataset[17]`` is one sample as a dict,
    ``dataset[1000:1256]`` a ``Batch``, and ``dataset["mel"]`` a ``Column``. Threads can share a
    dataset, and it works in forked processes. ``with tensilo.open(path) as dataset`` closes it at
    the end of the block; a file is closed once no array is a view of it. The pickle of a dataset
    that was opened from a path is smaller than 1 KB, because a process that unpickles it opens the
    files again on first use.
    """

    schema: Schema
    """The columns: a mapping from names to ``ColumnType``."""

    columns: list[str]
    """The names of the columns."""

    metadata: dict[str, str]
    """The metadata of the dataset: a dict of strings."""

    id: str
    """The id of the dataset: 32 hexadecimal digits. It is the same for all versions of a dataset
    with a manifest. Without a manifest, it depends on the content of the files.
    """

    version: int
    """The version, counted from 1; 0 for files without a manifest."""

    uri: str | list[str]
    """The path or list of paths that the dataset was opened from."""

    io: tuple[str, str]
    """The I/O method and the reason for it, such as
    ("pread", "chosen by the caller").
    """

    def versions(self) -> list[int]:
        """Returns the version numbers in the folder, oldest first. The list is empty without a
        manifest.
        """

    def take(
        self,
        indices: _Indices,
        columns: str | Sequence[str] | None = None,
        *,
        casts: Mapping[str, _DType] | None = None,
    ) -> Batch:
        """Reads samples in the order of ``indices``, which may contain duplicates.

        Args:
            indices: the sample indices: a list, a range, an array or a tensor of integers, or a
                boolean mask. Negative indices count from the end.
            columns (list of str, optional): the columns to read, in the order of the batch.
                Default: all columns.
            casts (dict, optional): the dtypes to convert columns to, such as ``{"mel": "f32"}``.
                Default: the stored dtypes.

        Raises:
            IndexError: a sample does not exist.
            KeyError: a column does not exist.
            CorruptionError: a sample is damaged.

        Cost: decodes the samples, without the GIL. The size of the dataset does not matter.
        """

    def split(self, fractions: Sequence[float], *, seed: int = 0) -> list[Dataset]:
        """Splits the dataset into disjoint random subsets with these fractions of its samples, for
        example ``train, validation = dataset.split([0.95, 0.05])``.

        The subset of a sample depends only on the seed and the index of the sample. So adding
        samples later never moves existing samples to another subset, and the fractions are exact
        only on average. Each subset has its own sample indices, starting at 0.

        Args:
            fractions (list of float): the fractions, each above 0, with a sum of at most 1.
            seed (int, optional): the seed of the split. Default: 0.

        Cost: 10 ns and 1.1 bits per sample of the dataset.
        """

    def select(self, indices: _Indices) -> Dataset:
        """Returns a dataset of these samples, in this order. Also works on subsets.

        Args:
            indices: the sample indices, as in ``take``.
        """

    def column(self, name: str) -> Column:
        """Returns a column by name."""

    def close(self) -> None:
        """Closes the dataset. Batches and arrays that were read from it stay valid."""

    def __enter__(self) -> Dataset: ...
    def __exit__(
        self,
        _exception: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool: ...
    def _repr_html_(self) -> str: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Returns a stream of all samples, with the Arrow types that the dataset was imported from."""

    def __len__(self) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    @overload
    def __getitem__(self, key: str, /) -> Column: ...
    @overload
    def __getitem__(self, key: SupportsIndex, /) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice | Iterable[int], /) -> Batch: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...

@final
class BatchIterator:
    """An iterator over the batches of an epoch."""

    def __iter__(self) -> BatchIterator: ...
    def __next__(self) -> Batch: ...

@final
class DeviceIterator:
    """An iterator over the batches of an epoch on a GPU. It yields each batch together with its
    memory.
    """

    def __iter__(self) -> DeviceIterator: ...
    def __next__(self) -> tuple[Batch, Any]: ...

@final
class SampleReader:
    """Reads samples in the form that a loader delivers, on the calling thread."""

    def take(self, indices: _Indices) -> Batch:
        """Reads samples in the order of ``indices``, which may contain duplicates."""

    def _take_on_device(self, indices: _Indices, allocate: Callable[[int], Any], stream: int) -> tuple[Batch, Any]:
        """Reads samples like ``take``, but the GPU of the loader decodes them, see
        ``Loader._iter_on_device``.
        """

@final
class Loader:
    """Delivers the batches of a dataset, which threads prefetch.

    ``for batch in loader`` delivers the batches of one epoch. The next ``for`` delivers the next
    epoch, even if the loop left the previous one early. ``state_dict()`` returns the state of the
    loader, and ``load_state_dict()`` resumes from it, even with a different number of ranks or a
    different batch size. No sample is lost or repeated.

    Args:
        dataset (Dataset, path or list of paths): the dataset, or a source for ``open``.
        batch_size (int): the number of samples in a batch of this rank.
        columns (list of str, optional): the columns to read. Default: all columns.
        casts (dict, optional): the dtypes to convert columns to, such as ``{"mel": "f32"}``.
            Default: the stored dtypes.
        pad (dict, optional): the columns to pad, so that samples of different shapes become one
            tensor: a dict from column names to padding values or ``(value, multiple)`` pairs. The
            padded extents are rounded up to a multiple of ``multiple``. Default: no padding.
        order (str, optional): "windowed" shuffles runs of samples, and then the samples within
            windows of runs, so that files are read in long ranges. "shuffled" is a uniform shuffle
            of all samples. "sequential" does not shuffle. Default: "windowed".
        window_sizes (tuple of int, optional): ``(samples per run, runs per window, streams)`` for
            "windowed". Default: the sizes that the dataset records.
        seed (int, optional): the seed of the shuffle. Default: 0.
        last_batch (str, optional): what happens to samples that do not fill a batch on every rank.
            "drop" leaves them out, "pad" adds samples from the start of the epoch, and "exact"
            delivers every sample once, in smaller batches. Default: "drop".
        rank (int, optional): the rank of this process, counted from 0. Default: 0.
        world_size (int, optional): the number of ranks. Default: 1.
        decode_threads (int or "auto", optional): the maximum number of threads that decode at the
            same time. "auto" leaves one CPU for training. Raise it if the training waits and
            ``metrics()`` shows more decoding than fetching. Default: "auto".
        io_depth (int, optional): the number of batches that are fetched at the same time. 0 means
            the number of decode threads, but at least 4 in an object store. Raise it for storage
            with high latency. Default: 0.
        prefetch (int, optional): the maximum number of batches that are ready or in flight. 0 means
            twice the I/O depth. Raise it if step times or storage latency vary. Default: 0.
        on_damage (str, optional): "error" raises an exception at a damaged sample; "substitute"
            replaces it with another sample, the same one on every rank. Default: "error".
    """

    epoch: int
    """The epoch of the next batch, counted from 0. After the last batch of an epoch, it is the
    next epoch. A new ``for`` continues in this epoch, unless the previous loop left it after
    some of its batches: then the new loop starts the following epoch.
    """

    batches_left: int
    """The number of batches that the next ``for`` delivers: fewer than ``len(loader)`` if a state
    in the middle of an epoch was loaded.
    """

    def __new__(
        cls,
        dataset: Dataset | _Path | Iterable[_Path],
        batch_size: int,
        *,
        columns: str | Sequence[str] | None = None,
        casts: Mapping[str, _DType] | None = None,
        pad: Mapping[str, float | tuple[float, int]] | None = None,
        order: Literal["windowed", "shuffled", "sequential"] | None = None,
        window_sizes: tuple[int, int, int] | None = None,
        seed: int | None = None,
        last_batch: Literal["drop", "pad", "exact"] | None = None,
        rank: int = 0,
        world_size: int = 1,
        decode_threads: int | Literal["auto"] = "auto",
        io_depth: int = 0,
        prefetch: int = 0,
        on_damage: Literal["error", "substitute"] = "error",
        _gpu: Gpu | None = None,
        _min_device_bytes: int | None = None,
    ) -> Loader: ...
    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start at the beginning of an epoch. Do not call it after
        ``load_state_dict``, which already resumes at the right place.

        Args:
            epoch (int): the epoch, counted from 0.
        """

    def state_dict(self) -> dict[str, Any]:
        """Returns the state after the delivered batches. The dict can be pickled or written as JSON.
        It is the same on all ranks, except for their receipts.
        """

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Makes the next iteration resume from the state of a loader of the same dataset, order and
        seed, with any batch size and number of ranks.

        Args:
            state_dict (dict): the result of ``state_dict``.

        Raises:
            ValueError: the state belongs to a different dataset, order or seed, or is damaged.
        """

    def indices(self, step: int, *, position: int = 0) -> Array:
        """Returns the indices of the samples that this rank takes in a step of the current epoch.

        Args:
            step (int): the step, counted from 0 at ``position``.
            position (int, optional): a position in the epoch, counted in samples over all ranks.
                Default: 0, the start of the epoch.
        """

    def _batches_from(self, position: int) -> int:
        """The number of batches from a position of an epoch to its end."""

    def _iter_on_device(self, allocate: Callable[[int], Any], stream: int) -> DeviceIterator:
        """Iterates like ``iter``, but the GPU of the loader decodes the batches. ``allocate`` takes a
        number of bytes and returns memory: any object with a method ``data_ptr``. Each item is a
        pair: a batch, and the memory with the values of the columns that the GPU decoded. In the
        batch, these columns have no values.

        ``stream`` must be the stream that the memory belongs to or was last used on.
        """

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of the last iteration. The entry "verdict" is a sentence that says what
        limits the loader and what to change.
        """

    def reader(self) -> SampleReader:
        """Returns a reader of arbitrary samples with the columns, casts and padding of this loader.
        It has no threads.
        """

    def __len__(self) -> int: ...
    def __iter__(self) -> BatchIterator: ...

@final
class Gpu:
    """A GPU."""

    is_emulated: bool
    """Whether the GPU is emulated and its memory is host memory."""

    stream: int
    """The handle of the stream that batches are decoded on."""

    def __new__(cls, number: int) -> Gpu: ...
    def allocate(self, byte_count: int) -> DeviceMemory:
        """Returns device memory. The memory is reused once no object shares it.

        Args:
            byte_count (int): the size in bytes.
        """

@final
class DeviceMemory:
    """GPU memory of a batch."""

    def data_ptr(self) -> int:
        """Returns the device address of the first byte."""

    def array(self, start: int, dtype: _DType, shape: Sequence[Any]) -> DeviceArray:
        """Returns a tensor in this memory.

        Args:
            start (int): the offset of the tensor, in bytes.
            dtype (str or dtype): its dtype.
            shape (sequence of int): its shape.
        """

@final
class DeviceArray:
    """A decoded tensor in GPU memory, which other libraries can access through DLPack."""

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Exports the tensor through DLPack. Any stream may use it immediately."""

    def __dlpack_device__(self) -> tuple[int, int]: ...

@final
class ResidentDataset:
    """Encoded samples in GPU memory, column by column."""

    nbytes: int
    """The GPU memory that the samples occupy, in bytes."""

    def __new__(
        cls, loader: Loader, start: int, end: int, max_bytes: int | str | None, progress: _Progress | None
    ) -> ResidentDataset: ...
    def columns(
        self,
    ) -> list[tuple[str, str, tuple[int, ...], bytes, bool, list[int]]]:
        """Returns a tuple for each column: its name, its dtype, the shape of a row, the bytes of the
        padding element, whether the column is nullable, and which samples are null.
        """

    def gather(
        self,
        column: int,
        indices: int,
        count: int,
        rows: int,
        row_bytes: int,
        stream: int,
        pending: PendingGathers,
    ) -> None:
        """Enqueues work that decodes samples into rows, after the work that ``stream`` already has.
        ``indices`` is the device address of ``count`` 8-byte indices, and ``rows`` the device
        address of ``count`` rows of ``row_bytes`` bytes each.
        """

    def __len__(self) -> int: ...

@final
class PendingGathers:
    """Gathers that may still be running on the GPU."""

    def __new__(cls) -> PendingGathers: ...
    def finish(self) -> int | None:
        """Waits for the GPU. Returns the first row that the GPU could not decode because its sample
        does not exist or is invalid; None if it decoded all rows.
        """

@final
class Writer:
    """Writes samples to a new file, or to the folder of a dataset.

    Use it in a ``with`` statement: the file, or the version of the dataset, appears when the block
    ends, and nothing is left behind if the block raises. If the folder already contains a dataset,
    the samples are appended as a new version.

    Args:
        path (path): a file, or a folder. A path is a folder if it is an existing folder, if it ends
            in a slash, if it is a URL that does not end in ``.tsl``, or if ``shard_bytes`` is
            given.
        schema (dict or Schema): a dict from column names to types, as returned by ``tensor``,
            ``utf8``, ``binary`` and ``list_``.
        shard_bytes (int or str, optional): the raw size of a data file of a dataset: a number of
            bytes, or a string such as "1GiB". Default: "1GiB".
        profile (str or dict, optional): "balanced", "fast" (to decode), "small", "raw" (zero-copy),
            or "bitshuffle-zstd"; or a dict from column names to profiles, where columns that are
            not listed have the default profile. Default: "balanced".
        metadata (dict, optional): strings to store with the file. Default: none.
        threads (int or "auto", optional): the number of threads that encode. Default: "auto", all
            CPUs.
        overwrite (bool, optional): whether to replace an existing file. Default: False.
    """

    def __new__(
        cls,
        path: _Path,
        schema: Mapping[str, ColumnType] | Schema,
        *,
        shard_bytes: int | str | None = None,
        profile: _Profile | Mapping[str, _Profile] = ...,
        metadata: dict[str, str] | None = None,
        threads: int | Literal["auto"] = ...,
        overwrite: bool = False,
    ) -> Writer: ...
    def write(self, **columns: Any) -> None:
        """Writes samples: for each column, an array whose first dimension is the sample index, or a
        list of samples with None for nulls. All columns must have the same number of samples.

        Arrays may come from NumPy, PyTorch, or any library with DLPack or the buffer protocol.
        Their dtype is the dtype of the column, or the dtype that the column is rounded from.

        Args:
            **columns: the samples of each column, by name.

        Raises:
            KeyError: a column does not exist.
            TypeError, ValueError: samples do not match the type of the column; nothing is written.
        """

    def close(self) -> None:
        """Finishes the file or the version, and publishes it. Called at the end of a
        ``with`` block.
        """

    def abort(self) -> None:
        """Discards everything that was written."""

    def __enter__(self) -> Writer: ...
    def __exit__(
        self,
        exception: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> bool: ...

def open(
    source: _Path | Iterable[_Path],
    *,
    version: int | None = None,
    io: _Io = "auto",
    max_open_files: int | None = None,
) -> Dataset:
    """Opens a dataset: a file, a folder with a manifest or with ``*.tsl`` files, a pattern such as
    ``"train/shard-*.tsl"``, or a list of files, which are read as one sequence of samples.

    Args:
        source (path or list of paths): the file, folder, pattern or list of files.
        version (int, optional): the version of a dataset with a manifest. Default: the newest.
        io (str, optional): how files are read. "auto" maps files on a local disk into memory if
            they fill at most half of it, and otherwise chooses "io_uring" or "pread". "mmap" maps
            files of any size. "pread" reads one range after another. On Linux, "io_uring" reads all
            ranges of a batch at the same time, and "direct" also bypasses the page cache, for
            shuffled datasets larger than memory. Default: "auto".
        max_open_files (int, optional): the maximum number of files that stay open. Raise it for
            shuffled datasets of many files. Default: half of the number that the system allows this
            process to open, but at most 256; 4,096 in an object store.

    While a file is mapped, no process may change or truncate it: the system kills a process that
    reads truncated pages. Replacing whole files, as tensilo does, is safe. "pread" has no such
    restriction.

    Raises:
        FileNotFoundError: the source does not exist.
        CorruptionError: a file is damaged, or not a tensilo file.
        UnsupportedError: a file needs a different version or build of this package.

    Cost: reads one manifest, or opens all files if there is none.
    """

def add_columns(folder: _Path, files: _Paths) -> None:
    """Adds columns to a dataset, from tensilo files that contain them for all samples.

    Args:
        folder (path): the folder of the dataset, with a manifest.
        files (path or list of paths): a path, a pattern or a list of tensilo files in the folder:
            one per data file of the dataset, in the same order and with the same number of samples.

    Raises:
        ConflictError: another writer has published a version in the meantime.
    """

def tensor(
    dtype: _DType,
    shape: int | Sequence[int | None] = ...,
    *,
    nullable: bool = False,
    cast_from: _DType = None,
    metadata: dict[str, str] | None = None,
) -> ColumnType:
    """Returns the type of a column of tensors.

    Args:
        dtype (str or dtype): "bf16", "f16", "f32", "f64", "i8" to "i64", "u8" to "u64", "bool", or
            a dtype of another library.
        shape (tuple or int, optional): the extents of a sample, with None where they vary between
            samples; an int for one dimension. Default: ``()``, a scalar.
        nullable (bool, optional): whether samples may be null. Default: False.
        cast_from (str or dtype, optional): the dtype of the values to write, which are rounded to
            ``dtype``. Default: ``dtype``.
        metadata (dict, optional): strings to store with the column. Default: none.
    """

def utf8(*, nullable: bool = False, metadata: dict[str, str] | None = None) -> ColumnType:
    """Returns the type of a column of text.

    Args:
        nullable (bool, optional): whether samples may be null. Default: False.
        metadata (dict, optional): strings to store with the column. Default: none.
    """

def binary(*, nullable: bool = False, metadata: dict[str, str] | None = None) -> ColumnType:
    """Returns the type of a column of byte strings, such as encoded images.

    Args:
        nullable (bool, optional): whether samples may be null. Default: False.
        metadata (dict, optional): strings to store with the column. Default: none.
    """

def list_(item: ColumnType, *, nullable: bool = False) -> ColumnType:
    """Returns the type of a column whose samples are lists of another type.

    Args:
        item (ColumnType): the type of the members. If it is nullable, members may be null.
        nullable (bool, optional): whether samples may be null. Default: False.
    """

def _main(arguments: Sequence[str]) -> int:
    """Runs the `tensilo` program and returns its exit code. The first argument is the program name."""

def _inspect(path: _Path) -> dict[str, Any]:
    """Describes a file or a dataset, see `tensilo.inspect`."""

def _salvage(path: _Path, output: _Path | None) -> dict[str, Any]:
    """Recovers the intact samples of a file, see `tensilo.salvage`."""

def _draw_layout(path: _Path, width: int, verify: bool) -> str:
    """Draws the layout of a file or a dataset, see `tensilo.draw_layout`."""

def _array_of_bytes(bytes: bytes, dtype: _DType, shape: Sequence[int]) -> Array:
    """Restores an array from a pickle."""

def _batch(samples: Sequence[int], origin: Any, columns: Sequence[Any]) -> Batch:
    """Restores a batch from a pickle."""

def _batch_column(samples: Sequence[int], column: Any) -> BatchColumn:
    """Restores a column from a pickle."""

def _column_type(
    dtype: _DType,
    shape: Sequence[int | None],
    nulls: Sequence[bool],
    cast_from: str | None,
    metadata: dict[str, str],
) -> ColumnType:
    """Rebuilds a column type from its pickled state. The last entry of `nulls` says whether samples
    may be null; the entries before it belong to the levels of lists.
    """

def _schema(columns: Mapping[str, ColumnType], metadata: dict[str, str]) -> Schema:
    """Rebuilds a schema from its pickled state."""

def _reopened(source: Any, options: dict[str, Any], id: str) -> Dataset:
    """Restores a dataset from a pickle. It is opened on first use."""

def _verify(
    path: _Path, *, deep: bool, threads: int | Literal["auto"], progress: _Progress | None
) -> list[dict[str, Any]]:
    """Verifies every byte, see `tensilo.verify`. Returns a dict per file."""

def _convert(
    inputs: Any,
    output: _Path,
    options: dict[str, Any],
    *,
    shard_bytes: int | str | None,
    threads: int | Literal["auto"],
    overwrite: bool,
    progress: _Progress | None,
) -> list[str]:
    """Converts files, see `tensilo.convert`. Returns the metadata keys that were left out."""

def _append(
    target: _Path,
    inputs: Any,
    *,
    skip_extra_columns: bool,
    file_is_sample: bool,
    null_elements: str,
    profile: str | Mapping[str, str],
    shard_bytes: int | str | None,
    threads: int | Literal["auto"],
    discard_tail: bool,
    progress: _Progress | None,
) -> int:
    """Appends files to a file or a dataset, see `tensilo.append`."""

def _has_manifest(folder: _Path) -> bool:
    """Returns whether a folder has a dataset with a manifest."""

def _object_version(address: _Path) -> str | None:
    """Returns a string that changes when an object is replaced; `None` if the store provides none."""

def _plan(
    inputs: _Paths,
    output: _Path,
    options: dict[str, Any],
    shard_bytes: int | str,
    threads: int | Literal["auto"],
    progress: _Progress | None,
) -> _Plan:
    """Plans the files of a new dataset."""

def _plan_append(
    target: _Path,
    inputs: _Paths,
    skip_extra_columns: bool,
    null_elements: str,
    profile: str | Mapping[str, str],
    shard_bytes: int | str,
    threads: int | Literal["auto"],
    progress: _Progress | None,
) -> tuple[_Plan, int]:
    """Plans the files of an append. Returns the plan and the version that the append creates."""

def _run_task(
    job: _Job,
    number: int,
    inputs: Sequence[_PlannedInput],
    rows: tuple[int, int],
    schema: Schema,
    file_id: bytes,
    null_elements: str,
    profile: str | Mapping[str, str],
    threads: int | Literal["auto"],
    skip_extra_columns: bool,
) -> _JobFile:
    """Writes a file of a plan unless it exists."""

def _write_task(
    job: _Job, number: int, inputs: Any, options: dict[str, Any], threads: int | Literal["auto"]
) -> tuple[_JobFile, Schema]:
    """Converts files or Arrow data to a file of a job unless it exists. Returns the file and its
    schema.
    """

def _publish(job: _Job, schema: Schema, files: Sequence[_JobFile], change: str) -> int:
    """Publishes the files of a job unless they are published already. Returns the version."""
