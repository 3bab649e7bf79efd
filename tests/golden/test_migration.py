"""Converting goldens of format 1: the same records in files that read in a pull request."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.golden.document import GoldenError
from conformance.golden.migration import migrate_goldens
from conformance.golden.store import GoldenStore
from conformance.ir.analysis import analyse
from conformance.ir.normal.text import VERSION
from conformance.model.value import encode_value
from tests.builders import case, f32

if TYPE_CHECKING:
    from pathlib import Path

CASE = case()
OTHER = case("family/other")
HLO = """HloModule jit_f

ENTRY main {
  x = f32[4]{0} parameter(0)
  ROOT r = f32[4]{0} multiply(x, x)
}
"""
ANALYSIS = analyse(HLO, "hlo", with_text=True)
CONTENTS = {
    "error": b"normaliser: 3\noutcome: raised\nstage: trace\ntype: TypeError\n\nbad shape\n",
    "value": encode_value(f32(1, 2)),
    "ok": b"ended well, without a value\n",
    "facts": json.dumps({"collectives": {}, "normal form": VERSION}).encode(),
    "hlo": ANALYSIS.text.encode(),
}
SUFFIXES = {"value": "safetensors", "facts": "json"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder of cases with goldens of format 1; two cases share a value."""
    topic = tmp_path / "family/golden/topic"
    topic.mkdir(parents=True)
    names = {}
    for artifact, data in CONTENTS.items():
        # Names had 8 hex digits at first, and 32 later.
        digits = 8 if artifact == "error" else 32
        digest = hashlib.sha256(data).hexdigest()[:digits]
        names[artifact] = f"{artifact}-{digest}.{SUFFIXES.get(artifact, 'txt')}"
        (topic / names[artifact]).write_bytes(data)
    (topic / "name.toml").write_text(
        f'format = 1\ncase = "{CASE.id}"\n\n'
        f'[cpu.value]\n"0.6.0..0.8.3" = "{names["value"]}"\n\n'
        f'[cpu.error]\n"0.4.30..0.5.3" = "{names["error"]}"\n\n'
        f'[cpu.facts]\n"0.6.0" = "{names["facts"]}"\n\n'
        f'[cpu.hlo]\n"0.6.0" = "{names["hlo"]}"\n\n'
        f'[cpu.stablehlo-tpu]\n"0.6.0" = "stablehlo"\n\n'
        f'[cpu.hlo-structure]\n"0.6.0" = "{VERSION}:{ANALYSIS.exact}"\n\n'
        f'["tpu:v5e:2x2".ok]\n"0.6.0" = "{names["ok"]}"\n'
    )
    (topic / "other.toml").write_text(
        f'format = 1\ncase = "{OTHER.id}"\n\n[cpu.value]\n"0.6.0" = "{names["value"]}"\n'
    )
    return tmp_path


def test_the_records_stay_the_same(root: Path) -> None:
    """Before the conversion the goldens are tainted; after it every entry is found."""
    before = GoldenStore(root).lookup(CASE, "cpu", "0.6.0")
    assert before is not None
    assert before.tainted
    migrate_goldens([replace(case, home=root) for case in (CASE, OTHER)])
    store = GoldenStore(root)
    old, new, tpu = (
        store.lookup(CASE, variant, release)
        for variant, release in (("cpu", "0.5.0"), ("cpu", "0.7.0"), ("tpu:v5e:2x2", "0.6.0"))
    )
    assert old is not None
    assert new is not None
    assert tpu is not None
    assert old.error is not None
    assert (old.span, old.error.message) == ("0.4.30..0.5.3", "bad shape")
    assert (new.span, new.value, new.facts) == ("0.6.0..0.8.3", f32(1, 2), {"collectives": {}})
    hlo = new.ir["hlo"]
    assert (hlo.canonical, hlo.exact, hlo.text) == (
        ANALYSIS.canonical, ANALYSIS.exact, ANALYSIS.text,
    )  # fmt: skip
    assert (tpu.value, tpu.error) == (None, None)


def test_each_case_has_its_own_readable_files(root: Path) -> None:
    """The files of format 1 are removed."""
    converted, removed = migrate_goldens([replace(case, home=root) for case in (CASE, OTHER)])
    topic = root / "family/golden/topic"
    assert (converted, len(removed)) == (2, 7)
    assert sorted(str(file.relative_to(topic)) for file in topic.rglob("*") if file.is_file()) == [
        "name/error.txt", "name/facts.json", "name/hlo.txt", "name/spans.toml", "name/value.txt",
        "other/spans.toml", "other/value.txt",
    ]  # fmt: skip


def test_the_conversion_can_be_repeated(root: Path) -> None:
    """The second time there is nothing to convert."""
    migrate_goldens([replace(case, home=root) for case in (CASE, OTHER)])
    assert migrate_goldens([replace(case, home=root) for case in (CASE, OTHER)]) == (0, ())


def test_contents_of_a_case_that_is_not_converted_stay(root: Path) -> None:
    """A document may belong to a case that no longer exists."""
    _, removed = migrate_goldens([replace(CASE, home=root)])
    left = {file.name.partition("-")[0] for file in root.glob("family/golden/topic/*.*")}
    assert left == {"other.toml", "value"}
    assert not any(file.name.startswith("value-") for file in removed)


@pytest.mark.parametrize("artifact", ["error", "value", "hlo"])
def test_a_damaged_content_stops_the_conversion(root: Path, artifact: str) -> None:
    """Nothing is removed: version control has the content, and the conversion can be repeated."""
    topic = root / "family/golden/topic"
    (file,) = topic.glob(f"{artifact}-*")
    file.write_bytes(b"damaged")
    before = {path for path in topic.iterdir() if path.is_file()}
    with pytest.raises(GoldenError, match=rf"{file.name}: content hashes to"):
        migrate_goldens([replace(case, home=root) for case in (CASE, OTHER)])
    assert before == {path for path in topic.iterdir() if path.is_file()}


def test_a_malformed_document_is_an_error(root: Path) -> None:
    """The message names it."""
    document = root / "family/golden/topic/name.toml"
    document.write_text(document.read_text().replace(CASE.id, OTHER.id))
    with pytest.raises(GoldenError, match=r"name\.toml: format 1 of case 'family/other', expected"):
        migrate_goldens([replace(CASE, home=root)])
