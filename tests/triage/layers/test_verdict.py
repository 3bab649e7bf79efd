"""The layer behind a difference, from written recordings and repetitions."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from conformance.judge.tolerance import Tolerance
from conformance.triage.layers.answer import Layer, LayerAnswer, refine_layer
from conformance.triage.layers.recording import BLOBS, CallError, Recording, Replay
from conformance.triage.layers.render import make_layer_json, render_layer
from conformance.triage.layers.verdict import PAIRS, LayerJudge
from tests.ir.jaxpr.documents import document, eqn, jaxpr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

REGISTRY = "No registered implementation for custom call to lapack_spotrf for Host"


class Written:
    """Recordings and repetitions that a test writes.

    Args:
        folder: Folder of all of them.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lines: dict[str, list[dict[str, Any]]] = {}

    def store(self, place: str, content: bytes) -> str:
        """Write a content, and return its digest."""
        digest = hashlib.sha256(content).hexdigest()
        path = self.folder / place / BLOBS / digest
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return digest

    def array(self, place: str, *values: float) -> dict[str, Any]:
        """Return an array on one device."""
        data = np.asarray(values, np.float32)
        return {"shape": [len(values)], "dtype": "float32",
                "shards": [self.store(place, data.tobytes())]}  # fmt: skip

    def call(self, side: int, name: str = "jit_f", given: float = 0.0, **more: Any) -> None:
        """Add a call to the recording of the good (0) or the bad (1) release."""
        place = f"recorded{side}"
        lines = self._lines.setdefault(place, [])
        inputs = [self.array(place, given)] if "error" not in more else []
        line = {"number": len(lines) + 1, "name": name, "inputs": inputs, **more}
        lines.append(line)

    def result(self, producer: int, compiler: int, *values: float, number: int = 1,
               error: str = "") -> None:  # fmt: skip
        """Add the result of repeating a call."""
        place = f"repeated{producer}{compiler}"
        line: dict[str, Any] = {"number": number, "outputs": [self.array(place, *values)]}
        if error:
            line = {"number": number, "error": {"type": "XlaRuntimeError", "message": error}}
        self._lines.setdefault(place, []).append(line)

    def judge(
        self, ends: Sequence[CallError | None] = (None, None), tolerance: Tolerance | None = None
    ) -> LayerAnswer:
        """Return the layer."""
        for place, lines in self._lines.items():
            name = "computations.jsonl" if place.startswith("recorded") else "results.jsonl"
            (self.folder / place).mkdir(parents=True, exist_ok=True)
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (self.folder / place / name).write_text(text)
        recordings = [Recording(self.folder / f"recorded{side}") for side in (0, 1)]
        replays: Mapping[tuple[int, int], Replay] = {
            pair: Replay(self.folder / "repeated{}{}".format(*pair)) for pair in PAIRS
        }
        return LayerJudge(
            recordings=(recordings[0], recordings[1]), ends=(ends[0], ends[1]), replays=replays,
            tolerance=tolerance or Tolerance(),
        ).judge()  # fmt: skip


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Return recordings of two releases with one call each, and no repetition."""
    made = Written(tmp_path)
    for side in (0, 1):
        made.call(side)
    return made


def repeat(written: Written, *values: float | str) -> None:
    """Write the results of all combinations: good, crossed, crossed, bad."""
    for pair, value in zip(PAIRS, values, strict=True):
        if isinstance(value, str):
            written.result(*pair, error=value)
        else:
            written.result(*pair, value)


def test_compiler_is_the_layer_where_the_bad_compiler_gives_the_bad_result(
    written: Written,
) -> None:
    """With the modules of both producers."""
    repeat(written, 1, 2, 1, 2)
    answer = written.judge()
    assert answer.layer is Layer.COMPILER
    assert [one.kind for one in answer.table] == ["good", "bad", "good", "bad"]


@pytest.mark.parametrize(
    ("primitives", "layer"),
    [(("sin", "sin"), Layer.LOWERING), (("sin", "cos"), Layer.TRACING)],
)
def test_front_end_is_tracing_if_the_jaxprs_differ(
    tmp_path: Path, primitives: tuple[str, str], layer: Layer
) -> None:
    """Equal jaxprs leave the lowering."""
    written = Written(tmp_path)
    for side, primitive in enumerate(primitives):
        text = document(jaxpr(eqn(primitive, [0]), out=(1,)))
        written.call(side, jaxpr=written.store(f"recorded{side}", text.encode()))
    repeat(written, 1, 1, 2, 2)
    assert written.judge().layer is layer


@pytest.mark.parametrize("crossed", [(2, 2), (1, 1), (3, 4)])
def test_other_tables_are_an_interaction(written: Written, crossed: tuple[float, float]) -> None:
    """Both change it, neither alone does, or the mixtures are like neither."""
    repeat(written, 1, *crossed, 2)
    assert written.judge().layer is Layer.INTERACTION


def test_last_bits_are_attributed_as_well(written: Written) -> None:
    """A difference within the tolerance counts if there is no larger one."""
    more = float(np.nextafter(np.float32(1), np.float32(2)))
    repeat(written, 1, more, 1, more)
    assert written.judge().layer is Layer.COMPILER


def test_larger_difference_hides_one_of_last_bits(written: Written) -> None:
    """The first computation drifts because of the compiler, the second changes in front of it."""
    for side in (0, 1):
        written.call(side, "jit_g", 5.0)
    more = float(np.nextafter(np.float32(1), np.float32(2)))
    repeat(written, 1, more, 1, more)
    for pair, value in zip(PAIRS, (7, 7, 8, 8), strict=True):
        written.result(*pair, value, number=2)
    answer = written.judge()
    assert answer.layer is Layer.TRACING
    assert answer.call == "jit_g"


FALSE, NO = (CallError(type=kind, message="no") for kind in ("AssertionError", "TypeError"))


def test_error_outside_of_computations_is_of_whose_code_brings_it(written: Written) -> None:
    """If no computation with equal arguments gives another result."""
    repeat(written, 1, 1, 1, 1)
    answer = written.judge((None, NO))
    assert answer.layer is Layer.TRACING
    assert answer.reason == "TypeError before or outside of any computation"
    assert refine_layer(answer, Layer.OUTSIDE).layer is Layer.TRACING
    assert refine_layer(answer, Layer.PYTHON).layer is Layer.TRACING
    assert refine_layer(answer, Layer.RUNTIME).layer is Layer.RUNTIME


def test_assertion_says_nothing_about_the_layer_by_itself(tmp_path: Path) -> None:
    """It is one of the target: whose code brings it says more, unless computations differ."""
    written = Written(tmp_path)
    written.call(0)
    written.call(0, "jit_after_the_error")
    written.call(1)
    repeat(written, 1, 1, 1, 1)
    answer = written.judge((None, FALSE))
    assert answer.layer is Layer.OUTSIDE
    assert refine_layer(answer, Layer.PYTHON).layer is Layer.TRACING
    assert refine_layer(answer, Layer.RUNTIME).layer is Layer.RUNTIME
    written.call(1, "jit_of_one_release")
    answer = written.judge((None, FALSE))
    refined = refine_layer(answer, Layer.RUNTIME)
    assert refined.layer is Layer.NOT_SEPARABLE
    assert refined.reason.endswith("; jaxlib makes the difference")
    assert refine_layer(answer, Layer.PYTHON).layer is Layer.TRACING


@pytest.mark.parametrize(
    ("crossed", "layer"),
    [(("refused", 1.0), Layer.COMPILER), ((1.0, "refused"), Layer.TRACING),
     (("refused", "refused"), Layer.INTERACTION), ((REGISTRY, 1.0), Layer.NOT_SEPARABLE)],
)  # fmt: skip
def test_error_of_the_compiler_is_judged_like_a_value(
    tmp_path: Path, crossed: tuple[float | str, float | str], layer: Layer
) -> None:
    """An error that only means that a release cannot read the module separates nothing."""
    written = Written(tmp_path)
    written.call(0)
    error = {"type": "XlaRuntimeError", "message": "refused", "stage": "compile"}
    written.call(1, error=error)
    repeat(written, 1, *crossed, "refused")
    assert written.judge((None, CallError(**error))).layer is layer


def test_other_computations_are_of_the_front_end(tmp_path: Path) -> None:
    """If both compilers give the same results for them."""
    written = Written(tmp_path)
    written.call(0, "jit_old")
    written.call(1, "jit_new")
    repeat(written, 1, 1, 2, 2)
    assert written.judge().layer is Layer.TRACING


def test_other_computations_whose_compilers_differ_are_an_interaction(tmp_path: Path) -> None:
    """Then both may take part."""
    written = Written(tmp_path)
    written.call(0, "jit_old")
    written.call(1, "jit_new")
    repeat(written, 1, 3, 2, 2)
    assert written.judge().layer is Layer.INTERACTION


def test_equal_computations_leave_what_is_around_them(written: Written) -> None:
    """The Python code of jax, or the runtime: the jaxlib is swapped to separate these."""
    repeat(written, 1, 1, 1, 1)
    answer = written.judge()
    assert answer.layer is Layer.OUTSIDE
    assert refine_layer(answer, Layer.RUNTIME).layer is Layer.RUNTIME


def test_callback_is_not_separable(tmp_path: Path) -> None:
    """Never a guess: the reason is given."""
    written = Written(tmp_path)
    for side in (0, 1):
        written.call(side, reasons=["holds callbacks"])
    answer = written.judge()
    assert (answer.layer, answer.reason) == (Layer.NOT_SEPARABLE, "holds callbacks")
    refined = refine_layer(answer, Layer.RUNTIME)
    assert refined.layer is Layer.NOT_SEPARABLE
    assert refined.reason == "holds callbacks; jaxlib makes the difference"
    assert refine_layer(answer, Layer.PYTHON).layer is Layer.PYTHON


def test_name_of_an_unnamed_function_does_not_matter(tmp_path: Path) -> None:
    """Releases spell it in two ways."""
    written = Written(tmp_path)
    written.call(0, "jit__lambda_")
    written.call(1, "jit__lambda")
    repeat(written, 1, 2, 1, 2)
    assert written.judge().layer is Layer.COMPILER


def test_answer_in_words_and_json(written: Written) -> None:
    """A table of producers and compilers."""
    repeat(written, 1, 2, 1, 2)
    answer = written.judge()
    lines = [*render_layer(answer, "0.10.1", "0.10.2")]
    assert lines[0].startswith("layer: compiler (")
    assert "  StableHLO of 0.10.1  XLA of 0.10.2  like bad" in lines
    data = make_layer_json(answer, "0.10.1", "0.10.2")
    assert data["table"][1] == {
        "producer": "0.10.1", "compiler": "0.10.2", "outcome": "bad", "signature": "like bad",
    }  # fmt: skip
