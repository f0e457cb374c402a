"""One direction of an experiment, as a simulation needs it: what is drawn and what its loss is."""

import numpy as np

from fastshuffle._typing import FloatArray, Side
from fastshuffle._validation import UnsupportedSettingError
from fastshuffle.exact.homogeneous import require_no_underflow
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.monte_carlo.losses import LossMethod, loss_method
from fastshuffle.monte_carlo.message_losses import message_losses

SIDES: tuple[Side, Side] = ("forward", "reverse")

# numpy's rejection sampler of a binomial takes its last decision by a difference of numbers of size
# n in the exponent of an acceptance probability: beyond this the rounding of it is above 0.06.
LARGEST_GROUP = 2**48
# A loss of more terms takes longer than finding the histogram among others.
_MANY_TERMS = 300.0


class PairLaws:
    """The laws P and Q of one direction: the divergence is that of P from Q.

    Parameters
    ----------
    experiment : ShuffleExperiment
        Some other users, at most 2**48 of them at one input, in a composition whose losses can be
        found (`fastshuffle.monte_carlo.losses`).
    side : {"forward", "reverse"}
        Reverse exchanges P and Q.

    Attributes
    ----------
    experiment, side
        As given.
    n : int
        Number of messages of all users.
    messages : int
        Number of messages of a user.
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
    method : LossMethod
        What finds the losses.
    ratios : array, shape (n_outputs, 2)
        The rows of the differing user under P and Q over the mean row of the others.
    """

    def __init__(self, experiment: ShuffleExperiment, side: Side) -> None:
        a, b = experiment.pair if side == "forward" else experiment.pair[::-1]
        inputs = list(experiment.others)
        merged = experiment.randomizer.merged((a, b, *inputs))
        require_no_underflow(experiment.randomizer, merged)
        self.experiment, self.side = experiment, side
        self.messages = experiment.messages
        self.n = experiment.n * self.messages
        self.loss = self.messages * float(merged.log_ratios[1].max())
        inside = merged.rows[2:].any(axis=0)
        # rare outputs first, so that no conditional probability of a draw is a difference
        order = np.flatnonzero(inside)[np.argsort(merged.rows[2:, inside].max(axis=0))]
        rows = merged.rows[:, order]
        self._clear = merged.rows[:2, ~inside]
        self.opposite, self.own = rows[0], rows[1]
        self.drawn_loss = self.messages * float(merged.log_ratios[1, order].max())
        counts = [experiment.others[x] * self.messages for x in inputs]
        different, place = np.unique(rows[2:], axis=0, return_inverse=True)
        totals = np.bincount(place.ravel(), weights=np.array(counts, dtype=np.float64))
        self.held = [
            (int(total), row) for total, row in zip(totals.tolist(), different, strict=True)
        ]
        _require_drawable(self.held)
        whole = inside.all() or len(self.held) == 1
        self.share = 1.0 if whole else float(self.own.sum())
        if self.messages > 1:
            _require_covered(whole=bool(inside.all()), messages=self.messages)
        self.groups = self._groups()
        weights = np.stack([self.own, self.opposite, self._gap(merged.log_ratios[1, order])])
        holders = np.array([count for count, _ in self.held], dtype=np.float64)
        self.method: LossMethod = (
            message_losses(self.own, self.opposite, self.held, self.messages)
            if self.messages > 1
            else loss_method(weights, different, holders)
        )
        self.ratios = (weights[:2] / (holders @ different / holders.sum())).T

    def _groups(self) -> list[tuple[int, FloatArray]]:
        if self.share == 0.0:
            return list(self.held)
        if len(self.held) == 1 and self.messages == 1:
            return [(self.n, self.held[0][1])]
        own = self.own if self.share == 1.0 else self.own / self.share
        equal = [bool((row == own).all()) for _, row in self.held]
        if any(equal):
            return [
                (count + self.messages * int(same), row)
                for (count, row), same in zip(self.held, equal, strict=True)
            ]
        return [*self.held, (self.messages, own)]

    def _gap(self, losses: FloatArray) -> FloatArray:
        """Return the difference of the two rows of the differing user, from their log ratios."""
        larger = np.maximum(self.own, self.opposite)
        return np.copysign(-larger * np.expm1(-np.abs(losses)), losses)

    def of_pair(self) -> "PairLaws | None":
        """Return the laws with the messages of all revealed but the holders of the pair's inputs.

        By post-processing their delta is no smaller; None if both inputs do not occur, and for
        several messages, for which nothing is proved of them.
        """
        others, pair = self.experiment.others, self.experiment.pair
        held = {x: others[x] for x in pair if x in others}
        if len(held) < 2 or self.messages > 1:
            return None
        n = 1 + sum(held.values())
        experiment = ShuffleExperiment(self.experiment.randomizer, n, others=held, pair=pair)
        return PairLaws(experiment, self.side)

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

        They are 1, but for others at a single input and one message a user: then all n messages are
        drawn as theirs, and the ratio is the mean of the ratios of the messages.
        """
        if len(self.held) > 1 or self.messages > 1:
            return np.ones(len(histograms))
        return histograms @ np.ascontiguousarray(self.ratios[:, 0]) / self.n

    def losses(self, histograms: FloatArray) -> FloatArray:
        """Return the privacy loss of each histogram, a row of counts over the drawn outputs."""
        if self.method.cost < _MANY_TERMS:
            return self.method(histograms)
        different, place = np.unique(histograms, axis=0, return_inverse=True)
        return self.method(different)[place.ravel()]


def _require_covered(*, whole: bool, messages: int) -> None:
    if not whole:
        raise UnsupportedSettingError(
            "others must send every message that the differing user may send, for a simulation of "
            f"{messages} messages a user"
        )


def _require_drawable(held: list[tuple[int, FloatArray]]) -> None:
    largest = max(count for count, _ in held)
    if largest > LARGEST_GROUP:
        raise UnsupportedSettingError(
            f"others must hold each input at most 2**48 times for a simulation, got {largest}; "
            "numpy draws no exact binomial counts beyond"
        )
