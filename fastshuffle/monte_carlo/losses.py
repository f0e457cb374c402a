"""The privacy losses of histograms: the four ways to them, and which one an experiment takes."""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fastshuffle._kernels.common_part import fill_losses_by_common_part
from fastshuffle._kernels.label_ratio import fill_losses_by_labels, fill_losses_by_outputs
from fastshuffle._typing import FloatArray
from fastshuffle._validation import UnsupportedSettingError

# Variables of a Fourier transform: six take tenths of a second a histogram, seven would seconds.
MOST_VARIABLES = 6
# Up to here a transform is quicker than the common part of the rows.
_FEW_VARIABLES = 2
# What is left out of a transform is exp(-exponent): all that a double holds, and with many
# variables a millionth of the size of a loss, which is about n**(-1/2).
_EXPONENT = 30.0
_MOST_EXACT_VARIABLES = 4
_COARSE_EXPONENT = 14.0
# Entries of two rows this close are the same number, computed in different ways.
_ROUNDING = 2e-15


class LossMethod(Protocol):
    """What returns the privacy loss of each histogram, a row of counts."""

    @property
    def cost(self) -> float:
        """About how many terms are summed for one loss."""

    def __call__(self, histograms: FloatArray) -> FloatArray:
        """Return the privacy loss of each histogram."""


@dataclass(frozen=True)
class ByLabels:
    """A transform in a variable for every input of the others but one; see the kernel."""

    shares: FloatArray
    labels: FloatArray
    ratios: FloatArray
    exponent: float

    @property
    def cost(self) -> float:
        """About how many terms are summed for one loss."""
        return transform_terms(self.shares)

    def __call__(self, histograms: FloatArray) -> FloatArray:
        """Return the privacy loss of each histogram."""
        losses = np.empty(len(histograms))
        fill_losses_by_labels(
            histograms, self.shares, self.labels, self.ratios, self.exponent, losses
        )
        return losses


@dataclass(frozen=True)
class ByOutputs:
    """A transform in a variable for every output but one; see the kernel."""

    rows: FloatArray
    holders: FloatArray
    ratios: FloatArray
    exponent: float

    @property
    def cost(self) -> float:
        """About how many terms are summed for one loss."""
        return transform_terms(self.rows)

    def __call__(self, histograms: FloatArray) -> FloatArray:
        """Return the privacy loss of each histogram."""
        losses = np.empty(len(histograms))
        fill_losses_by_outputs(
            histograms, self.rows, self.holders, self.ratios, self.exponent, losses
        )
        return losses


@dataclass(frozen=True)
class ByCommonPart:
    """An integral over the number of messages from the common part of all rows; see the kernel."""

    holders: FloatArray
    own: float
    common: FloatArray
    ratios: FloatArray

    @property
    def cost(self) -> float:
        """About how many terms are summed for one loss."""
        return 500.0 * len(self.holders)

    def __call__(self, histograms: FloatArray) -> FloatArray:
        """Return the privacy loss of each histogram."""
        losses = np.empty(len(histograms))
        fill_losses_by_common_part(
            histograms, self.holders, self.own, self.common, self.ratios, losses
        )
        return losses


def transform_terms(forms: FloatArray) -> float:
    """Return about how many terms a transform has: forms by nodes, half of them with one label."""
    n_forms, n_labels = forms.shape
    return 0.5 * n_forms * 25.0 ** (n_labels - 1)


def loss_method(weights: FloatArray, rows: FloatArray, holders: FloatArray) -> LossMethod:
    """Return the way to the losses of an experiment.

    Parameters
    ----------
    weights : array, shape (3, n_outputs)
        The rows of the differing user under P and under Q, and their difference.
    rows : array, shape (n_rows, n_outputs)
        The different rows of the others; every output has some positive entry.
    holders : array, shape (n_rows,)
        How many of the others have each row, > 0.

    Raises
    ------
    UnsupportedSettingError
        If all ways take too many nodes.
    """
    if min(rows.shape) - 1 > _FEW_VARIABLES:
        own = _own_outputs(rows)
        if own is not None:
            common = rows.min(axis=0)
            return ByCommonPart(
                np.bincount(own, weights=holders, minlength=rows.shape[1]).astype(np.float64),
                math.fsum((rows[0] - common).tolist()),
                common,
                np.ascontiguousarray(weights.T),
            )
    exponent = require_few_variables(len(rows), rows.shape[1], holders.sum() + 1.0)
    if len(rows) <= rows.shape[1]:
        joint = (holders / holders.sum())[:, np.newaxis] * rows
        mean = joint.sum(axis=0)
        return ByLabels(
            np.ascontiguousarray((joint / mean).T),
            holders,
            np.ascontiguousarray((weights / mean).T),
            exponent,
        )
    return ByOutputs(rows, holders, np.ascontiguousarray(weights.T), exponent)


def require_few_variables(n_rows: int, n_outputs: int, n_messages: float) -> float:
    """Return the exponent of a transform with as many variables as rows or outputs but one."""
    n_variables = min(n_rows, n_outputs) - 1
    if n_variables > MOST_VARIABLES:
        raise UnsupportedSettingError(
            f"others must hold at most {MOST_VARIABLES + 1} inputs with different rows, or the "
            f"outputs form at most {MOST_VARIABLES + 1} groups, or the rows differ from a common "
            f"part in one output each, got {n_rows} rows and {n_outputs} groups"
        )
    if n_variables <= _MOST_EXACT_VARIABLES:
        return _EXPONENT
    return min(_EXPONENT, _COARSE_EXPONENT + 0.5 * math.log(n_messages))


def _own_outputs(rows: FloatArray) -> "np.ndarray[tuple[int], np.dtype[np.intp]] | None":
    """Return the one output in which each row exceeds the common part, if it is one in each."""
    common = rows.min(axis=0)
    more = rows > common * (1.0 + _ROUNDING)
    if not common.all() or (more.sum(axis=1) != 1).any():
        return None
    return more.argmax(axis=1)
