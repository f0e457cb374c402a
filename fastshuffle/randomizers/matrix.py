"""The local randomizer given by its matrix."""

import json
import os
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray, IntArray
from fastshuffle._validation import (
    NONNEGATIVE_FINITE,
    PROBABILITY,
    check_count,
    check_real,
    check_reals,
    check_stochastic_matrix,
)
from fastshuffle.randomizers.base import LocalRandomizer
from fastshuffle.randomizers.entries import (
    differences,
    extreme_binary_rows,
    log_of_rows,
    log_ratios,
    smaller,
)
from fastshuffle.randomizers.files import checked_exponents, errors_naming, matrix_from_csv
from fastshuffle.randomizers.merging import (
    MergedRows,
    merge_formula,
    merge_matrix,
    merge_proportional,
)

__all__ = ["Randomizer"]


@final
class Randomizer(LocalRandomizer):
    """Local randomizer of one user: a row-stochastic matrix W, immutable.

    Parameters
    ----------
    matrix : array_like of float, shape (n_inputs, n_outputs)
        ``matrix[x][y]`` is the probability that a user who holds input x sends output y. At least
        one row and one column; entries finite and >= 0, of type float64 or integer; every row
        sums to 1 within 1e-12 times its length. It is copied and never renormalised.

    Raises
    ------
    TypeError
        If an entry is no real number, or is of another floating type than float64.
    ValueError
        If the matrix is not 2-D, rows differ in length, an entry is negative, infinite or nan, or
        a row does not sum to 1. The message names the row.

    See Also
    --------
    binary_randomized_response : the mechanism with two inputs and two outputs.

    Notes
    -----
    **Convention for binary output.** In a row of two entries the smaller one is authoritative and
    the larger one is its exact complement. So ``[1e-30, 1.0]`` is the law that sends output 0 with
    probability exactly 1e-30, and ``[1 - p, p]`` stands for p exactly, whatever the rounding of
    ``1 - p``. With more outputs every entry is taken as it stands.

    **Named mechanisms** are held by their formula, ``W_x(y)`` proportional to ``exp(epsilon0 *
    exponents[x, y])`` with small integer exponents, rather than by rounded probabilities. Their
    privacy losses are exact multiples of `epsilon0` even where a probability underflows.

    **Accuracy.** `log_matrix`, `log_ratio`, `probability_difference` and `epsilon0` have a
    relative error of a few units of rounding, also for rows that nearly agree
    (``tests/test_randomizers.py``).

    **Sampling** is by inversion of the distribution function, with one uniform number a user; the
    messages are int64 outputs, in the shape of the inputs, and an output of probability 0 never
    appears. A uniform number has 53 bits, so the probability of an output is met to about 1e-16
    absolutely. The cost is O(N log N) for N users.

    Examples
    --------
    >>> import numpy as np
    >>> w = Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])
    >>> w
    <Randomizer: 2 inputs, 3 outputs, epsilon0 = 0.916291>
    >>> w.n_outputs
    3
    >>> w.sample([0, 0, 1, 1], np.random.default_rng(7))
    array([1, 2, 2, 1])
    """

    __slots__ = ("_epsilon0", "_formula", "_log_matrix", "_matrix")

    _matrix: FloatArray
    _log_matrix: FloatArray
    _formula: tuple[float, IntArray] | None  # epsilon0 and exponents of a named mechanism
    _epsilon0: float

    def __init__(self, matrix: npt.ArrayLike) -> None:
        checked = check_stochastic_matrix(matrix)
        self._assign(checked, log_of_rows(checked), None)

    def _assign(
        self,
        matrix: FloatArray,
        log_matrix: FloatArray,
        formula: tuple[float, IntArray] | None,
    ) -> None:
        matrix.flags.writeable = False
        log_matrix.flags.writeable = False
        self._matrix = matrix
        self._log_matrix = log_matrix
        self._formula = formula
        self._epsilon0 = self._largest_log_ratio()

    @classmethod
    def _from_formula(cls, epsilon0: float, exponents: IntArray) -> Self:
        """Build ``W_x(y)`` proportional to ``exp(epsilon0 * exponents[x, y])``.

        The rows of ``exponents`` are permutations of one another, so that all rows of W have the
        same normalisation and every log ratio is a multiple of epsilon0.
        """
        powers = epsilon0 * (exponents - exponents.max()).astype(np.float64)
        # the normalisation less its largest term, which is 1: its logarithm keeps full precision
        rest = np.exp(np.sort(powers[0])[:-1]).sum()
        self = cls.__new__(cls)
        self._assign(np.exp(powers) / (1.0 + rest), powers - np.log1p(rest), (epsilon0, exponents))
        return self

    @classmethod
    def from_probabilities(cls, probabilities: npt.ArrayLike) -> Self:
        """Return the randomizer with binary output of the given probabilities.

        Parameters
        ----------
        probabilities : array_like of float, shape (n_inputs,)
            The probability in [0, 1] that a user who holds input x sends output 1.

        Returns
        -------
        Randomizer
            The randomizer with rows ``[1 - p, p]``, which stand for p exactly.

        Raises
        ------
        TypeError, ValueError
            If a probability is no real number in [0, 1], or they are not a 1-D sequence.

        Examples
        --------
        >>> w = Randomizer.from_probabilities([0.25, 0.5])
        >>> w.matrix
        array([[0.75, 0.25],
               [0.5 , 0.5 ]])
        """
        p, shape = check_reals("probabilities", probabilities, PROBABILITY)
        if len(shape) != 1:
            raise ValueError(f"probabilities must be 1-D, got {len(shape)}-D")
        return cls(np.column_stack((1.0 - p, p)))

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Self:
        """Read a randomizer from a file with one row of the matrix a line, separated by commas.

        Parameters
        ----------
        path : str or path-like
            A UTF-8 text file of numbers without a header. Blank lines are skipped.

        Returns
        -------
        Randomizer
            The randomizer whose row x is the x-th line.

        Raises
        ------
        ValueError
            If the file holds no valid matrix. The message names the path, the line and the value.
        """
        return cls(matrix_from_csv(path))

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Self:
        """Read a randomizer from a JSON file.

        Parameters
        ----------
        path : str or path-like
            A UTF-8 file that holds the rows of the matrix, as a list of lists or as an object with
            the key ``"matrix"``, or what `to_dict` gives for a named mechanism.

        Returns
        -------
        Randomizer
            Equal to the randomizer whose `to_dict` was written.

        Raises
        ------
        ValueError
            If the file holds no valid randomizer. The message names the path, the place and the
            value.
        """
        with errors_naming(path):
            content = json.loads(Path(path).read_text(encoding="utf-8-sig"))
            return cls._from_dict(content if isinstance(content, dict) else {"matrix": content})

    @classmethod
    def _from_dict(cls, content: dict[str, Any]) -> Self:
        if content.keys() == {"matrix"}:
            return cls(content["matrix"])
        if content.keys() == {"epsilon0", "exponents"}:
            epsilon0 = check_real("epsilon0", content["epsilon0"], NONNEGATIVE_FINITE)
            return cls._from_formula(epsilon0, checked_exponents(content["exponents"]))
        raise ValueError(
            "a randomizer has the key 'matrix', or the keys 'epsilon0' and 'exponents', "
            f"got {sorted(content)}"
        )

    @property
    def matrix(self) -> FloatArray:
        """Read-only array of shape (n_inputs, n_outputs), as it was given."""
        return self._matrix

    @property
    def log_matrix(self) -> FloatArray:
        """Read-only array of natural logarithms, -inf for 0, of shape (n_inputs, n_outputs).

        For binary output the larger entry of a row is ``log1p(-smaller)``.
        """
        return self._log_matrix

    @property
    def n_inputs(self) -> int:
        """Number of inputs, which are 0, 1, ..., n_inputs - 1."""
        return self._matrix.shape[0]

    @property
    def n_outputs(self) -> int:
        """Number of outputs, which are 0, 1, ..., n_outputs - 1."""
        return self._matrix.shape[1]

    @property
    def epsilon0(self) -> float:
        """Local privacy parameter: the largest log ratio over ordered pairs of inputs and outputs.

        It is 0 for identical rows and inf where one row has a 0 and another has not.
        """
        return self._epsilon0

    @property
    def smaller_output(self) -> IntArray:
        """For binary output, the column of the authoritative entry of each row (0 in a tie)."""
        self._require_binary("smaller_output")
        return self._matrix.argmin(axis=1)

    @property
    def smaller_probability(self) -> FloatArray:
        """For binary output, the authoritative entry of each row, at most 1/2."""
        self._require_binary("smaller_probability")
        return smaller(self._matrix)

    def _require_binary(self, name: str) -> None:
        if self.n_outputs != 2:
            raise ValueError(f"{name} requires n_outputs to be 2, got {self.n_outputs}")

    def log_ratio(self, b: int, a: int, y: int) -> float:
        """Return the privacy loss ``log(W_b(y) / W_a(y))``.

        Parameters
        ----------
        b, a : int
            Inputs, from 0 to n_inputs - 1.
        y : int
            Output, from 0 to n_outputs - 1.

        Returns
        -------
        float
            inf where only W_a(y) is 0, -inf where only W_b(y) is 0, and 0 where both are: an
            output that neither input sends carries no loss. Exactly antisymmetric in b and a.

        Raises
        ------
        TypeError, ValueError
            If an index is no integer of its range.

        Examples
        --------
        >>> import fastshuffle as fs
        >>> fs.binary_randomized_response(1.0).log_ratio(1, 0, 1)
        1.0
        """
        return float(self._log_ratios(*self._check_indices(b, a, y)))

    def probability_difference(self, b: int, a: int, y: int) -> float:
        """Return ``W_b(y) - W_a(y)``, to relative accuracy also where the two nearly agree.

        Parameters
        ----------
        b, a : int
            Inputs, from 0 to n_inputs - 1.
        y : int
            Output, from 0 to n_outputs - 1.

        Returns
        -------
        float
            The difference. Exactly antisymmetric in b and a.

        Raises
        ------
        TypeError, ValueError
            If an index is no integer of its range.

        Examples
        --------
        >>> import fastshuffle as fs
        >>> fs.binary_randomized_response(1e-20).probability_difference(1, 0, 1)
        5e-21
        """
        return float(self._differences(*self._check_indices(b, a, y)))

    def _check_indices(self, b: int, a: int, y: int) -> tuple[int, int, int]:
        return (
            check_count("b", b, minimum=0, maximum=self.n_inputs - 1),
            check_count("a", a, minimum=0, maximum=self.n_inputs - 1),
            check_count("y", y, minimum=0, maximum=self.n_outputs - 1),
        )

    def _log_ratios(self, b: Any, a: Any, y: Any) -> Any:
        if self._formula is None:
            return log_ratios(self._matrix, b, a, y)
        epsilon0, exponents = self._formula
        return epsilon0 * (exponents[b, y] - exponents[a, y]) + 0.0

    def _differences(self, b: Any, a: Any, y: Any) -> Any:
        if self._formula is None:
            return differences(self._matrix, b, a, y)
        loss = self._log_ratios(b, a, y)
        high = np.maximum(self._matrix[b, y], self._matrix[a, y])
        return np.copysign(-high * np.expm1(-np.abs(loss)), loss)

    def _largest_log_ratio(self) -> float:
        ordered = self._matrix if self._formula is None else self._formula[1]
        if ordered.shape[1] == 2 and self._formula is None:
            lowest, highest = extreme_binary_rows(self._matrix)
        else:
            lowest, highest = ordered.argmin(axis=0), ordered.argmax(axis=0)
        return float(self._log_ratios(highest, lowest, np.arange(self.n_outputs)).max())

    def _sample(self, inputs: IntArray, rng: np.random.Generator) -> IntArray:
        uniform = rng.random(inputs.size)
        outputs = np.empty(inputs.size, dtype=np.int64)
        order = inputs.argsort(kind="stable")
        counts = np.bincount(inputs, minlength=self.n_inputs)
        for row, users in zip(self._matrix, np.split(order, counts.cumsum()[:-1]), strict=True):
            cumulative = row.cumsum()
            cumulative[np.flatnonzero(row)[-1] :] = 1.0  # above every uniform number
            outputs[users] = cumulative.searchsorted(uniform[users], side="right")
        return outputs

    def _merged(self, inputs: tuple[int, ...]) -> MergedRows:
        if self._formula is None:
            return merge_matrix(self._matrix, self._log_matrix, inputs)
        epsilon0, exponents = self._formula
        held = list(inputs)
        return merge_formula(epsilon0, exponents[held], self._log_matrix[held])

    def _shared(self, inputs: tuple[int, ...]) -> FloatArray:
        rows = np.vstack((self._matrix[list(inputs)], self._matrix.min(axis=0)))
        return merge_proportional(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the definition of the randomizer in plain Python values, ready for JSON.

        Returns
        -------
        dict
            ``{"matrix": rows}``, or ``{"epsilon0": float, "exponents": rows}`` for a named
            mechanism, where ``W_x(y)`` is proportional to ``exp(epsilon0 * exponents[x][y])``.

        Examples
        --------
        >>> import fastshuffle as fs
        >>> fs.binary_randomized_response(1.0).to_dict()
        {'epsilon0': 1.0, 'exponents': [[1, 0], [0, 1]]}
        """
        if self._formula is None:
            return {"matrix": self._matrix.tolist()}
        epsilon0, exponents = self._formula
        return {"epsilon0": epsilon0, "exponents": exponents.tolist()}

    def __repr__(self) -> str:
        return (
            f"<Randomizer: {self.n_inputs} inputs, {self.n_outputs} outputs, "
            f"epsilon0 = {self.epsilon0:g}>"
        )

    def _key(self) -> tuple[object, ...]:
        if self._formula is None:
            return self._matrix.shape, self._matrix.tobytes()
        epsilon0, exponents = self._formula
        return epsilon0, exponents.shape, exponents.tobytes()

    def __reduce__(self) -> tuple[Any, ...]:
        # so that a copy from another process is read-only too
        return Randomizer._from_dict, (self.to_dict(),)
