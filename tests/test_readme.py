"""The README's examples print what it says."""

import doctest
import re
from pathlib import Path

import pytest

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
EXAMPLES = [
    doctest.DocTestParser().get_doctest(block, {}, "README.md", "README.md", 0)
    for block in re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
]


def test_there_are_examples():
    assert len(EXAMPLES) == 2


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_examples_print_what_the_readme_shows(example):
    runner = doctest.DocTestRunner()
    runner.run(example, clear_globs=False)
    assert runner.summarize(verbose=False) == (0, len(example.examples))


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_has_at_most_ten_lines(example):
    assert 5 <= len(example.examples) <= 10
