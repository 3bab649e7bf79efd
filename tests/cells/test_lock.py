"""Locks of this project, and those of other tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cells.lock import read_foreign_pins, read_lock
from conformance.errors import InfrastructureError, UsageError

FILE = next((Path(__file__).parents[2] / "matrix" / "locks").glob("jax0.6.2-py311.txt"))
WHOLE = FILE.read_text()


@pytest.mark.parametrize("file", sorted(FILE.parent.glob("*.txt")), ids=lambda file: file.stem)
def test_committed_locks_are_valid(file: Path) -> None:
    """Every lock of the matrix folder can be read."""
    assert read_lock(file) is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WHOLE[:400], "it ends too early"),
        (WHOLE[: WHOLE.index("\n    --hash") + 1], "it ends too early"),
        (WHOLE.replace("\njax==", "\njaz=="), "got 'no version' as the version of jax"),
        (WHOLE.replace("jax==0.6.2", "jax==x.y"), "got 'x.y' as the version of jax"),
        (WHOLE.replace("absl-py==", "absl-py="), "line 7 is 'absl-py="),
        (WHOLE.replace("# environment: ", "# e: "), "it does not name its environment"),
        ("", "expected '# jax-conformance lock 1'"),
        ("\0", "expected '# jax-conformance lock 1'"),
    ],
)  # fmt: skip
def test_damaged_lock_is_infra(tmp_path: Path, text: str, said: str) -> None:
    """The message names the file, the damage and the remedy."""
    file = tmp_path / "lock.txt"
    file.write_text(text)
    with pytest.raises(InfrastructureError) as error:
        read_lock(file)
    assert str(error.value).startswith(f"{file}: ")
    assert said in str(error.value)
    assert "delete" in str(error.value)


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
def test_foreign_pins_are_read(tmp_path: Path, name: str, text: str, more: dict[str, str]) -> None:
    """Exact versions by normalised name; other lines are ignored."""
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
def test_invalid_foreign_lock_is_a_usage_error(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    """The message names the file."""
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(UsageError, match=said) as refused:
        read_foreign_pins(file)
    assert str(refused.value).startswith(f"{file}: ")
