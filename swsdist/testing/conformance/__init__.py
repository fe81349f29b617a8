"""Conformance suites for each kind of plug-in.

    from swsdist.testing.conformance import check_extractor, check_distance

    def test_mine():
        check_extractor(Mine(some_option=3))
        check_distance("mine")

They need no test framework: a failure is an AssertionError with its cause. Plug-ins checked by name are registered: an
entry point of an installed package, or added for the process (``DISTANCES.add("mine", ENTRY)``).
"""

from swsdist.testing.conformance.backend import check_backend
from swsdist.testing.conformance.calibration import check_step
from swsdist.testing.conformance.chain import check_chain
from swsdist.testing.conformance.discovery import check_discovery_measure
from swsdist.testing.conformance.distance import check_distance
from swsdist.testing.conformance.executor import check_executor
from swsdist.testing.conformance.export import check_export
from swsdist.testing.conformance.extractor import check_extractor, check_precomputed
from swsdist.testing.conformance.first_pass import check_first_pass
from swsdist.testing.conformance.lattices import check_lattice_format
from swsdist.testing.conformance.lists import check_reader, check_writer
from swsdist.testing.conformance.measures import check_measure
from swsdist.testing.conformance.method import check_method
from swsdist.testing.conformance.recogniser import check_recogniser
from swsdist.testing.conformance.recurrence import check_recurrence
from swsdist.testing.conformance.transform import check_fitted, check_transform

__all__ = [
    "check_backend",
    "check_chain",
    "check_discovery_measure",
    "check_distance",
    "check_executor",
    "check_export",
    "check_extractor",
    "check_first_pass",
    "check_fitted",
    "check_lattice_format",
    "check_measure",
    "check_method",
    "check_precomputed",
    "check_reader",
    "check_recogniser",
    "check_recurrence",
    "check_step",
    "check_transform",
    "check_writer",
]
