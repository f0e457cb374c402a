"""One file for each theorem or close family of them.

A file has ``CLAIMS``, the statements with their sources and recorded verdicts, and
``measure(quick=)``, which returns a finding for each. What is measured is exact: sums over the
whole law, in fractions, in float64 by positive terms, or by the package. The limit a claim states
is written out here from its definition, so that no claim is judged by the code under test.
"""
