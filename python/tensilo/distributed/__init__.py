"""Distributes conversions over any number of processes and machines, with three plain functions::

    from concurrent.futures import ProcessPoolExecutor
    from tensilo import distributed

    tasks = distributed.plan("crawl/*.parquet", "train/", shard_bytes="1GiB")
    with ProcessPoolExecutor() as pool:
        distributed.commit("train/", pool.map(distributed.run, tasks))

``plan`` assigns the rows of the inputs to files, and writes nothing. ``run`` writes one file. ``commit`` publishes all
files as one version; until then, no reader sees any of them. Every step is idempotent, even if several processes run
it at the same time. ``tensilo.ray``, ``tensilo.dask`` and ``tensilo.spark`` run these functions on their clusters.

All processes must see the inputs under the same paths. The output is a shared folder, or a prefix of an object store.
"""

from ._commit import commit
from ._plan import plan, plan_append
from ._run import run
from ._task import Fragment, Task

__all__ = ["Fragment", "Task", "commit", "plan", "plan_append", "run"]
