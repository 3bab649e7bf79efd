"""The vocabulary of case files: everything that case authors import.

This package imports nothing else of the project, needs the standard library, NumPy and jax
alone, and runs on Python >= 3.10 and jax >= 0.4.30. Importing it does not import jax.
"""

from conformance.kit.case import (
    CaseError,
    Observed,
    Program,
    Raises,
    Unsupported,
    budget,
    defaults,
    deviation,
    probe,
    program,
    raises,
)

__all__ = [
    "CaseError",
    "Observed",
    "Program",
    "Raises",
    "Unsupported",
    "budget",
    "defaults",
    "deviation",
    "probe",
    "program",
    "raises",
]
