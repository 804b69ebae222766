"""Converts Parquet files with one and with two processes, and prints the speedup.

python/benchmarks/distributed.py --rounds 3
"""

import argparse
import multiprocessing
import pathlib
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tensilo import distributed

FILES, ROWS, WIDTH = 8, 40_000, 512


def write_inputs(folder):
    """Writes files of embeddings, texts and labels, 82 MB each."""
    rng = np.random.default_rng(1)
    words = np.array([f"word{number}" for number in range(1000)])
    texts = [" ".join(rng.choice(words, 13)) for _ in range(ROWS)]
    for number in range(FILES):
        embeddings = pa.array(rng.standard_normal(ROWS * WIDTH, dtype=np.float32))
        labels = rng.integers(0, 1000, ROWS)
        columns = {"emb": pa.FixedSizeListArray.from_arrays(embeddings, WIDTH), "text": texts, "label": labels}
        pq.write_table(pa.table(columns), folder / f"{number:02}.parquet", row_group_size=5000)


def by_pool(tasks, workers):
    """Runs tasks with Python's executor."""
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(time.sleep, [0.5] * workers))  # wait until the processes have started
        start = time.perf_counter()
        fragments = list(pool.map(distributed.run, tasks))
        return fragments, time.perf_counter() - start


def by_ray(tasks, workers):
    """Runs tasks with Ray."""
    import ray

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    run = ray.remote(num_cpus=1)(distributed.run)
    ready = ray.remote(num_cpus=1)(lambda: time.sleep(0.5))
    ray.get([ready.remote() for _ in range(workers)])
    start = time.perf_counter()
    fragments = ray.get([run.remote(task) for task in tasks])
    seconds = time.perf_counter() - start
    ray.shutdown()
    return fragments, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    engines = {"executor": by_pool, "ray": by_ray}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_inputs(folder)
        raw = FILES * ROWS * (WIDTH * 2 + 8 + 100)
        for name, engine in engines.items():
            for _ in range(rounds):
                seconds = []
                for workers in (1, 2):
                    out = folder / "out"
                    shutil.rmtree(out, ignore_errors=True)
                    tasks = distributed.plan(f"{folder}/*.parquet", out, shard_bytes="16MiB", bf16=True)
                    fragments, took = engine(tasks, workers)
                    distributed.commit(out, fragments)
                    seconds.append(took)
                one, two = seconds
                speeds = ", ".join(f"{workers}: {raw / took / 1e6:.0f} MB/s" for workers, took in enumerate(seconds, 1))
                print(f"{name}: {len(tasks)} tasks, raw bytes by {speeds}, ratio {one / two:.2f}", flush=True)


if __name__ == "__main__":
    main()
