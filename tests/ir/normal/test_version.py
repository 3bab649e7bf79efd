"""The version of the normal forms identifies their fingerprints."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from conformance.ir.analysis import analyse
from conformance.ir.normal.text import VERSION
from tests.ir.jaxpr.documents import SAMPLES as JAXPRS

SAMPLES = Path(__file__).parents[1] / "samples"
KINDS = {".hlo": "hlo", ".generic": "stablehlo", ".json": "jaxpr"}
LARGEST = 20_000
YIELDED = {1: "832a8e38e97a332c"}
"""A digest of the fingerprints of the samples, by version."""


def test_a_version_has_constant_fingerprints() -> None:
    """Goldens and cached records of a version are compared without a second look.

    When this fails on purpose: raise `VERSION`, record the new digest here, and accept the goldens
    of a new run of the matrix `releases`.
    """
    digest = sha256()
    for file in sorted([*SAMPLES.rglob("*.hlo"), *SAMPLES.rglob("*.generic"), *JAXPRS]):
        if file.stat().st_size < LARGEST:
            found = analyse(file.read_text(encoding="utf-8"), KINDS[file.suffix])
            digest.update(f"{file.name} {found.exact} {found.canonical}\n".encode())
    assert digest.hexdigest()[:16] == YIELDED[VERSION]
