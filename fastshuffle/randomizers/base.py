"""What every local randomizer can do, whatever the size of its output alphabet."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import check_count, check_generator
from fastshuffle.randomizers.merging import MergedRows, one_group

__all__ = ["LocalRandomizer", "Messages"]

Messages = npt.NDArray[Any]


class LocalRandomizer(ABC):
    """Local randomizer of one user: the law of a message for each of finitely many inputs.

    The rows of the law may be far too long to be written down, so that the base class offers only
    what needs no list of the outputs. Randomizers are immutable, hashable and picklable; two are
    equal if they have the same definition.

    See Also
    --------
    Randomizer : the randomizer given by its matrix.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Number of inputs, which are 0, 1, ..., n_inputs - 1."""

    @property
    @abstractmethod
    def epsilon0(self) -> float:
        """Local privacy parameter: the largest log ratio over ordered pairs of inputs and outputs.

        It is 0 for identical rows and inf where one row has a 0 and another has not.
        """

    def representative_inputs(self) -> tuple[int, ...]:
        """Return inputs among which every ordered pair of inputs has one with the same joint law.

        Returns
        -------
        tuple of int
            All inputs, unless the mechanism treats them alike.
        """
        return tuple(range(self.n_inputs))

    def representative_pairs(self) -> tuple[tuple[int, int], ...]:
        """Return ordered pairs of inputs, one of every kind that the privacy blanket tells apart.

        Returns
        -------
        tuple of tuple of two ints
            For every ordered pair of different inputs there is one here with the same
            ``shared_rows``, up to the order of the columns. All ordered pairs of
            `representative_inputs`, unless the mechanism treats inputs alike.

        Notes
        -----
        A relabelling of the inputs and of the outputs that leaves the randomizer as it is takes
        any pair to one with the same joint law, and leaves what all inputs share; the datasets
        over which a worst case is taken it only permutes. So whatever holds for the pairs here
        holds for all, and a mechanism that treats all inputs alike has one.
        """
        return tuple(permutations(self.representative_inputs(), 2))

    @abstractmethod
    def _merged(self, inputs: tuple[int, ...]) -> MergedRows:
        """Return the merged rows of two or more known inputs, all different."""

    @abstractmethod
    def _shared(self, inputs: tuple[int, ...]) -> FloatArray:
        """Return the rows of known inputs, all different, and below them what all inputs share."""

    @abstractmethod
    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> Messages:
        """Return one message for each of the known inputs, along the first axis."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the definition of the randomizer in plain Python values, ready for JSON.

        Returns
        -------
        dict
            For a named mechanism, ``"mechanism"`` is the name of the factory and the other items
            are its arguments.
        """

    def merged(self, inputs: Iterable[int]) -> MergedRows:
        """Return the rows of some inputs, with outputs merged that do not tell them apart.

        Parameters
        ----------
        inputs : iterable of int
            One or more inputs, from 0 to n_inputs - 1; an input may be given more than once.

        Returns
        -------
        MergedRows
            ``rows``, ``log_rows`` and ``log_ratios``, each with one row for each input given.

        Raises
        ------
        TypeError, ValueError
            If there is no input, an input is unknown, or the groups are too many to be listed.

        Notes
        -----
        A column is a group of outputs on which the rows given have constant ratios: the index of
        the group is a sufficient statistic for these inputs, and no divergence between laws built
        from them changes. Columns with equal ratios are merged, columns of zeros are dropped, and
        the order of the columns has no meaning.

        Examples
        --------
        >>> import fastshuffle.randomizers as fr
        >>> fr.subset_selection(1.0, 256, omega=64).merged((0, 1)).log_ratios
        array([[ 0.,  0.,  0.],
               [ 0., -1.,  1.]])
        """
        checked = tuple(
            check_count(f"inputs[{i}]", x, minimum=0, maximum=self.n_inputs - 1)
            for i, x in enumerate(inputs)
        )
        if not checked:
            raise ValueError("inputs must be one or more, got none")
        different = tuple(dict.fromkeys(checked))
        merged = one_group(1) if len(different) == 1 else self._merged(different)
        if len(different) == len(checked):
            return merged
        place = {x: i for i, x in enumerate(different)}
        return merged.of([place[x] for x in checked])

    def merged_rows(self, inputs: Iterable[int]) -> npt.NDArray[np.float64]:
        """Return ``merged(inputs).rows``: a row-stochastic array, one row for each input given.

        Parameters
        ----------
        inputs : iterable of int
            One or more inputs, from 0 to n_inputs - 1.

        Returns
        -------
        numpy.ndarray of float64
            The probability of each group of outputs; see `merged`.

        Raises
        ------
        TypeError, ValueError
            As `merged` does.

        Examples
        --------
        >>> import fastshuffle.randomizers as fr
        >>> fr.k_randomized_response(2.0, 10**6).merged_rows((0, 1, 2)).shape
        (3, 4)
        """
        return self.merged(inputs).rows

    def shared_rows(self, inputs: Iterable[int]) -> FloatArray:
        """Return the rows of some inputs, and a measure that lies below the law of every input.

        Parameters
        ----------
        inputs : iterable of int
            One or more different inputs, from 0 to n_inputs - 1.

        Returns
        -------
        numpy.ndarray of float64, shape (n_rows + 1, n_groups)
            The rows over groups of outputs on which all of them have constant ratios, and last the
            part of a message's law that does not depend on the input held: the privacy blanket. It
            sums to less than 1 and is ``min_x W_x``, but for messages that support all inputs of a
            mechanism, where it may be less.

        Raises
        ------
        TypeError, ValueError
            If an input is unknown or given twice, or the groups are too many to be listed.

        Examples
        --------
        >>> import fastshuffle.randomizers as fr
        >>> fr.Randomizer([[0.5, 0.5], [0.25, 0.75]]).shared_rows((0, 1))
        array([[0.5 , 0.5 ],
               [0.25, 0.75],
               [0.25, 0.5 ]])
        """
        checked = tuple(
            check_count(f"inputs[{i}]", x, minimum=0, maximum=self.n_inputs - 1)
            for i, x in enumerate(inputs)
        )
        if not checked or len(set(checked)) < len(checked):
            raise ValueError(f"inputs must be one or more different ones, got {checked}")
        return self._shared(checked)

    def sample(self, inputs: npt.ArrayLike, rng: np.random.Generator) -> Messages:
        """Draw the message of each user.

        Parameters
        ----------
        inputs : array_like of int
            The input that each user holds, from 0 to n_inputs - 1; any shape.
        rng : numpy.random.Generator
            The source of randomness.

        Returns
        -------
        numpy.ndarray
            The messages. Its shape is that of ``inputs``, followed by that of one message, which
            the docstring of the mechanism states.

        Raises
        ------
        TypeError
            If ``inputs`` are no integers or ``rng`` is no ``numpy.random.Generator``.
        ValueError
            If an input is unknown.

        Notes
        -----
        It is a simulation and no defence against attacks on floating-point noise.
        """
        rng = check_generator(rng)
        held = np.asarray(inputs)
        if held.dtype.kind not in "iu":
            raise TypeError(f"inputs must be integers, got dtype {held.dtype}")
        unknown = (held < 0) | (held >= self.n_inputs)
        if unknown.any():
            value = held[unknown].flat[0]
            raise ValueError(f"inputs must be >= 0 and <= {self.n_inputs - 1}, got {value}")
        messages = self._sample(held.astype(np.int64).ravel(), rng)
        return messages.reshape(held.shape + messages.shape[1:])

    def _key(self) -> tuple[object, ...]:
        return tuple(self.to_dict().items())

    def __repr__(self) -> str:
        name, *parameters = self.to_dict().values()
        shown = zip(list(self.to_dict())[1:], parameters, strict=True)
        return f"<{name}: {', '.join(f'{key} = {_short(value)}' for key, value in shown)}>"

    def __eq__(self, other: object) -> bool:
        """Whether both have the same definition."""
        if not isinstance(other, LocalRandomizer) or type(self) is not type(other):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))


def pairs_up_to_reflection(n_inputs: int) -> tuple[tuple[int, int], ...]:
    """Return ordered pairs of inputs, one of each that reversing the order of all inputs joins.

    For noise on an interval that is symmetric about its middle.
    """
    pairs = permutations(range(n_inputs), 2)
    return tuple((a, b) for a, b in pairs if (a, b) <= (n_inputs - 1 - a, n_inputs - 1 - b))


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def check_messages(messages: Any, message_shape: tuple[int, ...], n_values: int) -> Messages:
    """Return one or more messages of integers >= 0 and < n_values, of shape (n, *message_shape)."""
    array = np.asarray(messages)
    if array.dtype.kind not in "biu":
        raise TypeError(f"messages must be integers, got dtype {array.dtype}")
    if array.shape[array.ndim - len(message_shape) :] != message_shape:
        raise ValueError(
            f"messages must have shape {message_shape} along the last axes, got {array.shape}"
        )
    if array.size == 0:
        raise ValueError("messages must be one or more, got none")
    unknown = (array < 0) | (array >= n_values)
    if unknown.any():
        value = array[unknown].flat[0]
        raise ValueError(f"messages must be >= 0 and <= {n_values - 1}, got {value}")
    return array.reshape(-1, *message_shape)
