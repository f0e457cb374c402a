"""The README's example prints what it says."""

import doctest
import re
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def example() -> doctest.DocTest:
    (block,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    return doctest.DocTestParser().get_doctest(block, {}, "README.md", "README.md", 0)


def test_the_example_prints_what_the_readme_shows():
    runner = doctest.DocTestRunner()
    runner.run(example())
    assert runner.summarize(verbose=False) == (0, len(example().examples))


def test_the_example_has_at_most_ten_lines():
    assert 5 <= len(example().examples) <= 10
