"""Measure the speed and write the tables of the README.

Run from the root of the repository, with the extra ``bench`` installed::

    python -m benchmarks.readme_tables
    python -m benchmarks.readme_tables --only k-ary

The speeds are medians of repeated timings in this process, or of five fresh processes; those of
k-ary randomized response are the least processor times of some runs, and its peer
random-allocation takes part where it is installed (``pip install random-allocation pandas``, which
wants numpy < 2.2). The accuracy is that of the recorded survey, ``python -m validation --record``.
"""

import argparse
import math
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import fastshuffle as fs
from benchmarks.formats import count_text, time_text
from benchmarks.k_ary_tables import k_ary_text
from benchmarks.suites import against_baselines, start_up
from benchmarks.suites.exact import Kernel, Million
from benchmarks.suites.settings import DELTA, ONES, RR, USERS, profile
from benchmarks.suites.timing import (
    cold_process_seconds,
    empty_cache,
    process_seconds,
    seconds_a_call,
)
from validation import accuracy
from validation.tables import Table, markdown, replace_file

README = Path(__file__).parents[1] / "README.md"

_LARGE, _SMALL = USERS[-1], USERS[0]
_MOST_GROWTH = 1.5


# ---- Speed -----------------------------------------------------------------------------------


def _kernel_seconds(users: int, ones: str, name: str) -> float:
    suite = Kernel()
    suite.setup(users, ones)
    return seconds_a_call(getattr(suite, f"time_1000_{name}")) / 1000


def _call_seconds(users: int, ones: str, name: str) -> float:
    exact = profile(users, ones)
    epsilon = exact.epsilon(DELTA)
    call = {"delta": lambda: exact.delta(epsilon), "epsilon": lambda: exact.epsilon(DELTA)}[name]
    return seconds_a_call(call)


def _array_seconds(users: int, ones: str, name: str) -> float:
    del name
    suite = Million()
    suite.setup(users, ones)
    return seconds_a_call(suite.time_deltas, repeats=3) / len(suite.epsilons)


def _any_n_table() -> Table:
    """Return the times of one number at the smallest and the largest n."""
    plans: list[tuple[str, Callable[[int, str, str], float], str, str, str]] = [
        ("delta, kernel, one direction", _kernel_seconds, "deltas", ONES[0], "about 1 us"),
        ("delta, kernel, one direction", _kernel_seconds, "deltas", ONES[1], "5 us"),
        ("epsilon, kernel, one direction", _kernel_seconds, "epsilons", ONES[0], "-"),
        ("epsilon, kernel, one direction", _kernel_seconds, "epsilons", ONES[1], "-"),
        ("delta, a Python call", _call_seconds, "delta", ONES[0], "30 us"),
        ("delta, a Python call", _call_seconds, "delta", ONES[1], "30 us"),
        ("epsilon, a Python call", _call_seconds, "epsilon", ONES[0], "30 us"),
        ("epsilon, a Python call", _call_seconds, "epsilon", ONES[1], "30 us"),
        ("delta, each of an array of 1e6", _array_seconds, "delta", ONES[0], "5 us"),
        ("delta, each of an array of 1e6", _array_seconds, "delta", ONES[1], "5 us"),
    ]
    rows = [["what", "others", "n = 1e4", "n = 1e15", "target", "growth", "target"]]
    for what, seconds, name, ones, target in plans:
        small, large = (seconds(users, ones, name) for users in (_SMALL, _LARGE))
        growth = f"{large / small:.2f}"
        rows.append(
            [what, ones, time_text(small), time_text(large), target, growth, f"{_MOST_GROWTH}"]
        )
    return rows


def _jobs_table() -> Table:
    """Return the times of whole jobs beside their targets."""
    rows = [["what", "time", "target"]]
    for users, target in ((10**3, "-"), (10**6, "-"), (10**9, "-"), (10**12, "50 ms")):
        seconds = seconds_a_call(lambda n=users: fs.worst_case_profile(RR, n).epsilon(1e-8))
        what = f"worst case over all datasets, epsilon(1e-8), n = {users:.0e}".replace("+0", "")
        rows.append([what.replace("e+", "e"), time_text(seconds), target])
    exact = profile(_LARGE, ONES[1])
    for name, call in (
        ("kl", exact.kl),
        ("renyi(8)", lambda: exact.renyi(8.0)),
        ("jensen_shannon", exact.jensen_shannon),
        ("trade_off(0.01)", lambda: exact.trade_off(0.01)),
    ):
        rows.append([f"{name}, n = 1e15, k = n // 3", time_text(seconds_a_call(call)), "-"])
    rows.append(["import, over numba and numpy", time_text(start_up.import_overhead()), "0.15 s"])
    with empty_cache() as cache:
        process_seconds(start_up.COMMAND, cache=cache, repeats=1)
        warm = process_seconds(start_up.COMMAND, cache=cache)
    cold = cold_process_seconds(start_up.COMMAND)
    rows.append(["command line, main job", time_text(warm), "1.5 s"])
    rows.append(["command line, main job, nothing compiled yet", time_text(cold), "15 s"])
    return rows


def _baselines_table() -> Table:
    """Return the times of the baselines, at the n of most interest that each can handle."""
    rows = [["what", "n", "by", "its time", "fastshuffle", "times faster"]]
    plans = (
        ("delta", against_baselines.delta_call, against_baselines.DELTAS),
        ("epsilon", against_baselines.epsilon_call, against_baselines.EPSILONS),
    )
    for what, find, able in plans:
        for baseline, all_users in able.items():
            for users in sorted({all_users[0], all_users[-1]}):
                ours = seconds_a_call(find(against_baselines.OURS, users))
                theirs = seconds_a_call(find(baseline, users), repeats=5)
                rows.append(
                    [
                        what,
                        f"1e{round(math.log10(users))}",
                        baseline,
                        time_text(theirs),
                        time_text(ours),
                        count_text(theirs / ours),
                    ]
                )
    return rows


_SPEED = """\
Randomized response with epsilon0 = 1, both directions unless said, on one thread. Targets are
upper limits. The time does not grow with n:

{any_n}

Whole jobs:

{jobs}

Against other ways to the same number, at k = 0: the sum over the whole support in numpy; the closed
form with the tails of scipy.stats.binom and a root finder; the privacy loss distribution of
dp-accounting, pessimistic, both orders, from the two mass functions on the whole support or within
12 standard deviations:

{baselines}"""


def speed_text() -> str:
    """Measure and return the section on speed."""
    return _SPEED.format(
        any_n=markdown(_any_n_table()),
        jobs=markdown(_jobs_table()),
        baselines=markdown(_baselines_table()),
    )


# ---- Accuracy --------------------------------------------------------------------------------


_ACCURACY = """\
The largest relative errors over {cases:,} random cases, by the number of users. Of a logarithm it
is the error divided by the logarithm, of ill-conditioned points the error divided by the condition
number; the report says more.

{table}"""


def accuracy_text() -> str:
    """Return the section on accuracy, from the recorded survey."""
    rows = accuracy.read_record()
    if not rows:
        raise FileNotFoundError(f"no record {accuracy.RECORD}: run python -m validation --record")
    lines: dict[tuple[str, str], list[accuracy.AccuracyRow]] = {}
    for row in rows:
        lines.setdefault((row.quantity, row.span), []).append(row)
    table = [["quantity", "range", *accuracy.USERS, "limit"]]
    for (quantity, span), group in lines.items():
        errors = [
            f"{max(row.error for row in group if row.users == users):.0e}"
            for users in accuracy.USERS
        ]
        table.append([quantity, span, *errors, f"{group[0].documented:.0e}"])
    return _ACCURACY.format(cases=sum(row.cases for row in rows), table=markdown(table))


_SECTIONS = {"accuracy": accuracy_text, "speed": speed_text, "k-ary": k_ary_text}


# ---- The file --------------------------------------------------------------------------------


def with_section(text: str, name: str, section: str) -> str:
    """Return the text with what stands between two markers replaced.

    Parameters
    ----------
    text : str
        The text of the README.
    name : str
        The markers are ``<!-- name:begin -->`` and ``<!-- name:end -->``.
    section : str
        What shall stand between them.

    Returns
    -------
    str
        The new text.

    Raises
    ------
    ValueError
        If the markers do not both stand in the text, once each and in order.
    """
    begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        raise ValueError(f"the file must hold {begin.strip()} and then {end}, once each")
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{section}\n\n{end}{after}"


def main() -> int:
    """Rewrite the tables of the README and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readme_tables")
    parser.add_argument("--file", type=Path, default=README, help="by default the README")
    parser.add_argument(
        "--only", choices=_SECTIONS, action="append", help="one section; repeatable, by default all"
    )
    arguments = parser.parse_args()
    names = arguments.only or list(_SECTIONS)
    try:
        text = arguments.file.read_text(encoding="utf-8")
        for name in names:
            with_section(text, name, "")  # the markers stand before anything is measured
        for name in names:
            print(f"the section on {name}", file=sys.stderr)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", fs.DeltaWarning)
                text = with_section(text, name, _SECTIONS[name]())
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    replace_file(arguments.file, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
