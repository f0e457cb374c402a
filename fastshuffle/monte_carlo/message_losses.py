"""The privacy losses of histograms where every user sends several messages."""

from dataclasses import dataclass

import numpy as np

from fastshuffle._kernels.binomial_groups import log_mass
from fastshuffle._kernels.message_losses import fill_message_losses
from fastshuffle._typing import FloatArray
from fastshuffle._validation import UnsupportedSettingError

# About how many terms the sums of two masses have.
_COST = 100.0


@dataclass(frozen=True)
class ByMessages:
    """Two masses of sums of binomial groups a histogram; see the kernel."""

    shares: FloatArray
    targets: FloatArray
    weights: FloatArray

    @property
    def cost(self) -> float:
        """About how many terms are summed for one loss."""
        return _COST

    def __call__(self, histograms: FloatArray) -> FloatArray:
        """Return the privacy loss of each histogram."""
        losses = np.empty(len(histograms))
        histograms = np.ascontiguousarray(histograms)
        fill_message_losses(histograms, self.shares, self.targets, self.weights, losses)
        return losses


def message_losses(
    own: FloatArray, opposite: FloatArray, held: list[tuple[int, FloatArray]], messages: int
) -> ByMessages:
    """Return the way to the losses where the user who differs sends several messages.

    Parameters
    ----------
    own, opposite : array, shape (n_outputs,)
        The rows of the differing user under P and under Q.
    held : list of tuple of int and array
        How many messages the others send of each row.
    messages : int
        How many the differing user sends.

    Raises
    ------
    UnsupportedSettingError
        If the others hold more than one input, and another than those of the pair.
    """
    total = sum(count for count, _ in held) + messages
    of_own, of_opposite = (
        sum(count for count, held_row in held if (held_row == row).all()) for row in (own, opposite)
    )
    if of_own + of_opposite + messages == total:
        # labels of own among those of opposite, at one mean of the two
        share = (of_own + 0.5 * messages) / total
        shares = _shares(own, opposite, share)
        targets = np.array([of_own + messages, of_own], dtype=np.float64)
        labels = np.array([[total, share, 1.0 - share, np.log(share), np.log1p(-share)]])
        constant = log_mass(targets[1], labels) - log_mass(targets[0], labels)
        weights = np.zeros(len(own) + 1)
        weights[-1] = constant
        return ByMessages(np.stack([shares, shares]), targets, weights)
    if len(held) > 1:
        raise UnsupportedSettingError(
            "others must hold a single input, or those of the pair, for a simulation of "
            f"{messages} messages a user, got {len(held)} different rows"
        )
    (_, background), share = held[0], messages / total
    means = [share * row + (1.0 - share) * background for row in (own, opposite)]
    # multiplied by counts of the size of n: a difference of logarithms would lose them
    change = share * (own - opposite) / means[1]
    with np.errstate(divide="ignore"):
        weights = np.where(change > -0.5, np.log1p(change), np.log(means[0]) - np.log(means[1]))
    return ByMessages(
        np.stack([_shares(row, background, share) for row in (own, opposite)]),
        np.full(2, float(messages)),
        np.append(weights, 0.0),
    )


def _shares(row: FloatArray, rest: FloatArray, share: float) -> FloatArray:
    """Return ``(0, t, 1 - t, log t, log(1 - t))`` an output, t the part of ``row`` in the mean."""
    parts = np.stack([share * row, (1.0 - share) * rest])
    with np.errstate(divide="ignore"):
        t = parts / parts.sum(axis=0)
        smaller = t.min(axis=0)
        logs = np.where(t <= 0.5, np.log(t), np.log1p(-smaller))
    return np.column_stack((np.zeros(len(row)), *t, *logs))
