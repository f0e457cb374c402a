"""What a fresh process pays: imports, the first call with and without compiled kernels, the CLI."""

import statistics

from .timing import cold_process_seconds, empty_cache, process_seconds

_OPTIONS = {"--mechanism": "rr", "--epsilon0": "2", "--users": "336776", "--delta": "1e-8"}
_IMPORTS = ("import fastshuffle", "import numba, numpy")
_FIRST_CALL = """
import fastshuffle as fs
fs.worst_case_profile(fs.binary_randomized_response(2.0), 336776).epsilon(1e-8)
"""
COMMAND = ("-m", "fastshuffle", "curve", *(word for item in _OPTIONS.items() for word in item))
FIRST_CALL = ("-c", _FIRST_CALL)


def import_overhead(*, repeats=5):
    """Return the median seconds that importing fastshuffle takes over numba and numpy."""
    pairs = (
        [process_seconds(("-c", code), repeats=1) for code in _IMPORTS] for _ in range(repeats)
    )
    return statistics.median(ours - theirs for ours, theirs in pairs)


def timeraw_import():
    return _IMPORTS[0]


def timeraw_import_numba_and_numpy():
    return _IMPORTS[1]


class StartUp:
    """Seconds of fresh processes, start of the interpreter included."""

    timeout = 300.0

    def track_import_overhead(self):
        return import_overhead()

    def track_first_call_cold(self):
        return cold_process_seconds(FIRST_CALL, repeats=1)

    def track_first_call_cached(self):
        with empty_cache() as cache:
            process_seconds(FIRST_CALL, cache=cache, repeats=1)
            return process_seconds(FIRST_CALL, cache=cache)

    def track_command_cold(self):
        return cold_process_seconds(COMMAND, repeats=1)

    def track_command_warm(self):
        with empty_cache() as cache:
            process_seconds(COMMAND, cache=cache, repeats=1)
            return process_seconds(COMMAND, cache=cache)


for _track in (getattr(StartUp, name) for name in dir(StartUp) if name.startswith("track_")):
    _track.unit = "seconds"
