"""One direction of an experiment, as a simulation needs it: what is drawn and what its loss is."""

import numpy as np

from fastshuffle._kernels.label_ratio import fill_log_ratios
from fastshuffle._kernels.likelihood_table import fill_log_masses
from fastshuffle._typing import FloatArray, Side
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.exact.homogeneous import require_no_underflow
from fastshuffle.experiment import ShuffleExperiment

SIDES: tuple[Side, Side] = ("forward", "reverse")

# numpy's rejection sampler of a binomial takes its last decision by a difference of numbers of size
# n in the exponent of an acceptance probability: beyond this the rounding of it is above 0.06.
LARGEST_GROUP = 2**48
# The nodes of a Fourier transform in four variables: some hundred thousand a histogram.
_MOST_LABELS = 5


class PairLaws:
    """The laws P and Q of one direction: the divergence is that of P from Q.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Some other users, at most 2**48 of them at one input, of at most 5 inputs with different
        rows unless the outputs form 2 groups.
    side : {"forward", "reverse"}
        Reverse exchanges P and Q.

    Attributes
    ----------
    n : int
        Number of messages.
    loss : float
        The largest privacy loss, which may be inf.
    drawn_loss : float
        The largest privacy loss of the part that is drawn.
    share : float
        The part of P in which the differing user's message is one that some other user may send.
        Only this part is drawn; the rest is known. 1 where `scales` includes it.
    groups : list of tuple of int and array
        Numbers of users and the law of their messages, as they are drawn.
    held : list of tuple of int and array
        The same for the other users alone; laws that agree are one.
    own, opposite : array
        The rows of the differing user under P and under Q, over the outputs that are drawn.
    """

    def __init__(self, experiment: ShuffleExperiment, side: Side) -> None:
        a, b = experiment.pair if side == "forward" else experiment.pair[::-1]
        inputs = list(experiment.others)
        merged = experiment.randomizer.merged((a, b, *inputs))
        require_no_underflow(experiment.randomizer, merged)
        self._experiment, self._side = experiment, side
        self.n = experiment.n
        self.loss = float(merged.log_ratios[1].max())
        inside = merged.rows[2:].any(axis=0)
        # rare outputs first, so that no conditional probability of a draw is a difference
        order = np.flatnonzero(inside)[np.argsort(merged.rows[2:, inside].max(axis=0))]
        rows = merged.rows[:, order]
        self._clear = merged.rows[:2, ~inside]
        self.opposite, self.own = rows[0], rows[1]
        self.drawn_loss = float(merged.log_ratios[1, order].max())
        counts = [experiment.others[x] for x in inputs]
        different, place = np.unique(rows[2:], axis=0, return_inverse=True)
        totals = np.bincount(place.ravel(), weights=np.array(counts, dtype=np.float64))
        self.held = [
            (int(total), row) for total, row in zip(totals.tolist(), different, strict=True)
        ]
        _require_feasible(self.held, len(order))
        whole = inside.all() or len(self.held) == 1
        self.share = 1.0 if whole else float(self.own.sum())
        self.groups = self._groups()
        self._shares, self._labels, self._ratios = self._label_tables(merged.log_ratios[1, order])

    def _groups(self) -> list[tuple[int, FloatArray]]:
        if self.share == 0.0:
            return list(self.held)
        if len(self.held) == 1:
            return [(self.n, self.held[0][1])]
        own = self.own if self.share == 1.0 else self.own / self.share
        equal = [bool((row == own).all()) for _, row in self.held]
        if any(equal):
            return [
                (count + int(same), row)
                for (count, row), same in zip(self.held, equal, strict=True)
            ]
        return [*self.held, (1, own)]

    def _label_tables(self, losses: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        labels = np.array([count for count, _ in self.held], dtype=np.float64)
        joint = (labels / labels.sum())[:, np.newaxis] * np.array([row for _, row in self.held])
        mean = joint.sum(axis=0)
        larger = np.maximum(self.own, self.opposite)
        difference = np.copysign(-larger * np.expm1(-np.abs(losses)), losses)
        ratios = np.stack([self.own, self.opposite, difference]) / mean
        return np.ascontiguousarray((joint / mean).T), labels, np.ascontiguousarray(ratios.T)

    def revealed(self) -> "list[PairLaws]":
        """Return the laws when the messages of all but the holders of some inputs are revealed.

        Those whose messages stay hidden hold a single input, or the two inputs of the pair. By
        post-processing each has a delta no smaller than that of the whole.
        """
        others = self._experiment.others
        of_pair = {x: count for x, count in others.items() if x in self._experiment.pair}
        parts = [{x: count} for x, count in others.items()] + [of_pair] * (len(of_pair) > 1)
        return [
            PairLaws(
                ShuffleExperiment(
                    self._experiment.randomizer,
                    1 + sum(part.values()),
                    others=part,
                    pair=self._experiment.pair,
                ),
                self._side,
            )
            for part in parts
        ]

    @property
    def ratios(self) -> FloatArray:
        """The rows of the differing user under P and Q over the mean row of the others."""
        return self._ratios[:, :2]

    @property
    def trivial(self) -> bool:
        """Whether nothing has to be drawn: delta is known at every epsilon."""
        return self.drawn_loss <= 0.0 or not self.own.any()

    def clear(self, epsilons: FloatArray) -> FloatArray:
        """Return the part of delta where the differing user sends what no other user does."""
        own, opposite = self._clear[1], self._clear[0]
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = np.exp(epsilons)[:, np.newaxis] * opposite
        scaled = np.where(opposite == 0.0, 0.0, scaled)
        return np.maximum(own - scaled, 0.0).sum(axis=1)

    def scales(self, histograms: FloatArray) -> FloatArray:
        """Return the likelihood ratios of the part of P that is drawn against what it is drawn as.

        They are 1, but for others at a single input: then all n messages are drawn as theirs, and
        the ratio is the mean of the ratios of the messages.
        """
        if len(self.held) > 1:
            return np.ones(len(histograms))
        return histograms @ np.ascontiguousarray(self._ratios[:, 0]) / self.n

    def losses(self, histograms: FloatArray) -> FloatArray:
        """Return the privacy loss of each histogram, a row of counts over the drawn outputs."""
        if len(self._labels) > 2 and histograms.shape[1] == 2:
            return self._binary_losses(histograms)
        losses = np.empty(len(histograms))
        fill_log_ratios(histograms, self._shares, self._labels, self._ratios, losses)
        return losses

    def _binary_losses(self, histograms: FloatArray) -> FloatArray:
        counts, place = np.unique(histograms[:, 1], return_inverse=True)
        with np.errstate(divide="ignore"):
            groups = np.array(
                [[count, row[1], row[0], *np.log(row[::-1])] for count, row in self.held]
            )
            masses = np.empty((2, len(counts)))
            fill_log_masses(counts, groups, masses[0])
            fill_log_masses(counts - 1.0, groups, masses[1])
            laws = [
                np.logaddexp(np.log(row[0]) + masses[0], np.log(row[1]) + masses[1])
                for row in (self.opposite, self.own)
            ]
        with np.errstate(invalid="ignore"):
            return (laws[1] - laws[0])[place.ravel()]


def _require_feasible(held: list[tuple[int, FloatArray]], n_outputs: int) -> None:
    largest = max(count for count, _ in held)
    if largest > LARGEST_GROUP:
        raise UnsupportedSettingError(
            f"others must hold each input at most 2**48 times for a simulation, got {largest}; "
            "numpy draws no exact binomial counts beyond"
        )
    if len(held) > _MOST_LABELS and n_outputs > 2:
        raise UnsupportedSettingError(
            f"others must hold at most {_MOST_LABELS} inputs with different rows, or the outputs "
            f"form 2 groups, got {len(held)} inputs and {n_outputs} groups"
        )
