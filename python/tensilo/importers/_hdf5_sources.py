"""Finds the datasets of an HDF5 file, and checks the other files that hold their values.

HDF5 silently returns fill values if a source file of a virtual dataset is missing, if a source has fewer elements than
are mapped, or if an external file is too short. Its iterators silently skip links to objects that do not exist. In all
of these cases an import would lose data without an error, so this module refuses them. Fill values are legitimate for
elements that were never written or that no source is mapped to.
"""

import os
from contextlib import suppress

from .._errors import InputError
from ._schema import refused

_WAYS = "restore it, or select other datasets with columns="


def find_datasets(h5py, group, passes_over=False):
    """Yields each dataset below a group once, with its path, sorted by name.

    Follows external links. Refuses dangling links, or skips them if ``passes_over`` is true.
    """
    yield from _walk(h5py, group, "", {group}, passes_over)


def _walk(h5py, group, prefix, seen, passes_over):
    for name in sorted(group):
        path = prefix + name
        try:
            found = linked(h5py, group, name, path)
        except InputError:
            if not passes_over:
                raise
            continue
        is_alias = isinstance(group.get(name, getlink=True), h5py.SoftLink)
        if is_alias or found in seen:
            continue
        seen.add(found)
        if isinstance(found, h5py.Dataset):
            yield path, found
        elif isinstance(found, h5py.Group):
            yield from _walk(h5py, found, path + "/", seen, passes_over)


def linked(h5py, group, name, path):
    """Returns the object with this name. Refuses a dangling link."""
    link = group.get(name, getlink=True)
    try:
        return group[name]
    except (KeyError, OSError) as error:
        if isinstance(link, h5py.ExternalLink):
            text = f"the link points to {link.path!r} in the file {link.filename!r}, which cannot be opened"
        elif isinstance(link, h5py.SoftLink):
            text = f"the link points to {link.path!r}, which does not exist"
        else:
            raise
        raise refused(f"{text}; {_WAYS}", column=path) from error


def check_sources(h5py, dataset, path, seen=()):
    """Refuses a dataset whose values are in files that are missing or too short."""
    if dataset.external:
        _check_external(dataset, path)
    if not dataset.is_virtual:
        return
    for source in dataset.virtual_sources():
        where = f"{source.dset_name!r} in the file {source.file_name!r}"
        if source.file_name == ".":
            _check_source(h5py, dataset.file, source, path, where, seen)
            continue
        opened = _opened(h5py, source.file_name, dataset)
        if opened is None:
            raise refused(
                f"the virtual dataset takes values from {where}, which cannot be opened; {_WAYS}", column=path
            )
        with opened as file:
            _check_source(h5py, file, source, path, where, seen)


def _check_source(h5py, file, source, path, where, seen):
    name = source.dset_name
    if "%b" in name.replace("%%", ""):
        return  # each block has its own name, and HDF5 ends the dataset at the first missing one
    found = file.get(name.replace("%%", "%"))
    if not isinstance(found, h5py.Dataset):
        raise refused(f"the virtual dataset takes values from {where}, which does not exist", column=path)
    _check_extent(h5py, found, source, path, where)
    key = (file.filename, found.name)
    if key not in seen:
        check_sources(h5py, found, path, (*seen, key))


def _check_extent(h5py, found, source, path, where):
    """Refuses a source that does not have all mapped elements."""
    mapped, h5s = source.src_space, h5py.h5s
    kind = mapped.get_select_type()
    if kind == h5s.SEL_ALL:
        # the file does not record the original shape of the source
        expected = source.vspace.get_select_npoints()
        if found.size != expected:
            text = f"the virtual dataset takes {expected:,} values from {where}, which has {found.size:,}"
            raise refused(f"{text}; {_WAYS}", column=path)
        return
    if kind == h5s.SEL_HYPERSLABS and mapped.is_regular_hyperslab():
        slabs = zip(*mapped.get_regular_hyperslab(), strict=True)
        ends = [start + stride * (count - 1) + block for start, stride, count, block in slabs]
    elif kind == h5s.SEL_HYPERSLABS:
        ends = [int(end) + 1 for end in mapped.get_select_hyper_blocklist()[:, 1].max(axis=0)]
    elif kind == h5s.SEL_POINTS:
        ends = [int(end) + 1 for end in mapped.get_select_elem_pointlist().max(axis=0)]
    else:
        return
    # with an unlimited selection, HDF5 ends the dataset where the source ends
    bounded = [end if end < _UNLIMITED else 0 for end in ends]
    if len(ends) != found.ndim or any(end > extent for end, extent in zip(bounded, found.shape, strict=True)):
        text = f"the virtual dataset takes values up to {tuple(ends)} from {where}, whose shape is {found.shape}"
        raise refused(f"{text}; {_WAYS}", column=path)


# larger than any extent
_UNLIMITED = 2**62


def _opened(h5py, name, dataset):
    """Opens the file that HDF5 would use for a source name. Returns None if no such file can be opened."""
    if "%b" in name.replace("%%", ""):
        name = name.replace("%b", "0")
    prefix = ""
    with suppress(AttributeError):
        prefix = os.fsdecode(dataset.id.get_access_plist().get_virtual_prefix())
    for path in _search_paths(name.replace("%%", "%"), dataset.file.filename, "HDF5_VDS_PREFIX", prefix):
        with suppress(OSError):
            return h5py.File(path, "r")
    return None


def _search_paths(name, parent, variable, prefix):
    """Yields the paths at which HDF5 looks for a file, in its order."""
    folder = os.path.dirname(os.path.abspath(parent))
    if os.path.isabs(name):
        yield name
        name = os.path.basename(name)
    for text in (*os.environ.get(variable, "").split(os.pathsep), prefix):
        if text:
            yield os.path.join(text.replace("${ORIGIN}", folder), name)
    yield os.path.join(folder, name)
    yield name
    yield os.path.join(os.path.dirname(os.path.realpath(parent)), name)


def _check_external(dataset, path):
    left = dataset.size * dataset.dtype.itemsize
    for name, offset, size in dataset.external:
        expected = min(left, size)
        left -= expected
        if not expected:
            continue
        candidates = [name]
        prefix = os.environ.get("HDF5_EXTFILE_PREFIX", "")
        if prefix and not os.path.isabs(name):
            folder = os.path.dirname(os.path.abspath(dataset.file.filename))
            candidates = [os.path.join(prefix.replace("${ORIGIN}", folder), name)]
        with suppress(AttributeError):
            prefix = os.fsdecode(dataset.id.get_access_plist().get_efile_prefix())
            if prefix and not os.path.isabs(name):
                candidates.append(os.path.join(prefix, name))
        sizes = [os.path.getsize(candidate) for candidate in candidates if os.path.exists(candidate)]
        if not sizes:
            raise refused(f"the values are in the external file {name!r}, which does not exist; {_WAYS}", column=path)
        end = offset + expected
        if sizes[0] < end:
            text = f"the values are in the external file {name!r}, which has {sizes[0]:,} bytes, not {end:,}"
            raise refused(f"{text}; {_WAYS}", column=path)
