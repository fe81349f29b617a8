"""Conformance suites for each kind of plug-in.

    from swsdist.testing.conformance import check_extractor, check_distance

    def test_mine():
        check_extractor(Mine(some_option=3))
        check_distance("mine")

They need no test framework: a failure is an AssertionError with its cause. Plug-ins checked by name are registered: an
entry point of an installed package, or added for the process (``DISTANCES.add("mine", ENTRY)``).
"""

from swsdist.testing.conformance.calibration import check_step
from swsdist.testing.conformance.chain import check_chain
from swsdist.testing.conformance.discovery import check_discovery_measure
from swsdist.testing.conformance.distance import check_distance, check_recurrence
from swsdist.testing.conformance.entry import check_backend, check_first_pass, check_method
from swsdist.testing.conformance.executor import check_executor
from swsdist.testing.conformance.export import check_export, check_reader, check_writer
from swsdist.testing.conformance.extractor import check_extractor, check_fitted, check_precomputed, check_transform
from swsdist.testing.conformance.lattices import check_lattice_format, check_recogniser
from swsdist.testing.conformance.measures import check_measure

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
