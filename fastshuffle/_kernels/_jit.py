"""The one gate through which every kernel is compiled.

Kernels are compiled lazily with fixed options and cached on disk. Two faults of the disk cache
are mended here. Its stamp covers only the file a kernel stands in, so an edit to a helper in
another file would leave stale machine code: a digest of all kernel sources enters each kernel's
cache name. And without a writable cache folder Numba raises at import: then kernels compile
uncached, with one warning.
"""

import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba
from numba.core.sigutils import normalize_signature

_OPTIONS = {"nogil": True, "error_model": "numpy"}


class RegisteredKernel(NamedTuple):
    """A kernel and the argument types it is always called with."""

    dispatcher: Any
    signature: str


REGISTRY: dict[str, RegisteredKernel] = {}


def _source_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


_DIGEST = _source_digest()
_uncached_warned = False


def _compile_lazily(function: Callable[..., Any]) -> Any:
    global _uncached_warned  # noqa: PLW0603 - one warning a process, not one a kernel
    original = function.__qualname__
    function.__qualname__ = f"{original}_{_DIGEST}"
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        if not _uncached_warned:
            _uncached_warned = True
            warnings.warn(
                "no writable folder for compiled kernels, so they are compiled anew in every "
                "process; set NUMBA_CACHE_DIR to a writable folder",
                RuntimeWarning,
                stacklevel=4,
            )
        return numba.njit(**_OPTIONS)(function)
    finally:
        function.__qualname__ = original


def kernel(signature: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function as a kernel and enter it in the registry.

    Parameters
    ----------
    signature : str
        The argument types, such as ``"(float64, float64[::1])"``. They are data for
        `precompile` and for the test that no kernel is compiled for a second type; compilation
        itself stays lazy, since an eager signature would silently truncate 2.9 to 2.
    """

    def register(function: Callable[..., Any]) -> Any:
        dispatcher = _compile_lazily(function)
        REGISTRY[f"{function.__module__}.{function.__name__}"] = RegisteredKernel(
            dispatcher, signature
        )
        return dispatcher

    return register


def precompile() -> int:
    """Compile every registered kernel into the cache and return how many there are."""
    if numba.config.DISABLE_JIT:
        return 0
    for dispatcher, signature in REGISTRY.values():
        # the types, as a call has them: compiled from the text, a kernel is cached under the text
        argument_types, _ = normalize_signature(signature)
        dispatcher.compile(argument_types)
    return len(REGISTRY)
