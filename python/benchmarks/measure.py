"""Measures processes and files: CPU time, memory, page cache."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def _stat(pid):
    """Returns the parent of a process, and the CPU ticks of the process and its ended children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:15]))


def tree(root=None):
    """Returns a process and its descendants, each with its CPU ticks."""
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
    """Returns the user and system CPU time of this process and its descendants."""
    return sum(tree().values()) / TICKS


def busy_seconds():
    """Returns the CPU time of all processes of the machine."""
    user, nice, system, _idle, _wait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / TICKS


def memory():
    """Returns the PSS of this process and its descendants in bytes, in total and without files."""
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
    """Returns the disk usage of all files in bytes, without holes."""
    return sum(min(path.stat().st_size, path.stat().st_blocks * 512) for path in files(folder))


def warm(folder):
    """Reads all files, so that they are in the page cache."""
    for path in files(folder):
        with open(path, "rb") as file:
            while file.read(1 << 22):
                pass


def drop(folder):
    """Drops all files from the page cache, except for pages that a process has mapped."""
    for path in files(folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)
