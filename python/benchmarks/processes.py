"""Starts measurements in processes of their own, with a limit of time."""

import atexit
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

CELL = Path(__file__).with_name("cell.py")


# Processes that have not ended, which end with this one.
LIVE = set()


def end_all():
    """Ends all measurements: they are in sessions of their own, which no signal of a terminal reaches."""
    for cell in list(LIVE):
        cell.end()


atexit.register(end_all)


class Cell:
    """A process of ``cell.py``, which prints what it found line by line."""

    def __init__(self, what, row, environment=None, **arguments):
        self.errors = tempfile.TemporaryFile()
        command = [sys.executable, str(CELL), json.dumps({"what": what, "row": row, **arguments})]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", **(environment or {})},
        )
        LIVE.add(self)
        self.lines = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        # Others may print on the standard output, too.
        for line in self.process.stdout:
            if line.startswith(b"{"):
                self.lines.put(line)
        self.lines.put(None)

    def line(self, seconds):
        """Returns what the process found next; None at its end. Raises ``TimeoutError``."""
        try:
            line = self.lines.get(timeout=max(seconds, 0.01))
        except queue.Empty:
            raise TimeoutError from None
        return None if line is None else json.loads(line)

    def end(self):
        """Ends the process, and all that it started and did not end."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        LIVE.discard(self)

    def error(self):
        """Returns the last line that the process wrote to its standard error."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else f"exit status {self.process.returncode}"

    def result(self, deadline):
        """Returns all that the process finds until a time, with ``failed`` if it does not finish."""
        found = {}
        try:
            while (line := self.line(deadline - time.monotonic())) is not None:
                found.update(line)
            self.process.wait(max(deadline - time.monotonic(), 5))
        except (TimeoutError, subprocess.TimeoutExpired):
            found["failed"] = "hangs at its end" if "finished" in found else "takes longer than the time limit"
        self.end()
        if not found.pop("finished", False) and "failed" not in found:
            found["failed"] = self.error()
        return found


def run(what, row, time_limit, **arguments):
    """Runs one measurement and returns what it found."""
    return Cell(what, row, **arguments).result(time.monotonic() + time_limit)


def run_ranks(row, world, time_limit, port, **arguments):
    """Runs one process for each rank, at the same time, and returns what each found."""
    deadline = time.monotonic() + time_limit
    cells = []
    for rank in range(world):
        environment = {
            "RANK": rank,
            "GLOBAL_RANK": rank,
            "LOCAL_RANK": rank,
            "WORLD_SIZE": world,
            "LOCAL_WORLD_SIZE": world,
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": port,
        }
        environment = {name: str(value) for name, value in environment.items()}
        cells.append(Cell("rank", row, environment=environment, rank=rank, world=world, **arguments))
    return [cell.result(deadline) for cell in cells]


def run_cycles(row, cycles, timeout_s, **arguments):
    """Counts the cycles that hang: those that take longer than ``patience`` seconds."""
    hangs = done = 0
    while done + hangs < cycles:
        cell = Cell("cycles", row, cycles=cycles - done - hangs, **arguments)
        try:
            while (line := cell.line(timeout_s)) is not None:
                done += "cycle" in line
            cell.process.wait(timeout_s)
        except (TimeoutError, subprocess.TimeoutExpired):
            hangs += 1
            continue
        finally:
            cell.end()
        if cell.process.returncode:
            return {"cycles": done, "hangs": hangs, "failed": cell.error()}
    return {"cycles": cycles, "hangs": hangs}
