"""Runs tensilo and its peers side by side: ``python python/benchmarks/run.py``; see README.md."""

import argparse
import collections
import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import data
import peers
import plot
import processes
import report

HERE = Path(__file__).resolve().parent
ALL_DATA_SETS = ["embeddings", "weights", "mel", "tokens", "mel_text"]
ALL_ORDERS = ["sequential", "shuffled", "windowed"]
BATCH_SIZE = 256
RANK_BATCH_SIZE = 16
# A whole number of batches for 4 ranks, which read the first half, and for 3 ranks, which read the rest.
RANK_SAMPLES = 12288
RANK_STEPS = RANK_SAMPLES // 2 // (4 * RANK_BATCH_SIZE)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--full", action="store_true", help="all data sets and orders, 1 and 2 workers, warm and cold")
    parser.add_argument("--small", action="store_true", help="little data and short runs, as a smoke test")
    parser.add_argument("--peers", nargs="+", help="rows to run (default: all)", metavar="NAME")
    parser.add_argument("--data-sets", nargs="+", choices=ALL_DATA_SETS, default=["embeddings", "mel"])
    parser.add_argument("--orders", nargs="+", choices=ALL_ORDERS, default=["shuffled"])
    parser.add_argument("--workers", nargs="+", type=int, default=[2])
    parser.add_argument("--caches", nargs="+", choices=["warm", "cold"], default=["warm"])
    parser.add_argument("--megabytes", type=int, default=200, help="raw size of each data set")
    parser.add_argument("--seconds", type=float, default=2.0, help="duration of the throughput measurement")
    parser.add_argument("--time-limit", type=float, default=150, help="time limit of one measurement in seconds")
    parser.add_argument("--data", help="folder of the real data (default: synthetic data)", default="")
    parser.add_argument("--work", help="folder to keep files in for the next run (default: temporary)")
    parser.add_argument("--output", default=HERE / "results", help="folder of results")
    parser.add_argument("--only-speed", action="store_true", help="skip resuming")
    parser.add_argument("--checks", action="store_true", help="also check the change of ranks and the cycles")
    chosen = parser.parse_args()
    if chosen.full:
        chosen.data_sets, chosen.orders = ALL_DATA_SETS, ALL_ORDERS
        chosen.workers, chosen.caches, chosen.checks = [1, 2], ["warm", "cold"], True
    if chosen.small:
        chosen.megabytes, chosen.seconds, chosen.checks = 2, 0.3, True
    return chosen


class Benchmark:
    """The results, and the state needed to measure more."""

    def __init__(self, chosen, work):
        self.chosen, self.work = chosen, Path(work)
        self.rows = peers.rows()
        unknown = set(chosen.peers or ()) - set(self.rows)
        if unknown:
            sys.exit(f"no peer {', '.join(sorted(unknown))}; there are {', '.join(self.rows)}")
        is_chosen = {
            name: name in chosen.peers if chosen.peers else chosen.full or row.is_default
            for name, row in self.rows.items()
        }
        self.rows = {name: row for name, row in self.rows.items() if is_chosen[name]}
        self.results, self.once, self.origins = [], {}, {}
        self.work.mkdir(parents=True, exist_ok=True)
        self.real = chosen.data if chosen.data and Path(chosen.data).is_dir() else None

    def skip_missing(self):
        """Removes rows whose packages are not installed, and returns them."""
        missing = {name: row.missing() for name, row in self.rows.items()}
        self.rows = {name: row for name, row in self.rows.items() if not missing[name]}
        return {name: packages for name, packages in missing.items() if packages}

    def source(self, data_set, count):
        """Returns the folder of the samples of a data set, which are created if they do not exist."""
        folder = self.work / f"{data_set}-{count}" / "source"
        if not (folder / "layout.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            data.make(data_set, count, folder, self.real)
        return folder

    def written(self, name, source, batch_size=BATCH_SIZE):
        """Returns the folder of a row's own files, which are written if they do not exist."""
        folder = source.parent / name
        found = folder.with_suffix(".json")
        if found.exists():
            return folder, json.loads(found.read_text())
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        result = self.run("write", name, source=str(source), folder=str(folder), batch_size=batch_size)
        if "failed" not in result:
            found.write_text(json.dumps(result))
        return folder, result

    def run(self, what, name, **arguments):
        return processes.run(what, name, self.chosen.time_limit, **arguments)

    def add(self, name, result, **key):
        """Records a result, and prints it."""
        row = self.rows[name]
        self.results.append({"label": name, **key, "cannot_resume": row.cannot_resume, **result})
        (self.work / "partial.json").write_text(json.dumps(self.results))
        shown = (
            result.get("failed")
            or result.get("cannot_order")
            or report.number(result.get("samples_per_second")) + " samples/s"
        )
        print(f"  {' '.join(map(str, key.values()))} {name}: {shown}", flush=True)

    def data_set(self, data_set):
        """Measures all rows on a data set."""
        count = data.sample_count(data_set, self.chosen.megabytes * 1_000_000, BATCH_SIZE)
        source = self.source(data_set, count)
        description = data.Source(source)
        raw_bytes = sum((source / f"{c.name}.bin").stat().st_size for c in description.columns)
        self.origins[data_set] = f"{count} samples, {raw_bytes / 1e6:.0f} MB, {description.origin}"
        print(f"{data_set}: {self.origins[data_set]}", flush=True)
        for name in self.rows:
            folder, written = self.written(name, source)
            if "failed" in written:
                self.add(name, {"failed": f"writing: {written['failed']}"}, data_set=data_set)
                continue
            written["stored_percent"] = written["stored_bytes"] / raw_bytes * 100
            written["sample_bytes"] = raw_bytes / count
            self.row(name, data_set, source, folder, written)
            if not self.chosen.work:
                shutil.rmtree(folder)
                folder.with_suffix(".json").unlink()

    def row(self, name, data_set, source, folder, written):
        """Measures a row on a data set."""
        row = self.rows[name]
        arguments = {"source": str(source), "folder": str(folder), "batch_size": BATCH_SIZE}
        can_resume = row.cannot_resume is None and not self.chosen.only_speed
        for order in self.chosen.orders:
            for cache in self.chosen.caches:
                for workers in self.chosen.workers:
                    key = {"data_set": data_set, "order": order, "cache": cache, "workers": workers}
                    if order not in row.orders:
                        self.add(name, {"cannot_order": row.cannot_order}, **key)
                        continue
                    settings = {"order": order, "workers": workers, "cache": cache, "seconds": self.chosen.seconds}
                    resumes = can_resume and cache == "warm"
                    result = {**written, **self.run("epoch", name, resumes=resumes, **settings, **arguments)}
                    if row.orders[order].startswith("nearest"):
                        result["nearest"] = row.orders[order].removeprefix("nearest: ")
                    self.add(name, result, **key)
        if self.chosen.checks and data_set == self.chosen.data_sets[0]:
            order = next(order for order in ("shuffled", "windowed", "sequential") if order in row.orders)
            cycles = 20 if self.chosen.small and row.cycles > 20 else 3 if self.chosen.small else row.cycles
            settings = {"order": order, "workers": self.chosen.workers[-1]}
            self.once[name] = processes.run_cycles(name, cycles, 30, **settings, **arguments)

    def ranks(self):
        """Counts samples that are lost or repeated when 4 ranks become 3 in the middle of an epoch."""
        source = self.source("ids", RANK_SAMPLES)
        for name, row in self.rows.items():
            if row.cannot_resume is not None:
                continue
            folder, written = self.written(name, source, RANK_BATCH_SIZE)
            result = written if "failed" in written else self.change_of_ranks(name, source, folder)
            if "failed" in result:
                result = {"failed": f"ranks: {result['failed']}"}
            self.once.setdefault(name, {}).update(result)
            print(f"  ranks {name}: {result}", flush=True)

    def change_of_ranks(self, name, source, folder):
        """Reads half of an epoch with 4 ranks, and the rest with 3."""
        arguments = {"source": str(source), "folder": str(folder), "batch_size": RANK_BATCH_SIZE}
        arguments |= {"order": "shuffled", "workers": 1}
        limit = self.chosen.time_limit
        before = processes.run_ranks(name, 4, limit, free_port(), steps=RANK_STEPS, **arguments)
        for result in before:
            if "failed" in result:
                return result
        state = before[0]["state"]
        after = processes.run_ranks(name, 3, limit, free_port(), state=state, **arguments)
        for result in after:
            if "failed" in result:
                return result
        seen = collections.Counter(n for result in before + after for n in result["numbers"])
        return {
            "lost": RANK_SAMPLES - len(seen),
            "repeated": sum(seen.values()) - len(seen),
            "wrong": RANK_SAMPLES - len(seen) + sum(seen.values()) - len(seen),
        }


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def environment():
    """Returns the environment: the machine and the versions."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    model = next((line.split(":")[1].strip() for line in cpuinfo.splitlines() if "model name" in line), "")
    names = {package for row in peers.rows().values() for package in row.needs.values()} | {"torch", "numpy"}
    versions = {}
    for name in sorted(names):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    commit = subprocess.run(["git", "-C", str(HERE), "rev-parse", "HEAD"], capture_output=True, text=True)
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": model,
        "processors": len(os.sched_getaffinity(0)),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
        "commit": commit.stdout.strip(),
        "load": os.getloadavg()[0],
    }


def present(benchmark, facts, output):
    """Writes JSON, tables and plots, and prints the tables."""
    output.mkdir(parents=True, exist_ok=True)
    text = []
    keys = []
    for result in benchmark.results:
        result.update(benchmark.once.get(result["label"], {}))
        key = tuple(result.get(name) for name in ("data_set", "order", "cache", "workers"))
        if key not in keys and key[1]:
            keys.append(key)
    for data_set, order, cache, workers in keys:
        expected = {"data_set": data_set, "order": order, "cache": cache, "workers": workers}
        rows = [result for result in benchmark.results if expected.items() <= result.items()]
        title = f"{data_set}, {order}, {cache}, {workers} workers ({benchmark.origins[data_set]})"
        text.append(report.table(title, rows, report.MAIN))
        if not benchmark.chosen.only_speed and (order, cache) == (keys[0][1], keys[0][2]):
            text.append(report.table(f"{data_set}, {order}: resuming", rows, report.OTHER))
        try:
            plot.plot(title, rows, output / f"{data_set}-{order}-{cache}-{workers}.svg")
        except ImportError:
            text.append("\nno plot: pip install matplotlib")
    noted = report.notes([{"label": name, **result} for name, result in benchmark.once.items()] + benchmark.results)
    text.append(f"\n{noted}")
    print("\n".join(text))
    (output / "tables.md").write_text("\n".join(text) + "\n")
    facts["results"] = benchmark.results
    (output / "results.json").write_text(json.dumps(facts, indent=1) + "\n")
    print(f"\nwritten: {output}")


def main():
    chosen = options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tensilo-benchmark-") as temporary:
        benchmark = Benchmark(chosen, chosen.work or temporary)
        facts = environment()
        missing = benchmark.skip_missing()
        for name, packages in missing.items():
            print(f"not run: {name}: pip install {' '.join(packages)}")
        if benchmark.real is None:
            print(f"{chosen.data!r} is not a folder: using synthetic data")
        for data_set in chosen.data_sets:
            benchmark.data_set(data_set)
        if chosen.checks:
            benchmark.ranks()
        if "tensilo" in benchmark.rows:
            facts["gather"] = benchmark.run("gather", "tensilo", folder=str(benchmark.work / "gather"))
            print(f"  gather: {json.dumps(facts['gather'])}")
        facts |= {"missing": missing, "origins": benchmark.origins, "minutes": (time.monotonic() - start) / 60}
        present(benchmark, facts, Path(chosen.output))
    print(f"{(time.monotonic() - start) / 60:.1f} minutes")
    failed = [result for result in benchmark.results if "failed" in result]
    # In a smoke test, as in CI, a row that fails is an error.
    sys.exit(1 if chosen.small and failed else 0)


if __name__ == "__main__":
    main()
