"""Golden cases: inputs with the answers that other programs, or formulas, gave for them; and the runner that tries them.

`python -m swsdist.testing.golden DIR...` runs every case below the folders. A case is a folder with inputs, `params.json` and
`expected.json`; what shapes of folders are known is `tests.support.golden.runner.GROUPS`. Any file of a case may be packed
(`.xz`).
"""

from tests.support.golden.runner import GROUPS, Case, Difference, cases_below, run_case

__all__ = ["GROUPS", "Case", "Difference", "cases_below", "run_case"]
