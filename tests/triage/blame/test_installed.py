"""What packages ask of each other, as far as it counts in their environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.triage.blame.installed import (
    count_users,
    find_closure,
    find_wants,
    list_needed,
    read_installed,
)

from .environments import installed, lock_of

if TYPE_CHECKING:
    from pathlib import Path

PINS = {"jax": "0.6.2", "jaxlib": "0.6.2", "numpy": "2.0.2"}


@pytest.mark.parametrize(
    ("asked", "counts"),
    [
        ("numpy>=1.26", True),
        ("numpy>=2.3", False),  # not met there either: it was overruled
        ("scipy>=1.11", False),  # not there either: it was left out
        ('numpy>=1.26; python_version >= "3.11"', True),
        ('numpy>=1.26; python_version >= "3.12"', False),
        ('numpy>=1.26; extra == "tpu"', True),
        ('numpy>=1.26; extra == "cuda"', False),
    ],
)
def test_requirements_depend_on_python_and_extras(asked: str, counts: bool) -> None:
    """Those of the cell, not those of the host."""
    lock = lock_of(PINS, requires="jax==0.6.2 jax[tpu]==0.6.2")
    wants = find_wants(installed({"jax": [asked]}), lock)
    assert bool(wants["jax"]) is counts


def test_extras_of_a_requirement_apply() -> None:
    """Like extras that the user requires."""
    known = installed({"jax": ["jaxlib[fast]"], "jaxlib": ['numpy>=2; extra == "fast"']})
    assert find_wants(known, lock_of(PINS))["jaxlib"]


def test_users_are_counted_directly_and_indirectly() -> None:
    """Directly or not."""
    wants = find_wants(installed({"jax": ["jaxlib"], "jaxlib": ["numpy"]}), lock_of(PINS))
    assert find_closure(["jax"], lambda name: list_needed(name, wants)) == {
        "jax",
        "jaxlib",
        "numpy",
    }
    assert count_users(wants) == {"jaxlib": 1, "numpy": 2}


def test_installed_packages_are_read(tmp_path: Path) -> None:
    """By normalised name, with their modules; unreadable requirements are ignored."""
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    info = site / "My_Package-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: My_Package\nVersion: 1.0\n"
        "Requires-Dist: ML_dtypes>=0.5\nRequires-Dist: broken (>=1.*.x\n"
    )
    (info / "RECORD").write_text("mine/__init__.py,,\nlone.py,,\n../../bin/tool.py,,\n")
    (info / "direct_url.json").write_text("{}")
    (site / "mine").mkdir()
    for module in ("mine/__init__.py", "lone.py"):  # Python 3.12 leaves out files that are gone
        (site / module).touch()
    found = read_installed(tmp_path / "bin" / "python")
    assert [str(one) for one in found.requires["my-package"]] == ["ml-dtypes>=0.5"]
    assert found.modules == {"mine": {"my-package"}, "lone": {"my-package"}}
    assert found.local == {"my-package"}
