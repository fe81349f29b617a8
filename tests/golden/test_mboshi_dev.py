"""What the first version found on an hour of real speech is what is found now, value for value.

The constants were recorded at commit bff4165, and that of the features when MFCC had the same bytes on any type of CPU.
"""

from collections.abc import Iterable

import pyarrow as pa
import pytest

import swsdist
from swsdist import RunResult
from swsdist.store.reading import of_rows

COLUMNS = ["query_id", "doc_id", "channel", "start", "end", "score", "decision"]

RECORDED = {
    "detections": "804cee53c25521b0fcc0fc92c5a733f0ab35651955c7cd845ecf6330957adc14",
    "normalised": "5dd5d7af364b9b1772c87646208fb9e5a127e0cf1583fa84c35f3b125c1c4164",
    "scored": "d5851b2837538df64a41de4d313a40f18adfefc0bf2a5053234b62b2986fb7c8",
    "trials": "25b633284bd4dc6b87c1cf6e0564f35985c6a2fa38d22c550a662aaed429b191",
}

#: Of the store.
FEATURES = "4188e1af870002cd8838deef1e775856a4b2365a019003355283271de709b59f"

MEASURES = {
    "mtwv": 0.13222747345716446,
    "mtwv_threshold": 3.5021582182213815,
    "mtwv_pmiss": 0.7827327873651402,
    "mtwv_pfa": 0.0012757874557837977,
    "atwv": 0.12866933514934698,
    "atwv_pmiss": 0.7868994540318069,
    "atwv_pfa": 0.0012666581610068423,
}


def digest(parts: Iterable[pa.Table]) -> str:
    """SHA-256 of the rows in one order, columns that every version has."""
    table = pa.concat_tables(parts).select(COLUMNS)
    return of_rows(table.sort_by([(name, "ascending") for name in COLUMNS[:-1]]))


@pytest.mark.slow
def test_rows_and_measures_are_what_they_were(mboshi_dev: RunResult) -> None:
    chain_run, measures = mboshi_dev.outcome.chain_run, mboshi_dev.measures()
    assert swsdist.digest(mboshi_dev.folder)["features"] == FEATURES
    assert {name: digest(chain_run.read(name)) for name in RECORDED} == RECORDED
    assert {name: measures[name] for name in MEASURES} == MEASURES
