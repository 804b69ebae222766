"""Runs each measurement in a separate process, with a time limit."""

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


# Running processes, which are killed when this one ends.
LIVE = set()


def end_all():
    """Kills all measurements: they run in their own sessions, which signals of a terminal do not reach."""
    for cell in list(LIVE):
        cell.end()


atexit.register(end_all)


class Cell:
    """A process of ``cell.py``, which prints one result per line."""

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
        # Libraries may print to standard output, too.
        for line in self.process.stdout:
            if line.startswith(b"{"):
                self.lines.put(line)
        self.lines.put(None)

    def line(self, seconds):
        """Returns the next result, or None at the end. Raises ``TimeoutError``."""
        try:
            line = self.lines.get(timeout=max(seconds, 0.01))
        except queue.Empty:
            raise TimeoutError from None
        return None if line is None else json.loads(line)

    def end(self):
        """Kills the process and all processes that it left behind."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        LIVE.discard(self)

    def error(self):
        """Returns the last line that the process wrote to standard error."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else f"exit status {self.process.returncode}"

    def result(self, deadline):
        """Returns all results until a deadline, with ``failed`` if the process does not finish."""
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
    """Runs one measurement and returns its result."""
    return Cell(what, row, **arguments).result(time.monotonic() + time_limit)


def run_ranks(row, world, time_limit, port, **arguments):
    """Runs one process per rank at the same time, and returns their results."""
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
    """Counts the cycles that hang, that is, take longer than ``patience`` seconds."""
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
