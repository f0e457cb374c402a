"""The section of the README on k-ary randomized response; see `benchmarks.readme_tables`."""

import math
import subprocess
import sys

from benchmarks.formats import count_text, time_text
from benchmarks.suites.k_ary import DELTA, EPSILONS0, OURS, PEERS, USERS, K
from benchmarks.suites.timing import least_processor_seconds
from validation.tables import Table, markdown

_PEER_EPSILON0 = 2.0
_PEAK = """
import resource
from benchmarks.suites.k_ary import OURS
for method in OURS.values():
    method({epsilon0}, {users})()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""

_TEXT = """\
k-ary randomized response with k = {k}: epsilon at delta = 1e{power} and the processor time it
takes, the least of some runs, by the privacy blanket, by the dataset whose other users all hold a
third input, and by the clones. The first two bracket the worst case over all datasets. Targets are
1 s at n = 1e6 and 10 s at n = 1e8, for the clones 0.2 s at n = 1e8, and 2,000 MB of memory; all
methods at n = 1e8 in one process take {peak} MB.

{ours}

Against other ways to the same number, epsilon0 = {epsilon0:g}: the clones by the code of their
authors, as the package random-allocation ships it, with the steps of their example; a sum over two
counts in numpy and scipy.stats.binom for the delta of the third input; and dp-accounting for its
epsilon, from the two laws of the histogram. All but the sum are upper bounds: the smaller is the
better one.

{peers}"""


def _power(users: int) -> str:
    return f"1e{round(math.log10(users))}"


def _ours_table() -> Table:
    rows = [["method", "epsilon0", *(f"n = {_power(users)}" for users in USERS)]]
    for name, method in OURS.items():
        for epsilon0 in EPSILONS0:
            calls = [method(epsilon0, users) for users in USERS]
            cells = [
                f"{call():.4g} in {time_text(least_processor_seconds(call))}" for call in calls
            ]
            rows.append([name, f"{epsilon0:g}", *cells])
    return rows


def _peers_table() -> Table:
    rows = [["what", "n", "by", "its number", "its time", "ours", "our time", "times faster"]]
    for peer, (theirs, ours, what, all_users) in PEERS.items():
        for users in all_users:
            cells = [what, _power(users), peer]
            our_call = ours(_PEER_EPSILON0, users)
            our_seconds = least_processor_seconds(our_call)
            try:
                call = theirs(_PEER_EPSILON0, users)
            except NotImplementedError:  # the package is not installed
                cells += ["-", "-", f"{our_call():.6g}", time_text(our_seconds), "-"]
            else:
                seconds = least_processor_seconds(call, repeats=2)
                cells += [f"{call():.6g}", time_text(seconds), f"{our_call():.6g}"]
                cells += [time_text(our_seconds), count_text(seconds / our_seconds)]
            rows.append(cells)
    return rows


def _peak_megabytes() -> float:
    """Return the peak memory of a process that runs every method at the largest n."""
    code = _PEAK.format(epsilon0=_PEER_EPSILON0, users=USERS[-1])
    output = subprocess.run(  # noqa: S603 - code of ours
        [sys.executable, "-W", "ignore", "-c", code], check=True, capture_output=True, text=True
    ).stdout
    return int(output) / (1024**2 if sys.platform == "darwin" else 1024)


def k_ary_text() -> str:
    """Measure and return the section on k-ary randomized response."""
    return _TEXT.format(
        k=K,
        power=round(math.log10(DELTA)),
        epsilon0=_PEER_EPSILON0,
        peak=f"{_peak_megabytes():.0f}",
        ours=markdown(_ours_table()),
        peers=markdown(_peers_table()),
    )
