"""Who does the work of a simulation, and the chunks it is cut into."""

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np

Progress = Callable[[int, int], object]

# How often Dask gives a chunk to another worker after losing one.
_RETRIES = 10


def spawned(
    total: int, chunk: int, rng: np.random.Generator
) -> Iterator[tuple[int, int, np.random.Generator]]:
    """Yield the key, the size and the generator of every chunk; the key is its first number."""
    for _ in range(math.ceil(total / chunk)):
        (child,) = rng.spawn(1)
        key = int(child.integers(2**64, dtype=np.uint64))
        yield key, min(chunk, total), child
        total -= chunk


@contextmanager
def pool_of(executor: Any, workers: int | None) -> Iterator[Executor]:
    """Give the executor, a Dask client's, or without one so many threads."""
    if executor is None:
        threads = workers or os.cpu_count()
        with ThreadPoolExecutor(threads) as pool:
            yield pool
    elif isinstance(executor, Executor):
        yield executor
    elif hasattr(executor, "get_executor"):  # a Client of dask.distributed
        with executor.get_executor(pure=False, retries=_RETRIES) as pool:
            yield pool
    else:
        raise TypeError(
            "executor must be a concurrent.futures.Executor or a dask.distributed.Client, got "
            f"{type(executor).__name__}"
        )
