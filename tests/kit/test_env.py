"""The environment of a case on a compile-only platform: a TPU without hardware."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.model.value import decode_value, to_array
from tests.workbench import Bench, planned_cell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.cell
SHARDED = """
sharding = jax.sharding.NamedSharding(env.mesh(4, "x"), jax.sharding.PartitionSpec("x"))
x = env.put(np.arange(8, dtype=np.float64), sharding)
return Program(lambda pair: pair[0] + 1, ([x, 2.0],), reference=lambda pair: pair[0] + pair[1])
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A worker of a compile-only TPU cell."""
    cell = planned_cell("jax0.10.2-py311-tpu.v5e.2x2")
    with Bench(cell, tmp_path_factory.mktemp("cases")) as bench:
        yield bench


def test_reference_gets_the_values_given_to_put(bench: Bench, tmp_path: Path) -> None:
    """The program gets descriptions, the reference gets values."""
    finished = bench.at(tmp_path).run(SHARDED, "program()", "import jax")
    assert finished.error is None
    (leaf,) = decode_value(finished.blobs["reference"]).leaves
    assert to_array(leaf).tolist() == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    assert b"devices=[4]<=[4]" in finished.blobs["hlo"]
