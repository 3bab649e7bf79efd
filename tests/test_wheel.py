"""The package installed into a fresh environment: as a wheel, and editable from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import uv

pytestmark = [pytest.mark.fresh, pytest.mark.cell]
ROOT = Path(__file__).resolve().parents[1]
UV = uv.find_uv_bin()


def _run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [*map(str, command)], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def _environment(folder: Path, *package: str | Path) -> Path:
    """The Python of a fresh environment in `folder` that `package` was installed into."""
    assert _run(UV, "venv", "--python", sys.executable, folder / "env", cwd=folder).returncode == 0
    python = folder / "env" / "bin" / "python"
    done = _run(UV, "pip", "install", "--python", python, *package, cwd=folder)
    assert done.returncode == 0, done.stderr
    return python


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `conformance` command of a fresh environment that has nothing but the wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    built = _run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    return _environment(folder, wheel).with_name("conformance")


def test_cases_and_matrices_travel_with_the_wheel(installed: Path, tmp_path: Path) -> None:
    """All families are listed where there is no checkout."""
    listed = json.loads(_run(installed, "list", "--json", cwd=tmp_path).stdout)
    families = {file.parent.name for file in ROOT.glob("cases/*/changes.toml")}
    assert {case["family"] for case in listed} == families
    assert not any(str(ROOT) in case["file"] for case in listed)
    names = _run(installed, "matrix", cwd=tmp_path).stdout.split()
    assert {"smoke", "releases"} <= set(names)


@pytest.mark.long
def test_libraries_and_their_outcomes_travel_with_the_wheel(
    installed: Path, tmp_path: Path
) -> None:
    """Recorded outcomes are shown where there is no checkout."""
    done = _run(installed, "ecosystem", "--recorded", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = {record["library"] for record in json.loads(done.stdout)["records"]}
    assert {"flax", "optax"} <= names


def test_the_main_job_runs_and_meets_its_goldens(installed: Path, tmp_path: Path) -> None:
    """A case of the installed families matches the goldens that came with it."""
    command = ("run", "shard_map_while/end_time_argument", "--cell", "0.6.2", "--json", "-")
    done = _run(installed, *command, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert set(result["counts"]) <= {"match", "drifted", "known"}
    assert (tmp_path / "reports" / "runs" / result["run"] / "results.jsonl").is_file()


def test_goldens_of_an_installation_are_not_changed(installed: Path, tmp_path: Path) -> None:
    """Accepting says where it can be done instead."""
    _run(installed, "run", "shard_map_while/end_time_argument", "--cell", "0.6.2", cwd=tmp_path)
    done = _run(installed, "accept", cwd=tmp_path)
    assert done.returncode == 2
    assert "installed package" in done.stderr


def test_an_editable_install_has_no_copy_of_the_checkout(tmp_path: Path) -> None:
    """Cases are those of the checkout; pytest takes none of them for modules of its plugin."""
    python = _environment(tmp_path, "--no-deps", "--editable", ROOT)
    (record,) = (tmp_path / "env").rglob("jax_conformance-*.dist-info/RECORD")
    assert [line for line in record.read_text().splitlines() if "/data/" in line] == []
    where = _run(python, "-c", "import conformance; print(conformance.__file__)", cwd=tmp_path)
    assert Path(where.stdout.strip()) == ROOT / "conformance" / "__init__.py"


@pytest.mark.long
@pytest.mark.parametrize("version", ["pytest==8.3.*", "pytest>=9"])
def test_the_extra_pytest_alone_collects_and_runs_cases(tmp_path: Path, version: str) -> None:
    """In a checkout, whose own tests need more than that; of the oldest pytest and of today's."""
    python = _environment(tmp_path, "--editable", f"{ROOT}[pytest]", version)
    cases = ("cases/shard_map_while", "-k", "end_time_argument", "--cell", "0.6.2")
    command = (python, "-m", "pytest", "-p", "no:cacheprovider", "-q", *cases)
    collected = _run(*command, "--collect-only", cwd=ROOT)
    assert collected.returncode == 0, collected.stdout + collected.stderr
    assert "end_time_argument" in collected.stdout
    done = _run(*command, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
