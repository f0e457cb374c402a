"""The shuffle experiment: the two neighbouring datasets whose shuffled messages are compared."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, final

from fastshuffle._validation import (
    LARGEST_COUNT,
    UnsupportedSettingError,
    check_count,
    check_pair,
)
from fastshuffle.randomizers import LocalRandomizer, bundle

__all__ = ["ShuffleExperiment", "check_experiment"]


@final
class ShuffleExperiment:
    """Two neighbouring datasets of n users under one randomizer and a shuffler, immutable.

    One user holds ``a`` in the first dataset and ``b`` in the second; the other n - 1 users hold
    the same inputs in both. Every user sends one message, or the same number of independent ones,
    and the analyst sees the histogram of all messages: its law is Q under the first dataset and P
    under the second. The neighbouring relation is replace-one, with n known.

    Parameters
    ----------
    randomizer : LocalRandomizer
        What every user applies to the input held; at least two inputs.
    n : int
        Number of users, including the one who differs; from 1 to 2**53. Integral floats such as
        1e6 are accepted.
    k : int, optional
        How many of the other users hold input 1, from 0 to n - 1, while the rest hold input 0.
        Only with the pair (0, 1), so that k is the number of ones in the first dataset.
    others : mapping of int to int, optional
        How many of the other users hold each input; the counts are >= 0 and sum to n - 1. Exactly
        one of ``k`` and ``others`` is given.
    pair : tuple of two ints, default (0, 1)
        The inputs ``(a, b)`` that the differing user holds in the first and in the second dataset.
    messages : int, default 1
        How many messages every user sends, each the outcome of applying the randomizer anew to
        the same input; at least 1, and no more than 2**53 from all users.
    bundled : bool, default False
        Whether the messages of a user stay together, as one message of the randomizer
        ``bundle(randomizer, messages)``, which then is that of the experiment. Otherwise the
        messages of all users are shuffled one by one, so that nobody sees which came from the
        same user.

    Raises
    ------
    TypeError
        If not exactly one of ``k`` and ``others`` is given, or an argument is of a wrong type.
    ValueError
        If an input is unknown, a count is outside its domain, the counts do not sum to n - 1, the
        two inputs of the pair are equal, or ``k`` comes with a pair other than (0, 1).

    Notes
    -----
    *Forward* is the divergence of P from Q, *reverse* that of Q from P. A privacy guarantee needs
    both, and their largest over all that the others may hold.

    Examples
    --------
    >>> from fastshuffle.randomizers import Randomizer, binary_randomized_response
    >>> ShuffleExperiment(binary_randomized_response(1.0), 1e8, k=0).others
    mappingproxy({0: 99999999})
    >>> w = Randomizer([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.3, 0.3, 0.4]])
    >>> ShuffleExperiment(w, n=1000, others={2: 999}).pair
    (0, 1)
    """

    __slots__ = ("_messages", "_n", "_others", "_pair", "_randomizer")

    def __init__(
        self,
        randomizer: LocalRandomizer,
        n: float,
        *,
        k: float | None = None,
        others: Mapping[int, float] | None = None,
        pair: Sequence[int] = (0, 1),
        messages: float = 1,
        bundled: bool = False,
    ) -> None:
        if not isinstance(randomizer, LocalRandomizer):
            raise TypeError(f"randomizer must be a Randomizer, got {type(randomizer).__name__}")
        if randomizer.n_inputs < 2:
            raise ValueError(f"randomizer must have at least 2 inputs, got {randomizer.n_inputs}")
        if (k is None) == (others is None):
            raise TypeError("exactly one of k and others must be given")
        self._n = check_count("n", n, minimum=1)
        self._pair = check_pair(pair, randomizer.n_inputs)
        most = LARGEST_COUNT // self._n
        count = check_count("messages", messages, minimum=1, maximum=most)
        if not isinstance(bundled, bool):
            raise TypeError(f"bundled must be True or False, got {bundled!r}")
        self._messages = 1 if bundled else count
        self._randomizer = bundle(randomizer, count) if bundled else randomizer
        if k is not None:
            if self._pair != (0, 1):
                raise ValueError(f"pair must be (0, 1) where k is given, got {self._pair}")
            ones = check_count("k", k, minimum=0, maximum=self._n - 1)
            counts = {0: self._n - 1 - ones, 1: ones}
        else:
            counts = _checked_others(others, self._n, randomizer.n_inputs)
        self._others = tuple((x, counts[x]) for x in sorted(counts) if counts[x] > 0)

    @property
    def randomizer(self) -> LocalRandomizer:
        """What every user applies to the input held; a bundle of messages is one message."""
        return self._randomizer

    @property
    def n(self) -> int:
        """Number of users, including the one who differs."""
        return self._n

    @property
    def others(self) -> Mapping[int, int]:
        """Read-only mapping from input to how many of the other users hold it, if any do."""
        return MappingProxyType(dict(self._others))

    @property
    def pair(self) -> tuple[int, int]:
        """The inputs ``(a, b)`` of the differing user in the first and in the second dataset."""
        return self._pair

    @property
    def messages(self) -> int:
        """How many messages of every user are shuffled one by one; a bundle is one message."""
        return self._messages

    def to_dict(self) -> dict[str, Any]:
        """Return the experiment in plain Python values, ready for JSON.

        Returns
        -------
        dict
            The keys are ``"randomizer"``, ``"n"``, ``"others"`` (with the inputs as strings, as
            JSON has them), ``"pair"`` and, where several messages of a user are shuffled one by
            one, ``"messages"``.

        Examples
        --------
        >>> from fastshuffle.randomizers import Randomizer
        >>> w = Randomizer([[0.75, 0.25], [0.5, 0.5]])
        >>> ShuffleExperiment(w, n=10, k=4).to_dict()["others"]
        {'0': 5, '1': 4}
        """
        content = {
            "randomizer": self._randomizer.to_dict(),
            "n": self._n,
            "others": {str(x): count for x, count in self._others},
            "pair": list(self._pair),
        }
        if self._messages > 1:
            content["messages"] = self._messages
        return content

    def __repr__(self) -> str:
        several = f"{self._messages} messages each, " if self._messages > 1 else ""
        return (
            f"<ShuffleExperiment: n = {self._n}, {several}pair = {self._pair}, "
            f"others = {dict(self._others)}, {self._randomizer!r}>"
        )

    def _key(self) -> tuple[object, ...]:
        return self._randomizer, self._n, self._others, self._pair, self._messages

    def __eq__(self, other: object) -> bool:
        """Whether randomizer, n, the others, the pair and the messages are equal."""
        if not isinstance(other, ShuffleExperiment):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


def check_experiment(experiment: Any, *, several: bool = False) -> ShuffleExperiment:
    """Return an experiment, of one message a user unless ``several`` are what a method covers."""
    if not isinstance(experiment, ShuffleExperiment):
        raise TypeError(f"experiment must be a ShuffleExperiment, got {type(experiment).__name__}")
    if experiment.messages > 1 and not several:
        raise UnsupportedSettingError(
            f"messages must be 1 or bundled for this method, got {experiment.messages}; "
            "exact_profile and revealing_profile cover several"
        )
    return experiment


def _checked_others(others: Any, n: int, n_inputs: int) -> dict[int, int]:
    if not isinstance(others, Mapping):
        raise TypeError(f"others must be a mapping from input to count, got {others!r}")
    counts = {}
    for key, value in others.items():
        x = check_count("input in others", key, minimum=0, maximum=n_inputs - 1)
        counts[x] = check_count(f"others[{x}]", value, minimum=0)
    total = sum(counts.values())
    if total != n - 1:
        raise ValueError(f"others must sum to n - 1 = {n - 1}, got {total}")
    return counts
