"""The surveys and the claims as sections of the report: notes, tables and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from validation import accuracy, bounds, coverage, noise, personal, splitting, worst_case
from validation.claim import Check, Figure, Finding, Verdict
from validation.run_claims import Judged
from validation.tables import Table, markdown, plain

_ACCURACY_NOTES = """\
Largest relative errors against 25-digit references that share no code with the library
(`validation/reference/mp`). The cases are random and spread over all magnitudes: symmetric and
asymmetric randomizers, probabilities from 1e-30 to 1 - 1e-30, nearly equal rows, all directions.
"Limit" is what the documentation states; a later run fails above it, and above four times the
recorded error, or four hundredths of the limit if that is more, for other processors.

- Logarithms (`log_delta` below -700, masses and tails below exp(-690)): the error of the logarithm,
  divided by the logarithm.
- "Ill-conditioned" points: epsilon close to the largest loss, or to a step of the curve of a
  nearly deterministic randomizer. The last bits of epsilon decide there. The condition number
  `c = |epsilon delta'(epsilon) / delta|` is above `3 max(100, |log delta|)` for these points and
  no more for all others; the error is divided by `1000 + c`.
- `trade_off`: divided by the condition number `|alpha beta'(alpha) / beta|` where it is above 1.
"""

_LIMIT_NOTES = """\
Each limit as a function, against its definition at many digits with the parameters that the profile
holds; the distance of a limit from the exact curve is the matter of the claims. Deltas go down to
1e-300; errors are divided by `1 + 2 |log delta| / 1000`, for what the last bits of epsilon and mu
do. A later run fails above "limit on it", and as in the table before.
"""

_BRACKET_NOTES = """\
What rests on sums over histograms, against sums over all of them that share no code with the
library. Brackets: the larger relative distance of an end of `log_bounds` from the exact delta at
`rtol` = 1e-6. An end on the wrong side of it would be an infinite error, without any allowance for
rounding. Losses: `log(P / Q)` of single histograms, likely and unlikely ones, against integer
arithmetic; the relative error over the condition number `sum_y |P_y - Q_y| / |P - Q|`, with P_y the
part in which the user who differs sent y. A later run fails above "limit on it", and as in the
tables before.
"""

_CERTIFICATE_NOTES = """\
Random randomizers, n and epsilons. At each point every dataset was tried: all compositions of the
others, all ordered pairs. Failures: some dataset above the upper end of `bounds(epsilon)`; the
dataset named by `argmax` does not attain the lower end; `epsilon(delta)` leaves some dataset above
delta. "Width" is the widest bracket and "given away" how far below delta the worst dataset is at
`epsilon(delta)`, both divided by the `rtol` asked for (1e-2 to 1e-8): at most 1.
"""

_COMPOSITION_NOTES = f"""\
The worst composition depends on epsilon and need not be an end point: a bound over datasets must
search k. Randomized response, epsilon0 = {worst_case.EPSILON0:g}, n = {worst_case.USERS}, forward
direction, k ones among the others.
"""

_BOUND_NOTES = """\
Each universal bound against every dataset: all compositions of the others over all inputs, all
ordered pairs, for random randomizers and for named mechanisms at small alphabets. "Above" counts
the points at which some dataset lies above the bound; "tightest" is the smallest ratio of the bound
to the worst delta.
"""

_GAP_NOTES = f"""\
What is not known about the worst case of {bounds.INPUTS}-ary randomized response, epsilon0 =
{bounds.EPSILON0:g}: the relative gap between the privacy blanket and the worst dataset found, at
the epsilon of delta = {bounds.DELTA:g}.
"""

_COVERAGE_NOTES = f"""\
How often an interval said to hold with probability {coverage.CONFIDENCE:g} does so. An interval for
one number should hold in {coverage.LOWEST:.0%} to {coverage.HIGHEST:.0%} of the repeats: less would
be wrong, more gives samples away. Intervals that hold together at many epsilons, and those of
identical laws, hold more often by their nature. "Width" is relative to the true value.
"""

_SPLITTING_NOTES = f"""\
Privacy and accuracy of m messages a user by binary randomized response, n = {splitting.USERS:,},
epsilon at delta = {splitting.DELTA:g}. "Unbundled": all messages are shuffled one by one; the
certified worst case over all datasets, to a relative 1e-4. "Bundled": those of a user stay
together; the worst dataset whose others all hold one input, then an upper bound over all datasets.
"Limit": the same by the Gaussian limit, an approximation. "Variance": n times the variance of the
unbiased estimate of the fraction of users who hold 1 from the number of ones among all messages,
`p (1-p) / (m (p1-p0)^2)`; in brackets, that of the best linear unbiased estimate from the bundles,
half of the users holding 1.

- In the limit `mu = 1 / (n sd)`, sd the deviation of the estimate: unbundled messages buy privacy
  with variance at one price, whatever m. So do bundles at each fraction of users who hold 1, but
  the fractions 0 and 1, the worst for privacy, are the best for accuracy.
- At a fixed total budget one message is best for the estimate; epsilon falls and the variance rises
  with m. One message of a smaller epsilon0 does the same.
- At a fixed budget of each message the variance falls as 1/m; epsilon rises as `sqrt(m)` unbundled,
  and bundled exponentially, until the shuffler hardly helps.
- At a fixed accuracy m changes epsilon by 0.2 percent at most, a difference that vanishes as
  `1/sqrt(n)` and counts where the errors of one message are rare; the local budget rises as
  `sqrt(m)`. A user who does not trust the shuffler is best off with one message. Bundles lose up to
  a factor `sqrt((e^C - 1) / C)`, C = `(e^epsilon0 - 1)^2 / e^epsilon0` of that one message.
"""

_PERSONAL_NOTES = f"""\
Binary randomized response whose users have budgets of their own: epsilon of the worst user at
delta = {personal.DELTA:g}. "Formula": mu-GDP with the mu of arXiv:2312.14388, an approximation.
"Exact": certified over all bits of all users; in brackets, exactly where the others' bits are
equal. "Median": the same of a user with the median budget. "Clones": with personal budgets, for
randomizers that contain each other's messages as binary response does. "All at the largest": what
was known before personal budgets, by clones and exactly. "Factor": the exact delta at the formula's
epsilon over that which the formula says; above 1 it promises too much. Where budgets are small the
formula gives privacy away, since it counts the coins only that hide everything; where they are
large, it is no bound. The populations are of the kinds that the paper names, uniform, two levels
and random; its own tables were not at hand.
"""

_NOISE_NOTES = f"""\
The same central guarantee, epsilon at delta = {noise.DELTA:g}, by several ways of accounting: the
largest local epsilon0 that each allows, and the mean squared error that follows from it. "Ours":
the certified worst case of binary randomized response (of {noise.CATEGORIES}-ary response, for the
frequencies). "Stronger": the stronger clones, which hold for both. "Clones": those of FOCS 2021.
"Formula": mu-GDP with the mu of arXiv:2312.14388, an approximation; "factor" is the delta of a
dataset at the epsilon0 that it allows, over {noise.DELTA:g}: above 1 it promises too much. "Local":
epsilon0 = epsilon. Errors: of the mean of bits, the same for all bits; of the mean of numbers of
[0, 1] that are rounded to bits, for the worst ones, all 1/2; of frequencies, the mean over the
categories, the same for all data. A ratio is our error over that of the other: below 1 is less
noise.

- Less noise than by every bound, in every line. The clones ask for 2 to 3.7 times our noise for
  bits and frequencies: at a large epsilon0 they count half of the messages that hide. The stronger
  clones ask for up to 1.9 times our noise for bits: they reveal which messages are clones, and not
  to know it hides too. Data of a third category reveal it anyhow, so that for frequencies nearly
  nothing is lost at n = 1e6; at n = 1e4 and epsilon = 0.1 it is 2.2 times, since at a small
  epsilon0 so many categories hide more than the budget says.
- Rounding to bits is most of the error of numbers in the middle of the range, and better accounting
  changes little there: at most 2.4 percent at n = 1e6.
- The formula gives privacy away where epsilon and n are small. Constant reports, epsilon0 = 0, have
  mu = 2 / sqrt(n - 1), so that it allows nothing at all at n = 1e4 and epsilon = 0.02, and at 0.1
  less than the clones do. Where it allows more than ours, a ratio above 1, it is no guarantee: for
  frequencies from about epsilon = 0.3 on at n = 1e6, for bits from above 1 on; at epsilon = 2 the
  true delta is 600 to 1,300 times the promised one.
- The local model, without a shuffler, asks for 75 to 44,000 times our noise for bits.
"""

_CLAIM_NOTES = """\
Statements of the theory against exact values: sums over whole laws, fractions, or the package.
Rates are least squares in log-log coordinates with their uncertainty (two standard errors, or the
change between sub-grids if that is larger); constants are extrapolated to infinite n. The verdict
is computed from these numbers alone; a run fails if it is not the recorded one. Where a claim fails
and an amended one was measured, its numbers follow in brackets.
"""


@dataclass(frozen=True)
class Section:
    """One section of the report.

    Attributes
    ----------
    title, notes : str
        Its heading and its text.
    table : table
        Its numbers.
    failures : tuple of str
        What is wrong, in a line each.
    more : str
        Markdown below the table.
    wide : bool
        Whether the table is too wide to be aligned, or to be shown on a terminal.
    figures : tuple of Figure
        What is drawn beside the report.
    """

    title: str
    notes: str
    table: Table
    failures: tuple[str, ...]
    more: str = ""
    wide: bool = False
    figures: tuple[Figure, ...] = ()

    def markdown(self) -> str:
        """Return the section for the report."""
        table = markdown(self.table, aligned=not self.wide)
        parts = [f"## {self.title}", self.notes.strip(), table, self.more]
        return "\n\n".join(part for part in parts if part)

    def plain(self) -> str:
        """Return the table for a terminal."""
        return f"{self.title}\n\n{plain(self.table)}"


_PASSED = {True: "yes", False: "NO", None: "?"}


class _Row(Protocol):
    @property
    def passed(self) -> bool: ...


def _failed(rows: Iterable[_Row]) -> tuple[str, ...]:
    """Return the rows that did not pass, as text."""
    return tuple(str(row) for row in rows if not row.passed)


# ---- The surveys -----------------------------------------------------------------------------


def _too_large(
    rows: Sequence[accuracy.AccuracyRow], recorded: Sequence[accuracy.AccuracyRow]
) -> tuple[str, ...]:
    """Return the rows above what their limit and the record allow, as text."""
    allowed = {row.key: accuracy.allowed_error(row, recorded) for row in rows}
    return tuple(
        f"{', '.join(row.key)}: error {row.error:.2e}, allowed {allowed[row.key]:.2e}"
        for row in rows
        if not row.error <= allowed[row.key]
    )


def accuracy_section(
    rows: Sequence[accuracy.AccuracyRow], recorded: Sequence[accuracy.AccuracyRow]
) -> Section:
    """Return the table of errors: a line for a quantity, a column for each range of n."""
    lines: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        failed = not row.error <= accuracy.allowed_error(row, recorded)
        cells = lines.setdefault((row.quantity, row.span, row.others, f"{row.documented:.0e}"), {})
        cells[row.users] = f"{row.error:.1e} ({row.cases}){' FAILED' if failed else ''}"
    header = ["quantity", "range", "others hold", *accuracy.USERS, "limit"]
    body = [
        [*names, *(cells.get(users, "-") for users in accuracy.USERS), limit]
        for (*names, limit), cells in lines.items()
    ]
    return Section("Accuracy", _ACCURACY_NOTES, [header, *body], _too_large(rows, recorded))


def limit_section(
    rows: Sequence[accuracy.AccuracyRow], recorded: Sequence[accuracy.AccuracyRow]
) -> Section:
    """Return the table of errors of the limits."""
    failures = _too_large(rows, recorded)
    return Section("Accuracy of the limits", _LIMIT_NOTES, _by_regime("limit", rows), failures)


def bracket_section(
    rows: Sequence[accuracy.AccuracyRow], recorded: Sequence[accuracy.AccuracyRow]
) -> Section:
    """Return the table of errors of brackets and of privacy losses."""
    table = _by_regime("quantity", rows)
    failures = _too_large(rows, recorded)
    return Section("Accuracy of brackets and losses", _BRACKET_NOTES, table, failures)


def _by_regime(first: str, rows: Sequence[accuracy.AccuracyRow]) -> Table:
    """Return the errors of quantities in regimes of their own."""
    header = [first, "range", "regime", "error", "cases", "limit on it"]
    body = [
        [
            row.quantity,
            row.span,
            row.users,
            f"{row.error:.1e}",
            str(row.cases),
            f"{row.documented:.0e}",
        ]
        for row in rows
    ]
    return [header, *body]


def certificate_section(rows: Sequence[worst_case.CertificateRow]) -> Section:
    """Return the table of the certified worst case."""
    header = ["datasets", "points", "datasets tried", "failures", "width", "given away", "holds"]
    body = [
        [
            row.datasets,
            str(row.points),
            str(row.tried),
            str(row.above + row.not_attained + row.unsafe),
            f"{row.widest:.2f}",
            f"{row.given_away:.2f}",
            _PASSED[row.passed],
        ]
        for row in rows
    ]
    return Section("The certified worst case", _CERTIFICATE_NOTES, [header, *body], _failed(rows))


def composition_section(rows: Sequence[worst_case.CompositionRow]) -> Section:
    """Return the table of worst compositions."""
    header = ["epsilon", "worst k claimed", "found", "above both ends by", "holds"]
    body = [
        [
            f"{row.epsilon:g}",
            str(row.claimed),
            str(row.found),
            f"{row.above_ends:.1e}",
            _PASSED[row.passed],
        ]
        for row in rows
    ]
    return Section("The worst composition", _COMPOSITION_NOTES, [header, *body], _failed(rows))


def bound_section(rows: Sequence[bounds.BoundRow]) -> Section:
    """Return the table of universal bounds."""
    header = ["bound", "datasets", "points", "datasets tried", "above", "tightest", "holds"]
    body = [
        [
            row.bound,
            row.datasets,
            str(row.points),
            str(row.tried),
            str(row.above),
            f"{row.tightest:.4f}",
            _PASSED[row.passed],
        ]
        for row in rows
    ]
    return Section("The universal bounds", _BOUND_NOTES, [header, *body], _failed(rows))


def gap_section(rows: Sequence[bounds.GapRow]) -> Section:
    """Return the table of the gap of the worst case."""
    header = ["n", "epsilon", "gap", "holds"]
    body = [
        [f"{row.users:.0e}", f"{row.epsilon:.4g}", f"{row.gap:.1e}", _PASSED[row.passed]]
        for row in rows
    ]
    return Section("The gap of the worst case", _GAP_NOTES, [header, *body], _failed(rows))


def coverage_section(rows: Sequence[coverage.CoverageRow]) -> Section:
    """Return the table of the coverage of intervals."""
    header = ["interval for", "setting", "repeats", "held", "width", "holds"]
    body = [
        [
            row.interval,
            row.setting,
            str(row.repeats),
            f"{row.held / row.repeats:.2%}",
            f"{row.width:.2g}" if row.width > 0.0 else "-",
            _PASSED[row.passed],
        ]
        for row in rows
    ]
    return Section("Coverage of intervals", _COVERAGE_NOTES, [header, *body], _failed(rows))


def splitting_section(rows: Sequence[splitting.SplittingRow]) -> Section:
    """Return the table of several messages, with its figures."""
    header = [
        "held fixed", "m", "epsilon0 each", "unbundled", "its limit", "bundled", "at most",
        "its limit", "ratio", "in the limit", "variance", "holds",
    ]  # fmt: skip
    body = [
        [
            row.setting,
            str(row.messages),
            f"{row.epsilon0:.4g}",
            f"{row.unbundled:.5g}",
            f"{row.unbundled_limit:.5g}",
            f"{row.bundled:.5g}",
            f"{row.bundled_upper:.4g}",
            f"{row.bundled_limit:.5g}",
            f"{row.ratio:.4g}",
            f"{row.limit_ratio:.4g}",
            f"{row.variance:.4g} ({row.bundled_variance:.4g})",
            _PASSED[row.passed],
        ]
        for row in rows
        if row.messages in splitting.TABLED
    ]
    title, notes = "Several messages: privacy and accuracy", _SPLITTING_NOTES
    figures = splitting.figures(rows)
    return Section(title, notes, [header, *body], _failed(rows), figures=figures)


def personal_section(rows: Sequence[personal.PersonalRow]) -> Section:
    """Return the table of personal budgets, with its figures."""
    header = [
        "budgets", "n", "formula", "exact (equal bits)", "median", "clones",
        "clones, all at the largest", "exact, all at the largest", "factor", "holds",
    ]  # fmt: skip
    body = [
        [
            row.population,
            f"{row.users:.0e}",
            f"{row.formula:.4g}",
            f"{row.exact:.4g} ({row.equal_bits:.4g})",
            f"{row.median:.4g}",
            f"{row.clones:.4g}",
            f"{row.uniform_clones:.4g}",
            f"{row.uniform:.4g}",
            f"{row.factor:.3g}",
            _PASSED[row.passed],
        ]
        for row in rows
    ]
    figures = personal.figures(rows)
    return Section(
        "Personal budgets", _PERSONAL_NOTES, [header, *body], _failed(rows), figures=figures
    )


def noise_section(rows: Sequence[noise.NoiseRow]) -> Section:
    """Return the table of the noise at equal central privacy, with its figures."""
    header = [
        "estimate", "n", "epsilon", "epsilon0, ours", "stronger", "clones", "formula", "factor",
        "error, ours", "over stronger", "over clones", "over formula", "over local", "holds",
    ]  # fmt: skip
    body = [
        [
            row.estimate,
            f"{row.users:.0e}",
            f"{row.epsilon:g}",
            *(f"{x:.5g}" for x in (row.ours, row.stronger, row.clones, row.formula)),
            f"{row.factor:.3g}",
            f"{row.error(row.ours):.3g}",
            *(f"{row.ratio(x):.4g}" for x in (row.stronger, row.clones, row.formula, row.epsilon)),
            _PASSED[row.passed],
        ]
        for row in sorted(rows, key=lambda row: row.estimate)
        if row.epsilon in noise.TABLED
    ]
    title, figures = "Noise at equal privacy", noise.figures(rows)
    return Section(title, _NOISE_NOTES, [header, *body], _failed(rows), figures=figures)


# ---- The claims ------------------------------------------------------------------------------


def _measured(finding: Finding, kinds: Sequence[str]) -> str:
    """Return the numbers of some kinds, those of the amended claim in brackets."""

    def text(check: Check) -> str:
        return f"{check.name}: {check.found} (claimed {check.claimed}) {_PASSED[check.passed]}"

    stated = [text(check) for check in finding.checks if check.kind in kinds]
    amended = [f"[{text(check)}]" for check in finding.amended if check.kind in kinds]
    return "<br>".join(stated + (amended if finding.verdict is finding.amendment else [])) or "-"


def _bold_verdict(finding: Finding) -> str:
    verdict = finding.verdict
    return f"**{verdict}**{finding.verdict_text.removeprefix(verdict)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _counts(judged: Sequence[Judged]) -> str:
    """Return how many claims came to each verdict."""
    found = Counter(row.finding.verdict for row in judged)
    parts = [f"{verdict} {found[verdict]}" for verdict in Verdict if found[verdict]]
    return f"Of {len(judged)} claims: {', '.join(parts)}."


def claim_section(judged: Sequence[Judged], figures: dict[str, list[str]]) -> Section:
    """Return the table of the claims, one row each, and their figures.

    Parameters
    ----------
    judged : sequence of Judged
        The claims with their findings.
    figures : dict of str to list of str
        For each family, the paths of its figures as the report names them.

    Returns
    -------
    Section
        Failures are the verdicts that differ from the record.
    """
    header = [
        "file", "claim", "verdict", "rate", "constant or fact", "measured", "grid", "source",
    ]  # fmt: skip
    body = [
        [
            row.family,
            _cell(row.claim.statement),
            _cell(_bold_verdict(row.finding)),
            _cell(_measured(row.finding, ["rate"])),
            _cell(_measured(row.finding, ["constant", "fact"])),
            _cell(row.finding.quantity),
            _cell(row.finding.grid),
            _cell(row.claim.source),
        ]
        for row in judged
    ]
    titles = {row.family: row.title for row in judged}
    more = [
        f"### {titles[family]}\n\n" + "\n".join(f"![{titles[family]}]({path})" for path in paths)
        for family, paths in figures.items()
        if paths
    ]
    failures = tuple(row.failure for row in judged if not row.passed)
    table = [header, *body]
    notes = f"{_CLAIM_NOTES}\n{_counts(judged)}"
    return Section("The claims", notes, table, failures, "\n\n".join(more), wide=True)


def claim_summary(judged: Sequence[Judged]) -> str:
    """Return the claims with their verdicts for a terminal."""
    width = max(len(row.family) for row in judged)
    return "\n".join(
        f"{row.family:<{width}}  {'as recorded' if row.passed else 'NOT AS RECORDED'}: "
        f"{row.finding.verdict_text}\n{'':<{width}}  {row.claim.statement}"
        for row in judged
    )
