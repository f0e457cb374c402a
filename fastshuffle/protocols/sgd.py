"""Linear and logistic regression by stochastic gradients, one shuffled message a user and round."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fastshuffle._typing import FloatArray
from fastshuffle._validation import (
    POSITIVE_FINITE,
    PROBABILITY,
    Interval,
    UnsupportedSettingError,
    check_count,
    check_generator,
    check_real,
    check_reals,
)
from fastshuffle.composition import (
    ComposedGaussianProfile,
    composed_gaussian_profile,
    composed_profile,
    subsampled_profile,
)
from fastshuffle.exact import exact_profile
from fastshuffle.experiment import ShuffleExperiment
from fastshuffle.limits import gaussian_profile
from fastshuffle.personalized import personalized_clone_profile
from fastshuffle.profile import PrivacyProfile
from fastshuffle.protocols._weights import Weights, budget_shares, check_weights
from fastshuffle.protocols.guarantee import (
    ONE_BUDGET,
    TAGGED,
    BudgetGroup,
    Guarantee,
    LocalBudgets,
    check_budgets,
)
from fastshuffle.protocols.result import ProtocolResult
from fastshuffle.protocols.vectors import VECTOR_MECHANISMS, VectorMechanism
from fastshuffle.randomizers import binary_randomized_response

__all__ = ["SGDResult", "fit_sgd"]

ModelName: TypeAlias = Literal["linear", "logistic"]
MechanismName: TypeAlias = Literal["coordinate", "sphere"]

POOLED = "messages do not show the budget of their sender: a user hides among all"
_FINITE = Interval(-1e50, 1e50, "in [-1e50, 1e50]")
_DIVERGED = 1e50
_SHARE = Interval(1e-12, 1.0, "in [1e-12, 1]")


class _Model(NamedTuple):
    """The derivative of the loss of a user in the linear predictor, and the loss."""

    slope: Callable[[FloatArray, FloatArray], FloatArray]
    loss: Callable[[FloatArray, FloatArray], FloatArray]


def _sigmoid(x: FloatArray) -> FloatArray:
    return 0.5 * (1.0 + np.tanh(0.5 * x))


MODELS: dict[str, _Model] = {
    "linear": _Model(lambda x, y: x - y, lambda x, y: 0.5 * (x - y) ** 2),
    "logistic": _Model(lambda x, y: _sigmoid(x) - y, lambda x, y: np.logaddexp(0.0, x) - x * y),
}


@dataclass(frozen=True, eq=False)
class SGDResult(ProtocolResult):
    """The fitted model; see `fit_sgd`.

    Attributes
    ----------
    estimate : numpy.ndarray, shape (d,)
        The coefficients: the mean of those after each round of the second half.
    clipped : int
        How many of the gradients were clipped, over all rounds.
    gradients : int
        How many gradients there were.
    last : numpy.ndarray, shape (d,)
        The coefficients after the last round.
    losses : numpy.ndarray, shape (rounds + 1,)
        The mean loss over all users before the first round and after each. The simulation knows
        it; it is computed from the values of the users and **not covered by the guarantee**.
    sampling : str
        Who takes part in a round, which is what the guarantee covers.
    limits : tuple of ComposedGaussianProfile
        Beside each group of the guarantee what the Gaussian limit says, an APPROXIMATION; empty
        where users are drawn or messages pooled, for which none is offered.
    """

    gradients: int
    last: FloatArray
    losses: FloatArray
    sampling: str
    limits: tuple[ComposedGaussianProfile, ...]

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.losses) - 1

    def unshuffled_epsilon(self, delta: float) -> float:
        """Return the epsilon that holds for every user at delta without a shuffler.

        Parameters
        ----------
        delta : float
            Privacy parameter in [0, 1].

        Returns
        -------
        float
            That of the certified composition of the user's own messages, one a round, at most
            ``guarantee.epsilon0``, which is that at delta = 0.

        Raises
        ------
        TypeError, ValueError
            If delta is no real number in [0, 1].
        """
        target = check_real("delta", delta, PROBABILITY)
        # any epsilon0-LDP pair is dominated by that of randomized response
        local = binary_randomized_response(self.guarantee.epsilon0 / self.rounds)
        alone = exact_profile(ShuffleExperiment(local, 1, k=0))
        return float(composed_profile(alone, self.rounds).epsilon(target))

    def to_dict(self, *, delta: float) -> dict[str, Any]:
        """Return the result in plain Python values, ready for JSON.

        Parameters
        ----------
        delta : float
            Privacy parameter in [0, 1], at which the guarantee states epsilon.

        Returns
        -------
        dict
            The coefficients, how they were made, and ``"guarantee"``.

        Raises
        ------
        TypeError, ValueError
            If delta is no real number in [0, 1].
        """
        content = super().to_dict(delta=delta)
        guarantee = content.pop("guarantee")
        limits = [float(limit.epsilon(delta)) for limit in self.limits]
        return {
            **content,
            "gradients": self.gradients,
            "rounds": self.rounds,
            "sampling": self.sampling,
            "last": self.last.tolist(),
            "losses": self.losses.tolist(),
            "losses_are_private": False,
            "unshuffled_epsilon": self.unshuffled_epsilon(delta),
            "gaussian_limit_epsilons": limits,
            "guarantee": guarantee,
        }


def fit_sgd(  # noqa: PLR0913 - each is a choice of the deployment
    features: npt.ArrayLike,
    targets: npt.ArrayLike,
    epsilon0: npt.ArrayLike,
    *,
    model: ModelName,
    rounds: float,
    step: float,
    clip: float,
    rng: np.random.Generator,
    mechanism: MechanismName = "coordinate",
    sample: float = 1.0,
    weights: Weights = "users",
    pooled: bool = False,
) -> SGDResult:
    """Fit a linear or logistic regression by rounds of shuffled, locally private gradients.

    Parameters
    ----------
    features : array_like of float, shape (n, d)
        What each user knows, in [-1e50, 1e50]. A column of ones gives an intercept.
    targets : array_like of float, shape (n,)
        What is to be predicted from it; 0 or 1 for the logistic model.
    epsilon0 : float or array_like of float
        Local privacy parameter of **one message**, in [1e-100, 1e100]: one for all, or one for each
        user. A user sends one message in each round of taking part.
    model : {"linear", "logistic"}
        Half the squared error, or the logistic loss.
    rounds : int
        Number of rounds, from 1 to 1e6.
    step : float
        The step of round t is ``step / sqrt(t)``; > 0 and finite.
    clip : float
        The bound of a user's gradient, > 0 and finite: of each coordinate for ``"coordinate"``, of
        the length for ``"sphere"``. What is beyond is clipped, and counted.
    rng : numpy.random.Generator
        The randomness of the users, the sampling and the shuffler.
    mechanism : {"coordinate", "sphere"}
        What a user applies to the gradient: one coordinate at random, rounded to a bit, by binary
        randomized response; or a random direction on the gradient's side of the sphere.
    sample : float, default 1
        The share of the users of each budget who take part in a round, in (0, 1]: a set of fixed
        size, drawn anew without replacement, kept secret.
    weights : {"users", "precision"}
        How the mean gradients of the users of different budgets are combined; "precision" has the
        least noise and is the gradient of the loss with these weights. Of no effect if ``pooled``.
    pooled : bool, default False
        Whether messages come without the budget of their sender. Then all count the same, which
        weights the users by ``tanh(epsilon0 / 2)``. Only with full participation.

    Returns
    -------
    SGDResult
        The coefficients, the losses over the rounds, and the guarantee of every user.

    Raises
    ------
    TypeError, ValueError
        If an argument is outside its domain.
    UnsupportedSettingError
        If ``pooled`` comes with a sample.
    ArithmeticError
        If a coefficient grows beyond 1e50.

    Notes
    -----
    *A round.* Every user who takes part computes the gradient at the public coefficients, clips it
    and sends one message; the messages, shuffled, are decoded to an unbiased estimate of the mean
    clipped gradient, and the coefficients move against it and become public.

    *Guarantee.* Replace-one: one user's features and target change, in all rounds. A round is
    bounded by the privacy blanket of binary randomized response with the same epsilon0
    (`fastshuffle.protocols.vectors`), among the users of the same budget, or, pooled, by the clones
    of all (`personalized_clone_profile`). Gradients depend on earlier rounds, so the rounds are
    composed adaptively: `composed_profile`, an UPPER_BOUND. **Sampling that is covered**: all users
    in every round, or with ``sample < 1`` sets of fixed size without replacement by
    `subsampled_profile`. It does not cover Poisson sampling, batches taken in turn from one
    shuffled order, nor users who choose when to take part. Without a shuffler every message is the
    user's own, the sample is not secret, and the guarantee is that of ``rounds`` messages.
    The randomizers are pure: they satisfy any personal (epsilon_i, delta_i) with epsilon_i =
    epsilon0.

    **Cost**: O(n d) a round, 0.2 to 0.4 microseconds a user for d = 6; the guarantee is computed
    for what is asked of it, in about a second for each budget.

    A sample is a simulation and no defence against attacks on floating-point noise.

    References
    ----------
    .. [1] J. Duchi, M. Jordan, M. Wainwright, "Minimax Optimal Procedures for Locally Private
       Estimation", arXiv:1604.02390.
    .. [2] E. Chen, Y. Cao, Y. Ge, "A Generalized Shuffle Framework for Privacy Amplification",
       AAAI 2024, arXiv:2312.14388, SGD with personal budgets.

    Examples
    --------
    >>> import numpy as np
    >>> from fastshuffle.protocols import fit_sgd
    >>> rng = np.random.default_rng(3)
    >>> x = np.column_stack((np.ones(50_000), rng.uniform(-1, 1, 50_000)))
    >>> y = x @ [0.5, -0.25] + rng.normal(0, 0.1, 50_000)
    >>> fit = fit_sgd(x, y, 2.0, model="linear", rounds=20, step=1.0, clip=1.0, rng=rng)
    >>> print(np.round(fit.estimate, 2))
    [ 0.5  -0.22]
    >>> guarantee = fit.guarantee
    >>> print(f"{guarantee.epsilon(1e-8):.3f} shuffled, {fit.unshuffled_epsilon(1e-8):.1f} not")
    0.301 shuffled, 40.0 not
    """
    x, y = _checked_data(features, targets, logistic=model == "logistic")
    budgets = check_budgets(epsilon0, len(y))
    n_rounds = check_count("rounds", rounds, minimum=1, maximum=10**6)
    first_step = check_real("step", step, POSITIVE_FINITE)
    bound = check_real("clip", clip, POSITIVE_FINITE)
    check_generator(rng)
    for name, value, known in (
        ("model", model, MODELS),
        ("mechanism", mechanism, VECTOR_MECHANISMS),
    ):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    share = check_real("sample", sample, _SHARE)
    combination = check_weights(weights)
    if not isinstance(pooled, bool):
        raise TypeError(f"pooled must be True or False, got {pooled!r}")
    if pooled and share < 1.0:
        raise UnsupportedSettingError(f"sample must be 1 where messages are pooled, got {share!r}")

    kind = VECTOR_MECHANISMS[mechanism]
    randomizers = [kind(value, x.shape[1], bound) for value in budgets.values.tolist()]
    sizes = [max(1, round(share * size)) for size in budgets.sizes.tolist()]
    if pooled:
        factors = [1.0 / sum(m.difference * n for m, n in zip(randomizers, sizes, strict=True))]
        factors *= len(sizes)
    else:
        shares = budget_shares(combination, budgets, [m.size**2 for m in randomizers])
        factors = [
            w / (m.difference * n)
            for w, m, n in zip(shares.tolist(), randomizers, sizes, strict=True)
        ]
    parts = [
        _Part(x[users], y[users], *rest)
        for users, *rest in zip(budgets.members(), randomizers, sizes, factors, strict=True)
    ]
    path, losses, clipped = _Fit(MODELS[model], parts).run(n_rounds, first_step, rng)
    return SGDResult(
        protocol=f"{model} regression by {n_rounds} rounds of gradients: {kind.words}",
        estimate=path[n_rounds // 2 :].mean(axis=0),
        clipped=clipped,
        guarantee=_guarantee(budgets, randomizers, sizes, n_rounds, pooled=pooled),
        gradients=n_rounds * sum(sizes),
        last=path[-1],
        losses=losses,
        sampling=_sampling_words(budgets, sizes),
        limits=() if pooled or sizes != budgets.sizes.tolist() else _limits(budgets, n_rounds),
    )


class _Part(NamedTuple):
    """The users of one budget: their data, randomizer, how many take part, and their weight."""

    x: FloatArray
    y: FloatArray
    randomizer: VectorMechanism
    size: int
    factor: float

    def drawn(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return the data of those who take part in a round."""
        if self.size == len(self.y):
            return self.x, self.y
        users = rng.choice(len(self.y), self.size, replace=False)
        return self.x[users], self.y[users]


class _Fit(NamedTuple):
    """The model and the users by budget."""

    model: _Model
    parts: list[_Part]

    def run(
        self, rounds: int, step: float, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray, int]:
        """Return the coefficients after each round, the losses, and the number of clipped."""
        path = np.zeros((rounds + 1, self.parts[0].x.shape[1]))
        losses = [self.loss(path[0])]
        clipped = 0
        for t in range(1, rounds + 1):
            gradient, outside = self.gradient(path[t - 1], rng)
            path[t] = path[t - 1] - step / math.sqrt(t) * gradient
            if not np.abs(path[t]).max() <= _DIVERGED:
                raise ArithmeticError(
                    f"the fit diverged in round {t}: step and clip are too large for the features"
                )
            losses.append(self.loss(path[t]))
            clipped += outside
        return path[1:], np.array(losses), clipped

    def loss(self, coefficients: FloatArray) -> float:
        """Return the mean loss over all users."""
        total = sum(
            float(self.model.loss(part.x @ coefficients, part.y).sum()) for part in self.parts
        )
        return total / sum(len(part.y) for part in self.parts)

    def gradient(
        self, coefficients: FloatArray, rng: np.random.Generator
    ) -> tuple[FloatArray, int]:
        """Return the estimate from one round of shuffled messages, and the number of clipped."""
        estimate = np.zeros_like(coefficients)
        clipped = 0
        for part in self.parts:
            x, y = part.drawn(rng)
            slopes = self.model.slope(x @ coefficients, y)
            gradients, outside = part.randomizer.clipped(slopes[:, np.newaxis] * x)
            messages = rng.permutation(part.randomizer.report(gradients, rng))
            estimate += part.factor * part.randomizer.total(messages)
            clipped += outside
        return estimate, clipped


def _guarantee(
    budgets: LocalBudgets,
    randomizers: list[VectorMechanism],
    sizes: list[int],
    rounds: int,
    *,
    pooled: bool,
) -> Guarantee:
    """Return the guarantee of all rounds together."""
    if pooled:
        # what all inputs share of another user's randomizer is uniform, of weight 2 flip, and the
        # pair of opposite halves is the worst against it: the family that contains the clones
        clones = personalized_clone_profile(budgets.values[budgets.group_of], family="containing")
        one_round: list[PrivacyProfile] = [
            clones.user(int(users[0])) for users in budgets.members()
        ]
    else:
        one_round = [
            randomizer.profile(size)
            if size == users
            else subsampled_profile(randomizer.profile(size), users)
            for randomizer, size, users in zip(
                randomizers, sizes, budgets.sizes.tolist(), strict=True
            )
        ]
    groups = [
        BudgetGroup(rounds * value, users, composed_profile(profile, rounds))
        for value, users, profile in zip(
            budgets.values.tolist(), budgets.sizes.tolist(), one_round, strict=True
        )
    ]
    several = POOLED if pooled else TAGGED
    return Guarantee(groups, budgets.group_of, view=several if len(groups) > 1 else ONE_BUDGET)


def _limits(budgets: LocalBudgets, rounds: int) -> tuple[ComposedGaussianProfile, ...]:
    """Return the Gaussian limit of the rounds for each budget, the others all at one end."""
    if int(budgets.sizes.min()) < 2:
        return ()
    return tuple(
        composed_gaussian_profile(
            gaussian_profile(ShuffleExperiment(binary_randomized_response(value), users, k=0)),
            rounds,
        )
        for value, users in zip(budgets.values.tolist(), budgets.sizes.tolist(), strict=True)
    )


def _sampling_words(budgets: LocalBudgets, sizes: list[int]) -> str:
    users = budgets.sizes.tolist()
    if sizes == users:
        return "all users take part in every round"
    drawn = ", ".join(f"{m:,} of {n:,}" for m, n in zip(sizes, users, strict=True))
    per_budget = " of each budget" if len(users) > 1 else ""
    return f"{drawn} users{per_budget}, drawn anew without replacement in every round and secret"


def _checked_data(
    features: npt.ArrayLike, targets: npt.ArrayLike, *, logistic: bool
) -> tuple[FloatArray, FloatArray]:
    flat, shape = check_reals("features", features, _FINITE)
    if len(shape) != 2 or 0 in shape:
        raise ValueError(f"features must be 2-D with a row a user and no empty axis, got {shape}")
    y, lengths = check_reals("targets", targets, _FINITE)
    if lengths != shape[:1]:
        raise ValueError(f"targets must be one for each of {shape[0]} users, got shape {lengths}")
    if logistic:
        outside = (y != 0.0) & (y != 1.0)
        if outside.any():
            i = int(outside.argmax())
            raise ValueError(f"targets must be 0 or 1, got {float(y[i])!r} at index {i}")
    return flat.reshape(shape), y
