"""Archives of test vectors and fuzz inputs: tar files (ustar) that depend only on names and bytes.

Entries are sorted by name, with time 0, empty owners and mode 0644, so that the same files give the same archive.
"""
import io
import tarfile


def pack(files):
    """Returns the archive of these files, given as bytes by name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)  # the defaults of TarInfo are the values above
            entry.size = len(files[name])
            archive.addfile(entry, io.BytesIO(files[name]))
    return out.getvalue()


def entries(stream):
    """Yields name, bytes and attributes of each entry, in the order of the archive."""
    with tarfile.open(fileobj=stream, mode='r:') as archive:
        for entry in archive:
            data = archive.extractfile(entry).read() if entry.isfile() else b''
            yield entry.name, data, (entry.type, entry.mode, entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname)


def read(path):
    """Returns the files of an archive as bytes by name."""
    with open(path, 'rb') as stream:
        return {name: data for name, data, _ in entries(stream)}


def unpack(path, folder):
    for name, data in read(path).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def first_difference(path, files):
    """Returns the first entry of an archive that differs from the archive `pack` makes of these files, or `None`.

    Entries are compared, not archives: versions of Python fill unused header fields differently.
    """
    if not path.is_file():
        return 'the archive is missing'
    with open(path, 'rb') as stream:
        found = list(entries(stream))
    expected = list(entries(io.BytesIO(pack(files))))
    for one, other in zip(found, expected):
        if one != other:
            return min(one[0], other[0])
    longer = max(found, expected, key=len)
    shorter = min(len(found), len(expected))
    return longer[shorter][0] if len(longer) > shorter else None


def write(path, files):
    """Writes an archive, unless it already has these files."""
    if first_difference(path, files) is not None:
        path.write_bytes(pack(files))
