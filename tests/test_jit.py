"""The gate of the kernels: one signature each, no stale machine code, and life without a cache."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fastshuffle

PACKAGE = Path(fastshuffle.__file__).parent
KERNELS = PACKAGE / "_kernels"


def run_python(code, *arguments, path, **environment):
    """Run code in a fresh interpreter that imports from ``path`` and return what it printed."""
    settings = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONPATH": str(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        **{k: v for k, v in os.environ.items() if k.startswith(("HOME", "XDG_", "NUMBA_"))},
        **{name: str(value) for name, value in environment.items()},
    }
    process = subprocess.run(  # noqa: S603 - this interpreter and code of this file
        [sys.executable, "-c", code, *map(str, arguments)],
        env=settings,
        cwd=path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout.strip()


def load_gate(folder):
    """Load the gate that stands in a folder, apart from the package's own."""
    spec = importlib.util.spec_from_file_location(f"gate_{folder.name}", folder / "_jit.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- One signature a kernel ------------------------------------------------------------------

SIGNATURES = """
import warnings
import numpy as np
from numba.core.sigutils import normalize_signature
import fastshuffle as fs
from fastshuffle._kernels import _jit

warnings.simplefilter("ignore", fs.DeltaWarning)
asymmetric = fs.Randomizer([[0.8, 0.2], [0.5, 0.5], [0.9, 0.1]])
sparse = fs.binary_randomized_response(5.0)
for n in (1, 2, 30, 2000):
    for experiment in (
        fs.ShuffleExperiment(asymmetric, n, k=n // 3),
        fs.ShuffleExperiment(asymmetric, n, others={2: n - 1}, pair=(1, 2)),
    ):
        profile = fs.exact_profile(experiment)
        for x in (0, 1, 0.5, np.float32(0.25), [0.0, 0.1], np.ones((2, 2)), np.arange(2)):
            profile.delta(x), profile.log_delta(x, direction="reverse"), profile.bounds(x)
            profile.epsilon(x), profile.trade_off(x)
        profile.renyi(2), profile.renyi(0.25), profile.kl(), profile.jensen_shannon()
        profile.to_json(epsilon=[0.1], delta=[1e-6])
    several = fs.exact_profile(fs.ShuffleExperiment(asymmetric, n, k=n // 3, messages=3))
    several.delta([0.0, 0.1]), several.epsilon(1e-6), several.trade_off(0.1)
    several.kl(), several.jensen_shannon()
    worst = fs.worst_case_profile(asymmetric, n)
    worst.delta(0.05), worst.epsilon(1e-6), worst.argmax(0.05), worst.trade_off(0.1)
    limit = fs.skellam_profile(fs.ShuffleExperiment(sparse, n, k=n // 3))
    limit.delta(0), limit.delta([0.0, 0.1]), limit.epsilon(1e-6), limit.trade_off(0.1)
    fs.compound_poisson_profile(fs.ShuffleExperiment(sparse, n, k=0)).delta(0.1)
    budgets = np.linspace(0.5, 2.0, n)
    for profile in (
        fs.personalized_exact_profile(budgets),
        fs.personalized_exact_profile(budgets, bits=np.arange(n) % 2),
        fs.personalized_clone_profile(budgets, 1e-12, family="containing"),
        fs.personalized_k_rr_profile(budgets, 4),
    ):
        profile.delta([0.0, 0.1]), profile.user(0).epsilon(0.01)



def compiled(dispatcher):
    # in this process, and in any before it that filled the cache: a kernel called by a cached
    # one is not compiled again, and would hide what it was once compiled for
    cached = dispatcher._cache._cache_file._load_index()
    return set(dispatcher.signatures) | {key[0] for key in cached}


wanted = {name: normalize_signature(sig)[0] for name, (_, sig) in _jit.REGISTRY.items()}
kernels = {name: kernel for name, (kernel, _) in _jit.REGISTRY.items()}
assert any(kernel.signatures for kernel in kernels.values())
assert _jit.precompile() == len(kernels)
for name, kernel in kernels.items():
    assert wanted[name] in kernel.signatures, (name, kernel.signatures)
others = {name: compiled(kernel) - {wanted[name]} for name, kernel in kernels.items()}
others = {name: signatures for name, signatures in others.items() if signatures}
assert not others, others
print(len(kernels))
"""


@pytest.mark.slow
def test_every_kernel_has_its_registered_signature_and_no_other():
    """After use through the public interface, and after precompile()."""
    count = int(run_python(SIGNATURES, path=PACKAGE.parent))
    assert count >= 40


def test_every_kernel_is_registered_under_its_name():
    from fastshuffle._kernels._jit import REGISTRY  # noqa: PLC0415

    for name, (dispatcher, signature) in REGISTRY.items():
        function = getattr(dispatcher, "py_func", dispatcher)
        assert name == f"{function.__module__}.{function.__name__}"
        assert signature.startswith("(")
        assert signature.endswith(")")
        # the digest was only for the name of the cache file
        assert function.__qualname__ == function.__name__
    stems = {name.split(".")[-2] for name in REGISTRY}
    sources = {path.stem for path in KERNELS.glob("*.py") if not path.stem.startswith("_")}
    assert stems <= sources


def test_nothing_to_precompile_without_the_jit():
    code = "from fastshuffle._kernels import _jit; print(_jit.precompile(), len(_jit.REGISTRY) > 0)"
    assert run_python(code, path=PACKAGE.parent, NUMBA_DISABLE_JIT=1) == "0 True"


# ---- No stale machine code -------------------------------------------------------------------


def test_an_edit_to_any_file_changes_the_digest_of_all(tmp_path):
    folder = tmp_path / "kernels"
    folder.mkdir()
    for path in KERNELS.glob("*.py"):
        shutil.copy(path, folder)
    gate = load_gate(folder)
    digests = {gate._DIGEST}
    assert gate._source_digest() == gate._DIGEST
    assert len(gate._DIGEST) == 12
    for path in sorted(folder.glob("*.py")):
        with path.open("a") as file:
            file.write("\n")
        digests.add(gate._source_digest())
    (folder / "error_free.py").rename(folder / "free_error.py")
    digests.add(gate._source_digest())
    (folder / "one_more.py").write_text("")
    digests.add(gate._source_digest())
    assert len(digests) == len(list(folder.glob("*.py"))) + 2


HELPER = """
from kernels._jit import kernel

@kernel("(float64,)")
def scale(x):
    return {factor} * x
"""
CALLER = """
from kernels._jit import kernel
from kernels.helper import scale

@kernel("(float64,)")
def shifted(x):
    return scale(x) + 1.0
"""


def test_an_edit_to_a_helper_in_another_file_is_seen(tmp_path):
    """Numba's own stamp covers the caller's file alone, and would return the old number."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    shutil.copy(KERNELS / "_jit.py", folder)
    (folder / "caller.py").write_text(CALLER)
    code = (
        "from kernels.caller import shifted; "
        "print(shifted(1.0), sum(shifted.stats.cache_hits.values()))"
    )
    printed = []
    for factor in (2.0, 2.0, 3.0):
        (folder / "helper.py").write_text(HELPER.format(factor=factor))
        printed.append(run_python(code, path=tmp_path, NUMBA_CACHE_DIR=tmp_path / "cache"))
    # compiled, taken from the cache, compiled anew
    assert printed == ["3.0 0", "3.0 1", "4.0 0"]


def test_what_was_precompiled_is_not_compiled_again(tmp_path):
    """The cache entry has to be found by a later call, which brings types and no string."""
    folder = tmp_path / "kernels"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    shutil.copy(KERNELS / "_jit.py", folder)
    (folder / "helper.py").write_text(HELPER.format(factor=2.0))
    (folder / "caller.py").write_text(CALLER)
    fill = "from kernels import _jit, caller; print(_jit.precompile())"
    assert run_python(fill, path=tmp_path, NUMBA_CACHE_DIR=tmp_path / "cache") == "2"
    call = (
        "from kernels.caller import shifted; shifted(1.0); stats = shifted.stats; "
        "print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))"
    )
    assert run_python(call, path=tmp_path, NUMBA_CACHE_DIR=tmp_path / "cache") == "1 0"


# ---- Life without a cache --------------------------------------------------------------------

UNCACHED = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import fastshuffle
    from fastshuffle._kernels.error_free import two_product
    from fastshuffle._kernels.deviance import deviance
for warning in caught:
    print(warning.category.__name__, str(warning.message))
product, error = two_product(1e15, 0.1)
assert product == 1e14 and abs(error - 0.005551115123125783) < 1e-17
assert abs(deviance(1.0) - 0.38629436111989061883) < 1e-15
"""


@pytest.fixture
def package_without_pycache(tmp_path):
    """Copy the package, with a file where every folder of compiled code would be."""
    shutil.copytree(PACKAGE, tmp_path / "fastshuffle", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [path.parent for path in (tmp_path / "fastshuffle").rglob("*.py")]:
        (folder / "__pycache__").write_text("in the way")
    return tmp_path


def test_no_writable_folder_costs_one_warning(package_without_pycache):
    """A path below a file cannot be created by anyone, root included."""
    path = package_without_pycache
    nowhere = path / "fastshuffle" / "__pycache__" / "below"
    printed = run_python(
        UNCACHED, path=path, NUMBA_CACHE_DIR=nowhere, HOME=nowhere, XDG_CACHE_HOME=nowhere
    )
    warned = printed.splitlines()
    assert len(warned) == 1
    assert warned[0].startswith("RuntimeWarning no writable folder for compiled kernels")
    assert "NUMBA_CACHE_DIR" in warned[0]


def test_a_read_only_installation_uses_the_cache_of_the_user(package_without_pycache):
    path = package_without_pycache
    home = path / "home"
    printed = run_python(
        UNCACHED, path=path, NUMBA_CACHE_DIR="", HOME=home, XDG_CACHE_HOME=home / "cache"
    )
    assert printed == ""
    assert list(home.rglob("*.nbi"))


def test_other_errors_of_the_compiler_are_not_swallowed(monkeypatch):
    gate = load_gate(KERNELS)

    def refuse(*_arguments, **_options):
        raise RuntimeError("something else is wrong")

    monkeypatch.setattr(gate.numba, "njit", refuse)

    def function(x):
        return x

    with pytest.raises(RuntimeError, match="something else is wrong"):
        gate.kernel("(float64,)")(function)
    assert function.__qualname__.endswith("function")
    assert gate.REGISTRY == {}
