"""Medians of repeated timings, in this process and of fresh ones."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

_LEAST_SECONDS = 0.02  # a measurement repeats a call until it lasts this long


def seconds_a_call(call: Callable[[], object], *, repeats: int = 7) -> float:
    """Return the median time of a call over some measurements, after one call to warm up."""
    call()
    calls = 1
    while (elapsed := _seconds(call, calls)) < _LEAST_SECONDS:
        calls = max(2 * calls, int(calls * _LEAST_SECONDS / max(elapsed, 1e-9)))
    return statistics.median(_seconds(call, calls) / calls for _ in range(repeats))


def least_processor_seconds(call: Callable[[], object], *, repeats: int = 3) -> float:
    """Return the least processor time of some calls: what a busy machine disturbs least.

    A first call warms up, unless it takes more than a second: then it is one of them.
    """
    first = _processor_seconds(call)
    if first > 1.0:
        return min([first, *(_processor_seconds(call) for _ in range(repeats - 1))])
    return min(_processor_seconds(call) for _ in range(repeats))


def _processor_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _seconds(call: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start


def process_seconds(
    arguments: Sequence[str], *, cache: str | None = None, repeats: int = 5
) -> float:
    """Return the median time of a fresh Python process.

    Parameters
    ----------
    arguments : sequence of str
        The arguments of the interpreter.
    cache : str, optional
        The folder of compiled kernels, by default that of the user.
    repeats : int, default 5
        How many processes are run.

    Returns
    -------
    float
        Seconds, start of the interpreter included.
    """
    environment = os.environ if cache is None else {**os.environ, "NUMBA_CACHE_DIR": cache}
    return statistics.median(_process_seconds(arguments, environment) for _ in range(repeats))


def cold_process_seconds(arguments: Sequence[str], *, repeats: int = 5) -> float:
    """Return the median time of a fresh Python process without compiled kernels."""
    return statistics.median(_cold_process_seconds(arguments) for _ in range(repeats))


def _process_seconds(arguments: Sequence[str], environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(  # noqa: S603 - arguments of ours
        [sys.executable, *arguments], env=environment, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - start


def _cold_process_seconds(arguments: Sequence[str]) -> float:
    with empty_cache() as cache:
        return process_seconds(arguments, cache=cache, repeats=1)


@contextmanager
def empty_cache() -> Iterator[str]:
    """Give an empty folder for compiled kernels."""
    with tempfile.TemporaryDirectory() as folder:
        yield folder
