"""StableHLO for other platforms, on an old and on the newest release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.model.outcome import Outcome
from conformance.model.value import decode_value, to_array

if TYPE_CHECKING:
    from tests.workbench import Bench

pytestmark = pytest.mark.cell
TOP = "import jax, jax.numpy as jnp\n"
CROSS = {"stablehlo-tpu", "stablehlo-cuda", "stablehlo-rocm"}


def test_the_same_module_is_the_same_text(bench: Bench) -> None:
    """Also its locations, so that it is stored and analysed once."""
    body = "return Program(lambda x: jnp.sin(x) @ x, (np.ones((2, 2), np.float32),))"
    finished = bench.run(body, "program()", TOP)
    assert finished.error is None
    own = finished.blobs["stablehlo"]
    assert {name for name, blob in finished.blobs.items() if blob == own} == {"stablehlo", *CROSS}
    assert finished.seconds["cross_lower"] > 0


def test_a_branch_for_a_platform_is_in_its_text_alone(bench: Bench) -> None:
    """The StableHLO of each platform has its own branch, with locations."""
    body = """
        def by_platform(x):
            return jax.lax.platform_dependent(x, tpu=jnp.sin, cuda=jnp.cos, default=jnp.tanh)
        return Program(by_platform, (np.float32([1]),))
    """
    blobs = bench.run(body, "program()", TOP).blobs
    texts = {name: blobs[name].decode() for name in ("stablehlo", *CROSS)}
    assert len(set(texts.values())) == 3
    assert '"stablehlo.sine"(' in texts["stablehlo-tpu"]
    assert '"stablehlo.cosine"(' in texts["stablehlo-cuda"]
    assert all("topic.py" in text for text in texts.values())
    assert texts["stablehlo-rocm"] == texts["stablehlo"]


def test_a_failed_lowering_leaves_its_reason(bench: Bench) -> None:
    """The program is unaffected, and so are other platforms."""
    body = """
        def by_platform(x):
            return jax.lax.platform_dependent(x, cpu=jnp.sin, tpu=jnp.cos)
        return Program(by_platform, (np.float32([1]),))
    """
    finished = bench.run(body, "program()", TOP)
    assert finished.outcome is Outcome.OK
    assert {"stablehlo", "stablehlo-tpu", "hlo", "value"} <= set(finished.blobs)
    assert "stablehlo-cuda" not in finished.blobs
    assert b"Error: " in finished.blobs["no_stablehlo-cuda"]


def test_a_refused_program_is_still_lowered_for_others(bench: Bench) -> None:
    """The error of the job is that of the cell's platform."""
    body = """
        def by_platform(x):
            return jax.lax.platform_dependent(x, tpu=jnp.sin, cuda=jnp.cos)
        return Program(by_platform, (np.float32([1]),))
    """
    finished = bench.run(body, "program()", TOP)
    assert finished.outcome is Outcome.RAISED
    assert "stablehlo" not in finished.blobs
    assert b'"stablehlo.sine"(' in finished.blobs["stablehlo-tpu"]
    assert b'"stablehlo.cosine"(' in finished.blobs["stablehlo-cuda"]


def test_warnings_are_not_repeated_for_each_platform(bench: Bench) -> None:
    """A useless donation is warned of once, as without cross-lowering."""
    body = """
        warnings.simplefilter("always")
        said = []
        warnings.showwarning = lambda *told, **_: said.append(told)
        donating = dict(args=(np.ones(8, np.float32),), jit={"donate_argnums": 0})
        return Program(lambda x: x.sum(), **donating, reference=lambda x: np.int32(len(said)))
    """
    finished = bench.run(body, "program()", TOP + "import warnings\n")
    assert finished.error is None
    (count,) = decode_value(finished.blobs["reference"]).leaves
    assert to_array(count) == 1
