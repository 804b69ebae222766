#!/usr/bin/env python3
"""Compares the benchmarks of two commits, which take turns on one machine.

    benches/paired.py OLD NEW [--rounds 3] [--work DIR] [--filter REGEX] [--no-convert]

OLD and NEW are commits, or anything that `git rev-parse` understands. Each is cloned below DIR (by
default a new temporary folder) and built in release mode with its own `Cargo.lock`. A second run
with the same DIR reuses the builds.

A round runs OLD, NEW and OLD again, so that a slow minute of the machine affects both commits.
The table has a row for each benchmark with the same name in both commits:

* `old`, `new`: the shortest sample of all rounds, which other processes affect least;
* `ratio`: new / old of these, where old is the mean of both runs; `noise`: the larger of the two
  runs of OLD divided by the smaller;
* `median`: the median over the rounds of new / old, each the median of a run; the `noise` next to
  it: the largest ratio of the two runs of OLD in one round.

Differences within the noise are meaningless. `convert` runs the program on a Parquet file of many
copies of `tests/data/speech.parquet`.

Needs Python 3, Rust and a C compiler. Nothing else should run on the machine.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The benchmarks to run, for each target: those whose results matter to the project.
BENCHMARKS = {
    "open": r"(in memory|mapped|positional)/10\^|mapped, open, view/",
    "read": r"^2 KiB of 64 MiB/(view|read_slice)$|768 B/(raw|fast|balanced)/read_slice"
    r"|^gather (4|16|256) x 768 B/(raw|fast|balanced)/|^gather 256 ragged/raw|^range ",
    "verify": r"/(in memory|by position|in memory, decode)$",
    "encode": r"/(embeddings|mel), (fast|balanced)$",
    "decode": r"^decode/",
}
CONVERT_COPIES = 1024
# Many short samples, so that the shortest one is hardly ever interrupted.
SAMPLING = ["--sample-size", "100", "--measurement-time", "1.5", "--warm-up-time", "0.3", "--noplot"]


def run(command, **options):
    """Runs a command and returns its output. If it fails, prints the output and exits."""
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


class Commit:
    """A commit, cloned and built in its own folder."""

    def __init__(self, name, folder):
        self.folder = folder
        commit = run(["git", "rev-parse", f"{name}^{{commit}}"], cwd=ROOT).strip()
        if not (folder / ".git").exists():
            run(["git", "clone", "--quiet", ROOT, folder])
        run(["git", "fetch", "--quiet", ROOT, commit], cwd=folder)
        run(["git", "checkout", "--quiet", "--detach", commit], cwd=folder)
        self.commit = commit

    def build(self, convert):
        print(f"building {self.commit[:9]} in {self.folder}", file=sys.stderr)
        benches = [word for name in BENCHMARKS for word in ("--bench", name)]
        command = ["cargo", "bench", "--no-run", "--message-format=json"]
        command += ["--features", "rayon", *benches]
        self.benches = {}
        for line in run(command, cwd=self.folder).splitlines():
            message = json.loads(line)
            if message.get("executable") and message["target"]["kind"] == ["bench"]:
                self.benches[message["target"]["name"]] = message["executable"]
        if convert:
            is_member = (self.folder / "crates/tensilo-cli").exists()
            package = ["--package", "tensilo-cli"] if is_member else ["--features", "cli"]
            run(["cargo", "build", "--release", *package], cwd=self.folder)

    def program(self):
        return self.folder / "target/release/tensilo"

    def measure(self, only):
        """Runs the benchmarks once. Returns the shortest and the median time of each, in ns."""
        times = {}
        for target, names in BENCHMARKS.items():
            with tempfile.TemporaryDirectory() as home:
                regex = names if only is None else only
                environment = {**os.environ, "CRITERION_HOME": home}
                command = [self.benches[target], "--bench", *SAMPLING, regex]
                run(command, cwd=self.folder, env=environment)
                for path in pathlib.Path(home).rglob("new/benchmark.json"):
                    name = json.loads(path.read_text())["full_id"]
                    sample = json.loads((path.parent / "sample.json").read_text())
                    each = [time / count for time, count in zip(sample["times"], sample["iters"])]
                    times[f"{target}: {name}"] = min(each), statistics.median(each)
        return times

    def convert(self, parquet, profile):
        """Converts a Parquet file. Returns the time in nanoseconds."""
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.tsl"
            start = time.perf_counter()
            run([self.program(), "convert", parquet, "-o", out, "--profile", profile])
            return (time.perf_counter() - start) * 1e9


def parquet_file(program, folder):
    """Makes the Parquet file to convert: many copies of the one in the repository."""
    path = folder / "copies.parquet"
    if not path.exists():
        copies = []
        for number in range(CONVERT_COPIES):
            copies.append(folder / f"copy-{number}.parquet")
            copies[-1].write_bytes((ROOT / "tests/data/speech.parquet").read_bytes())
        run([program, "convert", *copies, "-o", folder / "copies.tsl"])
        run([program, "export", folder / "copies.tsl", "-o", path])
        for copy in copies:
            copy.unlink()
    return path


def unit(nanoseconds):
    for scale, name in [(1e9, "s"), (1e6, "ms"), (1e3, "us")]:
        if nanoseconds >= scale:
            return f"{nanoseconds / scale:.3g} {name}"
    return f"{nanoseconds:.3g} ns"


def noise(first, second):
    return max(first, second) / min(first, second)


def table(rounds):
    """Returns the Markdown table of all rounds. A round is (old, new, old again)."""
    lines = ["| benchmark | old | new | ratio | noise | median | noise |"]
    lines += ["|---|--:|--:|--:|--:|--:|--:|"]
    for name in rounds[0][0]:
        if not all(name in run for measured in rounds for run in measured):
            continue
        old, new, again = (min(measured[i][name][0] for measured in rounds) for i in range(3))
        medians = [[run[name][1] for run in measured] for measured in rounds]
        median = statistics.median(2 * new / (first + again) for first, new, again in medians)
        spread = max(noise(first, again) for first, _, again in medians)
        ratio = 2 * new / (old + again)
        cells = [name, unit(min(old, again)), unit(new), f"{ratio:.3f}", f"{noise(old, again):.3f}"]
        lines.append("| " + " | ".join([*cells, f"{median:.3f}", f"{spread:.3f}"]) + " |")
    return "\n".join(lines)


def main():
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=formatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--filter", help="run the benchmarks of all targets whose name matches")
    parser.add_argument("--no-convert", action="store_true", help="skip the conversions")
    options = parser.parse_args()
    work = (options.work or pathlib.Path(tempfile.mkdtemp(prefix="paired."))).resolve()
    work.mkdir(parents=True, exist_ok=True)
    commits = [Commit(options.old, work / "old"), Commit(options.new, work / "new")]
    for commit in commits:
        commit.build(not options.no_convert)
    old, new = commits
    parquet = None if options.no_convert else parquet_file(old.program(), work)
    rounds = []
    for number in range(options.rounds):
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
        measured = []
        for commit in (old, new, old):
            times = commit.measure(options.filter)
            if parquet:
                for profile in ("balanced", "fast"):
                    runs = [commit.convert(parquet, profile) for _ in range(3)]
                    times[f"convert: {profile}"] = min(runs), statistics.median(runs)
            measured.append(times)
        rounds.append(tuple(measured))
    print(f"old {old.commit[:9]}, new {new.commit[:9]}, {options.rounds} rounds\n")
    print(table(rounds))


if __name__ == "__main__":
    main()
