"""Measures processes and files: processor time, memory, page cache."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def _stat(pid):
    """Returns the parent of a process, and the ticks of it and of its children that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:15]))


def tree(root=None):
    """Returns a process and its descendants, each with its processor ticks."""
    root = root or os.getpid()
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found[int(name)] = _stat(int(name))
            except (FileNotFoundError, ProcessLookupError):
                continue
    members, added = {root}, True
    while added:
        added = {pid for pid, (parent, _) in found.items() if parent in members} - members
        members |= added
    return {pid: found[pid][1] for pid in members if pid in found}


def cpu_seconds():
    """Returns the processor time of this process and its descendants, user and system."""
    return sum(tree().values()) / TICKS


def busy_seconds():
    """Returns the processor time of all processes of the machine."""
    user, nice, system, _idle, _wait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / TICKS


def memory():
    """Returns the PSS of this process and its descendants in bytes: all, and without files."""
    total = anonymous = 0
    for pid in tree():
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in lines[1:]}
        total += sizes["Pss"]
        anonymous += sizes.get("Pss_Anon", 0) + sizes.get("Pss_Shmem", 0)
    return total, anonymous


def files(folder):
    """Returns all files of a folder."""
    return [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]


def stored_bytes(folder):
    """Returns the bytes of all files, as they are on the disk: without holes."""
    return sum(min(path.stat().st_size, path.stat().st_blocks * 512) for path in files(folder))


def warm(folder):
    """Reads all files, so that they are in the page cache."""
    for path in files(folder):
        with open(path, "rb") as file:
            while file.read(1 << 22):
                pass


def drop(folder):
    """Takes all files out of the page cache. Pages that a process has mapped stay."""
    for path in files(folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
