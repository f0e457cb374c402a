"""The exact profile of an experiment with binary output."""

from typing import final

from fastshuffle.exact._group_curves import GroupCurves
from fastshuffle.exact._pair_profile import PairProfile
from fastshuffle.profile import Validity


@final
class ExactProfile(GroupCurves, PairProfile):
    """The exact finite-n profile of an experiment with binary output; see `exact_profile`."""

    @property
    def validity(self) -> Validity:
        """EXACT."""
        return Validity.EXACT

    @property
    def method(self) -> str:
        """How the numbers are computed, in a few words."""
        return "contour sum over the binomial groups of the other users; closed-form inverse"

    @property
    def source(self) -> str:
        """The definition that the numbers rest on."""
        return (
            "definition of the hockey-stick divergence of the two histogram laws; exact likelihood "
            "ratio of A. Shvets, arXiv:2602.09029v3, sections 3 and 8"
        )
