"""Locks of other tools, read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cells.foreign_lock import read_foreign_pins
from conformance.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = """\
# made by a tool
jax==0.6.2
ML_dtypes==0.5.1  # via jax
numpy==2.0.2 ; python_version >= "3.10" \\
    --hash=sha256:00
uvicorn[standard]==0.30.0
-e ./my-package
scipy>=1.10
"""
TABLES = """\
version = 1

[[package]]
name = "jax"
version = "0.6.2"

[[package]]
name = "my-package"
source = { editable = "." }

[[package]]
name = "ml_dtypes"
version = "0.5.1"
"""


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("requirements.txt", PLAIN, {"numpy": "2.0.2", "uvicorn": "0.30.0"}),
        ("uv.lock", TABLES, {}),
        ("poetry.lock", TABLES, {}),
        ("pylock.toml", TABLES.replace("[[package]]", "[[packages]]"), {}),
    ],
)
def test_what_is_pinned(tmp_path: Path, name: str, text: str, more: dict[str, str]) -> None:
    """Exact versions by normalised name; the rest is passed over."""
    file = tmp_path / name
    file.write_text(text)
    assert read_foreign_pins(file) == {"jax": "0.6.2", "ml-dtypes": "0.5.1", **more}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("requirements.txt", b"jax>=0.6\n", "pins no package, expected lines like jax==0.6.2"),
        ("pylock.toml", b"packages = 3\n", "pins no package"),
        ("uv.lock", b"[[package\n", "expected TOML"),
        ("requirements.txt", b"\xff\xfe", "cannot be read: no text; expected a lock"),
    ],
)
def test_what_is_no_lock(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    """One error that names the file."""
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(UsageError, match=said) as refused:
        read_foreign_pins(file)
    assert str(refused.value).startswith(f"{file}: ")
