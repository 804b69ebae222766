"""Archives of test vectors and of fuzz inputs: tar files (ustar) that depend on names and bytes only.

Entries are sorted by name. Times and owners are 0 and empty, modes 0644, so that the same files give the same archive.
"""
import io
import tarfile


def pack(files):
    """The archive of these files, given their bytes by name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(name)  # its defaults are those above
            entry.size = len(files[name])
            archive.addfile(entry, io.BytesIO(files[name]))
    return out.getvalue()


def entries(stream):
    """Name, bytes and attributes of each entry, in the order of the archive."""
    with tarfile.open(fileobj=stream, mode='r:') as archive:
        for entry in archive:
            data = archive.extractfile(entry).read() if entry.isfile() else b''
            yield entry.name, data, (entry.type, entry.mode, entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname)


def read(path):
    """The files of an archive: their bytes by name."""
    with open(path, 'rb') as stream:
        return {name: data for name, data, _ in entries(stream)}


def unpack(path, folder):
    for name, data in read(path).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def first_difference(path, files):
    """The first entry of an archive that is not as `pack` makes it of these files, or `None`.

    Entries are compared, not archives: versions of Python fill unused fields of a header differently.
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
    """Writes an archive, unless it has these files."""
    if first_difference(path, files) is not None:
        path.write_bytes(pack(files))
