"""Texts of programs, on an old and on the newest release."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.workbench import Bench

pytestmark = pytest.mark.cell
TOP = """
    import jax, jax.numpy as jnp
    from pathlib import Path
    from jax.sharding import NamedSharding, PartitionSpec as P
    from conformance.worker import capture
    TABLE = np.square(np.arange(4096, dtype=np.float32))  # a plain arange becomes an iota
"""


def capture_texts(bench: Bench, body: str, decorator: str = "program()") -> dict[str, str]:
    """Return the texts that a program leaves."""
    finished = bench.run(body, decorator, TOP)
    assert finished.error is None, finished.error
    return {name: data.decode() for name, data in finished.blobs.items() if name != "value"}


def layout_of(bench: Bench, body: str, decorator: str = "program()") -> dict[str, Any]:
    """Return where a program's inputs and outputs lie."""
    layout: dict[str, Any] = json.loads(capture_texts(bench, body, decorator)["layout"])
    return layout


def test_large_constants_are_printed(bench: Bench) -> None:
    """`as_text()` elides them, and would hide a change of a value."""
    texts = capture_texts(bench, "return Program(lambda x: x + TABLE, (TABLE,))")
    assert "{...}" not in texts["hlo"]
    assert "16769025" in texts["hlo"]
    assert "dense_resource" not in texts["stablehlo"]


def test_constants_beyond_the_limit_are_elided(bench: Bench) -> None:
    """They are counted first: printing them could take gigabytes."""
    body = "capture.LARGEST_HLO = 1000; return Program(lambda x: x + TABLE, (TABLE,))"
    assert "{...}" in capture_texts(bench, body)["hlo"]


def test_stablehlo_is_generic_and_has_locations(bench: Bench) -> None:
    """The form that a parser reads without knowing the dialects."""
    text = capture_texts(bench, "return Program(lambda x: x + 1, (TABLE,))")["stablehlo"]
    assert '"builtin.module"()' in text
    assert '"stablehlo.add"(' in text
    assert "topic.py" in text


def test_an_unused_input_has_no_sharding(bench: Bench) -> None:
    """Its neighbours keep theirs; None is no array."""
    body = """
        mesh = env.mesh(2, "x")
        x = jax.device_put(np.float32([1, 2]), NamedSharding(mesh, P("x")))
        y = jax.device_put(np.float32([1, 2]), NamedSharding(mesh, P()))
        return Program(lambda none, unused, x, y: (x + y, None, 3), (None, x, x, y),
                       jit={"donate_argnums": 2})
    """
    layout = layout_of(bench, body, "program(devices=2)")
    assert layout["inputs"] == [None, "tiles[0=0:1 1=1:2]", "replicated[2]"]
    assert layout["outputs"] == ["tiles[0=0:1 1=1:2]", "replicated[2]"]
    assert layout["donated"] == [False, True, False]
    memory = "unpinned_host" if bench.planned.release == "0.5.3" else "device"
    assert layout["input_memories"] == [None, memory, memory]
    assert layout["output_memories"] == [memory, memory]


def test_keys_have_a_sharding_too(bench: Bench) -> None:
    """Of the key's own shape, not of its key data."""
    body = "return Program(lambda k: jax.random.split(k, 3), (jax.random.key(0),))"
    layout = layout_of(bench, body)
    assert (layout["inputs"], layout["outputs"]) == (["single"], ["single"])


HIDDEN = """
    class Hidden:
        def __init__(self, compiled): self.compiled = compiled
        def __getattr__(self, name): return getattr(self.compiled, name)
        {hides}
    lowered = jax.jit(lambda x: jnp.sin(x) + TABLE).lower(TABLE)
    compiled = Hidden(lowered.compile())
"""


def render_hidden(bench: Bench, hides: str) -> bytes:
    """Return the HLO of an executable that hides something."""
    body = HIDDEN.format(hides=hides) + (
        "    text = capture.render_hlo(lowered, compiled)\n"
        "    return Observed(0, artifacts={'hlo': text})\n"
    )
    finished = bench.run(body, top=TOP)
    assert finished.error is None, finished.error
    return finished.blobs["hlo"]


def test_hlo_that_is_hidden_is_dumped(bench: Bench) -> None:
    """A compile-only backend may give no text, but dumps it."""
    text = render_hidden(bench, "def as_text(self): return None")
    assert text.startswith(b"HloModule jit")
    assert b"sine(" in text
    assert b"{...}" not in text


def test_after_a_hidden_text_xla_dumps_at_once(bench: Bench) -> None:
    """Programs are compiled once; without a dump they are compiled as usual."""
    body = HIDDEN.format(hides="def as_text(self): return None") + (
        "    asked = []\n"
        "    def compile_(program, options=None):\n"
        "        asked.append(sorted(options or {}))\n"
        "        return Hidden(program.compile(compiler_options=options))\n"
        "    first = capture.compile_with_text(lowered, compile_)[1]()\n"
        "    again = capture.compile_with_text(lowered, compile_)[1]()\n"
        "    assert asked[0] == [], asked\n"
        "    assert len(asked) == 2 and 'xla_dump_to' in asked[1], asked\n"
        "    def refuse(program, options=None):\n"
        "        if options: raise RuntimeError('no such option')\n"
        "        return program.compile()\n"
        "    _, tell = capture.compile_with_text(lowered, refuse)\n"
        "    return Observed(0, artifacts={'first': first, 'again': again, 'refused': tell()})\n"
    )
    finished = bench.run(body, top=TOP)
    assert finished.error is None, finished.error
    blobs = finished.blobs
    bare = [blobs[name].split(b"\n", 1)[1] for name in ("first", "again")]
    assert bare[0] == bare[1]
    assert b"sine(" in blobs["refused"]


def test_an_executable_without_modules_gives_its_text(bench: Bench) -> None:
    """One of several processes, or one that was deserialised, may keep them to itself."""
    text = render_hidden(bench, "def runtime_executable(self): raise RuntimeError('not here')")
    assert b"sine(" in text


def test_the_last_dumped_module_is_read(bench: Bench) -> None:
    """By number, not by name; other dumps of the module are ignored."""
    body = """
        folder = Path("dump")
        folder.mkdir()
        for name in ("module_0009.a.sm_9.0_gpu", "module_0010.b.cpu"):
            (folder / f"{name}_after_optimizations.txt").write_text(name)
            (folder / f"{name}_after_optimizations-buffer-assignment.txt").write_text("no")
        found = capture.read_hlo_dump(folder)
        try:
            capture.read_hlo_dump(Path())
        except capture.UnavailableError as error:
            return Observed(0, artifacts={"found": found, "none": str(error)})
    """
    finished = bench.run(body, top=TOP)
    assert finished.blobs["found"] == b"module_0010.b.cpu"
    assert b"dumped no after_optimizations.txt" in finished.blobs["none"]
