"""Reading a lock: whole, or one error that names the file and the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.cells.lock import read_lock
from conformance.errors import InfrastructureError

FILE = next((Path(__file__).parents[2] / "matrix" / "locks").glob("jax0.6.2-py311.txt"))
WHOLE = FILE.read_text()


@pytest.mark.parametrize("file", sorted(FILE.parent.glob("*.txt")), ids=lambda file: file.stem)
def test_every_committed_lock_is_whole(file: Path) -> None:
    """None is refused."""
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
def test_a_damaged_lock_is_one_error(tmp_path: Path, text: str, said: str) -> None:
    """It names the file, what is wrong and what to do."""
    file = tmp_path / "lock.txt"
    file.write_text(text)
    with pytest.raises(InfrastructureError) as error:
        read_lock(file)
    assert str(error.value).startswith(f"{file}: ")
    assert said in str(error.value)
    assert "delete" in str(error.value)
