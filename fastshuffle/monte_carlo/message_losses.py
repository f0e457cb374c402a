"""The privacy losses of histograms where every user sends several messages."""

from dataclasses import dataclass

import numpy as np

from fastshuffle._kernels.binomial_groups import log_mass
from fastshuffle._kernels.message_losses import (
    fill_losses_by_labels_of_messages,
    fill_losses_by_outputs_of_messages,
    fill_message_losses,
)
from fastshuffle._typing import FloatArray
from fastshuffle.monte_carlo.losses import LossMethod, require_few_variables, transform_terms

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


@dataclass(frozen=True)
class ByLabelsOfMessages:
    """Two coefficients a histogram, in a variable for every row of the others."""

    shares: FloatArray
    targets: FloatArray
    weights: FloatArray
    exponent: float

    @property
    def cost(self) -> float:
        """About how many terms are summed for one loss."""
        return 2.0 * transform_terms(self.shares[0])

    def __call__(self, histograms: FloatArray) -> FloatArray:
        """Return the privacy loss of each histogram."""
        losses = np.empty(len(histograms))
        fill_losses_by_labels_of_messages(
            np.ascontiguousarray(histograms),
            self.shares,
            self.targets,
            self.weights,
            self.exponent,
            losses,
        )
        return losses


@dataclass(frozen=True)
class ByOutputsOfMessages:
    """Two coefficients a histogram, in a variable for every output but one."""

    rows: FloatArray
    senders: FloatArray
    exponent: float

    @property
    def cost(self) -> float:
        """About how many terms are summed for one loss."""
        return 2.0 * transform_terms(self.rows[0])

    def __call__(self, histograms: FloatArray) -> FloatArray:
        """Return the privacy loss of each histogram."""
        losses = np.empty(len(histograms))
        fill_losses_by_outputs_of_messages(
            np.ascontiguousarray(histograms), self.rows, self.senders, self.exponent, losses
        )
        return losses


def message_losses(
    own: FloatArray, opposite: FloatArray, held: list[tuple[int, FloatArray]], messages: int
) -> LossMethod:
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
        If all ways take too many nodes.
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
        return _by_coefficients(own, opposite, held, messages)
    (_, background), share = held[0], messages / total
    means = [share * row + (1.0 - share) * background for row in (own, opposite)]
    weights = _log_ratios_of_means(share * (own - opposite), *means)
    return ByMessages(
        np.stack([_shares(row, background, share) for row in (own, opposite)]),
        np.full(2, float(messages)),
        np.append(weights, 0.0),
    )


def _by_coefficients(
    own: FloatArray, opposite: FloatArray, held: list[tuple[int, FloatArray]], messages: int
) -> LossMethod:
    others = np.array([row for _, row in held])
    senders = np.array([*(count for count, _ in held), messages], dtype=np.float64)
    exponent = require_few_variables(len(senders), len(own), senders.sum())
    rows = np.array([[*others, own], [*others, opposite]])
    if len(own) < len(senders):
        return ByOutputsOfMessages(rows, senders, exponent)
    joint = (senders / senders.sum())[:, np.newaxis] * rows
    means = joint.sum(axis=1)
    gap = messages / senders.sum() * (own - opposite)
    return ByLabelsOfMessages(
        np.ascontiguousarray((joint / means[:, np.newaxis]).transpose(0, 2, 1)),
        senders,
        _log_ratios_of_means(gap, *means),
        exponent,
    )


def _log_ratios_of_means(gap: FloatArray, mean: FloatArray, opposite: FloatArray) -> FloatArray:
    """Return ``log(mean / opposite)`` from the difference of the two.

    It is multiplied by counts of the size of n, where a difference of logarithms would be lost.
    """
    change = gap / opposite
    with np.errstate(divide="ignore"):
        return np.where(change > -0.5, np.log1p(change), np.log(mean) - np.log(opposite))


def _shares(row: FloatArray, rest: FloatArray, share: float) -> FloatArray:
    """Return ``(0, t, 1 - t, log t, log(1 - t))`` an output, t the part of ``row`` in the mean."""
    parts = np.stack([share * row, (1.0 - share) * rest])
    with np.errstate(divide="ignore"):
        t = parts / parts.sum(axis=0)
        smaller = t.min(axis=0)
        logs = np.where(t <= 0.5, np.log(t), np.log1p(-smaller))
    return np.column_stack((np.zeros(len(row)), *t, *logs))
