"""Maps HDF5 datasets, and the fields of compound datasets, to columns."""

from .. import _tensilo
from ._bits import numpy_dtype
from ._schema import refused


class Column:
    """A column: a dataset, or a field of a compound dataset."""

    def __init__(self, h5py, name, dataset, field, known, views):
        self.name, self.dataset, self._field = name, dataset, field
        dtype = dataset.dtype if field is None else dataset.dtype[field]
        dtype, rest = dtype.subdtype or (dtype, ())
        shape = (*dataset.shape[1:], *rest)
        is_text = h5py.check_string_dtype(dtype) is not None
        vlen = None if is_text else h5py.check_vlen_dtype(dtype)
        self._view = numpy_dtype(views[name]) if name in views else None
        declared = known.get(name)
        self._is_text = is_text and (declared is None or declared.dtype != "bytes")
        self._is_list = is_text or vlen is not None or dtype.kind == "V"
        self.is_ragged = is_text or vlen is not None
        self.row_bytes = dtype.itemsize
        for extent in shape:
            self.row_bytes *= extent
        try:
            viewed = dtype if vlen is None else vlen
            if self._view and (is_text or self._view.itemsize != viewed.itemsize):
                raise TypeError(f"its elements cannot be viewed as {self._view}")
            if declared is not None:
                self.type = declared
            elif not self._is_list:
                self.type = _tensilo.tensor(self._view or dtype.newbyteorder("="), shape)
            elif dtype.names:
                raise TypeError("it is a compound type inside another compound type")
            else:
                tensor = None if vlen is None else _tensilo.tensor(self._view or vlen, (None,))
                self.type = tensor or (_tensilo.utf8() if is_text else _tensilo.binary())
                for _ in shape:
                    self.type = _tensilo.list_(self.type)
        except (TypeError, ValueError) as error:
            text = f"{dtype} cannot be stored: {error}; select the other datasets with columns="
            raise refused(text, column=name) from None

    def samples(self, rows, start):
        """Converts rows that were read from the dataset to samples. ``start`` is the index of the first one."""
        values = rows if self._field is None else rows[self._field]
        if not self._is_list:
            values = values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
            return values if self._view is None else values.view(self._view)
        values = values.tolist()
        try:
            return _each(values, self._made) if self._is_text or self._view else values
        except UnicodeDecodeError as error:
            where = f"samples {start}..{start + len(values)}"
            text = f"{where}: {error}; pass schema={{{self.name!r}: tensilo.binary()}}"
            raise refused(text, column=self.name) from None

    def _made(self, value):
        return value.decode("utf-8") if self._is_text else value.view(self._view)


def _each(values, function):
    return [_each(value, function) if isinstance(value, list) else function(value) for value in values]
