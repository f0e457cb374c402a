"""The certified worst case over all datasets, and the divergences of one."""

import warnings

import fastshuffle as fs

from .settings import ONES, RR, USERS, profile


class WorstCase:
    """epsilon at delta = 1e-8: the number a deployment may quote."""

    params = ((10**3, 10**6, 10**9, 10**12),)
    param_names = ("n",)

    def setup(self, users):
        warnings.simplefilter("ignore", fs.DeltaWarning)
        self.time_epsilon(users)
        self.time_delta(users)

    def time_epsilon(self, users):
        fs.worst_case_profile(RR, users).epsilon(1e-8)

    def time_delta(self, users):
        fs.worst_case_profile(RR, users).delta(3.0 / users**0.5)

    def peakmem_epsilon(self, users):
        fs.worst_case_profile(RR, users).epsilon(1e-8)


class Divergence:
    """Divergences of an exact profile, both directions."""

    params = (USERS, ONES)
    param_names = ("n", "others")

    def setup(self, users, ones):
        self.profile = profile(users, ones)
        self.time_kl()
        self.time_renyi()
        self.time_jensen_shannon()

    def time_kl(self, *_):
        self.profile.kl()

    def time_renyi(self, *_):
        self.profile.renyi(8.0)

    def time_chi_square(self, *_):
        self.profile.chi_square()

    def time_jensen_shannon(self, *_):
        self.profile.jensen_shannon()
