"""Conversion by many processes, on any number of machines, as three plain functions::

    from concurrent.futures import ProcessPoolExecutor
    from tensilo import distributed

    tasks = distributed.plan("crawl/*.parquet", "train/", shard_bytes="1GiB")
    with ProcessPoolExecutor() as pool:
        distributed.commit("train/", pool.map(distributed.run, tasks))

``plan`` says which rows of which inputs each file has, and writes nothing. ``run`` writes one file.
``commit`` publishes all of them as one version: until then nobody sees any of them. Every step can be
repeated, also while another process does the same, with the same result. ``tensilo.ray``,
``tensilo.dask`` and ``tensilo.spark`` run the three functions on their clusters.

All processes see the inputs under the same paths. The output is a folder that they share, or a prefix of an
object store.
"""

from ._commit import commit
from ._plan import plan, plan_append
from ._run import run
from ._task import Fragment, Task

__all__ = ["Fragment", "Task", "commit", "plan", "plan_append", "run"]
