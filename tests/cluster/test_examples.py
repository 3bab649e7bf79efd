"""The files of `examples/clusters`, which users copy: each is checked, and run where possible."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Self

import dask.config
import jsonschema
import pytest
import uv
from distributed import Nanny, Scheduler
from distributed.cli.dask_scheduler import main as dask_scheduler
from distributed.cli.dask_worker import main as dask_worker
from ruamel.yaml import YAML

from conformance.cluster.connection import close_connections, connect
from conformance.cluster.executor import DaskExecutor
from conformance.cluster.options import ClusterOptions
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.record_judge import execute_jobs
from conformance.model.outcome import Outcome
from tests.cluster.processes import Cluster
from tests.cluster.test_executor import quick_jobs
from tests.projects import ROOT
from tests.test_workflows import PINNED, run
from tests.workbench import OLD, Bench, lock_of, make_test_cache, planned_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from types import ModuleType

    import click

EXAMPLES = ROOT / "examples" / "clusters"
MANIFEST = EXAMPLES / "kubernetes.yaml"
OPERATOR = "dask-kubernetes==2026.3.0"
"""Package with the schema of the operator's resources."""


def load(name: str) -> ModuleType:
    """Return a script as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read(file: Path) -> Any:
    """Return the content of a YAML file."""
    return YAML(typ="safe").load(file.read_text(encoding="utf-8"))


def parse(command: click.Command, words: Sequence[str]) -> dict[str, Any]:
    """Return the parameters that a command of Dask gets from words."""
    return command.make_context("dask", list(words)).params


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder with certificates and the settings of Dask."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    home = tmp_path_factory.mktemp("home")
    folder = home / ".config" / "dask"
    script = EXAMPLES / "make-certificates.sh"
    subprocess.run(["sh", script, folder], check=True, capture_output=True)
    assert {file.name for file in folder.glob("*key*") if file.stat().st_mode & 0o077} == set()
    return home


@pytest.fixture
def tls(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The settings in use; their folder."""
    folder = certificates / ".config" / "dask"
    monkeypatch.setenv("HOME", str(certificates))
    (settings,) = dask.config.collect_yaml([str(folder)])
    with dask.config.set(dask.config.merge(dask.config.global_config, settings)):
        yield folder


def test_the_script_for_slurm(tls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its directives, and the command that starts four workers."""
    module = load("slurm")
    assert module.main("--script") == 0
    script = capsys.readouterr().out
    directives = re.findall(r"^#SBATCH (.*)$", script, re.MULTILINE)
    assert directives == [
        "-J dask-worker", "-p normal", "-A my-account", "-n 1", "--cpus-per-task=4", "--mem=15G",
        "-t 02:00:00",
    ]  # fmt: skip
    *prologue, command = script.strip().splitlines()[-3:]
    assert prologue == module.CLUSTER["job_script_prologue"]
    python, *words = shlex.split(command)
    assert [python, *words[:2]] == ["python", "-m", "distributed.cli.dask_worker"]
    assert words[2].startswith("tls://")
    parameters = parse(dask_worker, words[2:])
    assert (parameters["n_workers"], parameters["nthreads"]) == ("4", 1)


@pytest.mark.parametrize("status", [0, 1])
def test_the_script_for_ssh(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """Scheduler and workers know its options; the exit status is that of the command."""
    ran = []

    class FakeCluster:
        """Takes the options of a cluster."""

        scheduler_address = "tls://head:1"

        def __init__(self, hosts: list[str], **options: Any) -> None:
            assert hosts == ["head", "node1", "node2"]
            workers = {**options["worker_options"]}
            workers.pop("n_workers")  # of SSHCluster itself
            assert workers.keys() <= _parameters(Nanny)
            assert options["scheduler_options"].keys() <= _parameters(Scheduler)

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    def call(command: list[str], *, check: bool) -> subprocess.CompletedProcess[str]:
        ran.append(command)
        return subprocess.CompletedProcess(command, status)

    monkeypatch.setattr("distributed.SSHCluster", FakeCluster)
    monkeypatch.setattr(subprocess, "run", call)
    assert load("ssh").main("head,node1,node2", "run", "prng") == status
    assert ran == [["conformance", "run", "prng", "--scheduler", "tls://head:1"]]


def _parameters(kind: type) -> set[str]:
    return set().union(*(vars(base)["__init__"].__code__.co_varnames
                         for base in kind.__mro__ if "__init__" in vars(base)
                         and hasattr(vars(base)["__init__"], "__code__")))  # fmt: skip


def containers() -> dict[str, dict[str, Any]]:
    """Return the containers of the manifest, by role."""
    spec = read(MANIFEST)["spec"]
    roles = {role: spec[role]["spec"]["containers"] for role in ("scheduler", "worker")}
    return {role: only for role, (only,) in roles.items()}


def test_the_manifest_names_image_command_and_resources(tls: Path) -> None:
    """Scheduler and workers have the same image and certificates."""
    found = containers()
    assert found["scheduler"]["image"] == found["worker"]["image"]
    for role, command in (("scheduler", dask_scheduler), ("worker", dask_worker)):
        program, name, *words = found[role]["args"]
        assert (program, name) == ("dask", role)
        parameters = parse(command, [word.replace("/tls/", f"{tls}/") for word in words])
        assert parameters["tls_ca_file"].endswith("/ca.pem")
        assert found[role]["resources"].keys() == {"requests", "limits"}
    manifest = read(MANIFEST)
    (port,) = manifest["spec"]["scheduler"]["service"]["ports"]
    service = f"tls://{manifest['metadata']['name']}-scheduler:{port['port']}"
    assert service in found["worker"]["args"]


@pytest.mark.cell
def test_the_manifest_has_the_schema_of_the_operator(tmp_path: Path) -> None:
    """The package of the operator has its schema; none of its dependencies is installed."""
    installed = subprocess.run(
        [uv.find_uv_bin(), "pip", "install", "--quiet", "--no-deps", "--python", sys.executable,
         "--target", tmp_path, OPERATOR], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    (file,) = tmp_path.rglob("crds/daskcluster.yaml")
    definition = read(file)["spec"]
    manifest = read(MANIFEST)
    (version,) = definition["versions"]
    assert manifest["apiVersion"] == f"{definition['group']}/{version['name']}"
    assert manifest["kind"] == definition["names"]["kind"]
    schema = _forbid_others(version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    jsonschema.Draft4Validator(schema).validate(manifest["spec"])
    manifest["spec"]["worker"]["spec"]["containers"][0]["arg"] = []
    with pytest.raises(jsonschema.ValidationError, match="'arg' was unexpected"):
        jsonschema.Draft4Validator(schema).validate(manifest["spec"])


def _forbid_others(schema: Any) -> Any:
    """Return a schema without unknown properties: Kubernetes drops them in silence."""
    if isinstance(schema, list):
        return [_forbid_others(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _forbid_others(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        found.setdefault("additionalProperties", False)
    return found


@pytest.mark.long
@pytest.mark.cell
def test_the_commands_of_the_manifest_run(tls: Path, tmp_path: Path) -> None:
    """With TLS, on the port and certificates of this test; a batch runs on the worker."""
    cluster = Cluster(tmp_path, make_test_cache(tmp_path / "cache"))
    port = str(cluster.port)
    try:
        for role, container in containers().items():
            words = [
                word.replace("/tls/", f"{tls}/").replace("/cache/dask", str(tmp_path / "dask"))
                .replace("conformance-scheduler", "127.0.0.1").replace("8786", port)
                for word in container["args"][2:]
            ]  # fmt: skip
            cluster.start(f"distributed.cli.dask_{role}", *words)
        options = ClusterOptions(scheduler=f"tls://127.0.0.1:{port}", slots=1, cache=cluster.cache)
        place = planned_cell(OLD)
        executor = DaskExecutor(options, {place.cell.id: lock_of(place.cell)}, lambda _: 0.5)
        bench = Bench.__new__(Bench)
        bench.planned, bench.folder = place, tmp_path / "cases"
        jobs = quick_jobs(bench, 2)
        found = list(execute_jobs(executor, jobs, BlobStore(tmp_path / "blobs")))
    finally:
        close_connections()
        cluster.close()
    assert [one.record.outcome for one in found] == [Outcome.OK, Outcome.OK]


@pytest.mark.usefixtures("tls")
@pytest.mark.cell
def test_a_cluster_of_this_host_uses_the_settings() -> None:
    """Other people on the host cannot connect to it."""
    try:
        scheduler = connect("", 1).scheduler
        assert scheduler is not None
        assert str(scheduler.address).startswith("tls://127.0.0.1:")
    finally:
        close_connections()


def test_the_image_has_the_extra() -> None:
    """And a cache folder that the manifest mounts."""
    text = (EXAMPLES / "Dockerfile").read_text(encoding="utf-8")
    assert "'/src[dask]'" in text
    folder = re.search(r"CONFORMANCE_CACHE=(\S+)", text)
    assert folder is not None
    mounts = containers()["worker"]["volumeMounts"]
    assert folder[1] in {mount["mountPath"] for mount in mounts}


def test_the_workflow_of_runners_that_share_the_cache() -> None:
    """As its schema has it, pinned and safe; secrets are given to single steps."""
    file = EXAMPLES / "shared-cache.yml"
    assert run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", file) == ""
    assert run("zizmor", "--offline", "--no-progress", "--persona", "pedantic", file) == ""
    lines = [line for line in file.read_text().splitlines() if "uses:" in line]
    assert all(PINNED.search(line) for line in lines), lines
    workflow = read(file)
    for job in workflow["jobs"].values():
        assert "secrets." not in str(job.get("env"))
        for step in job["steps"]:
            assert len(step.get("run", "").splitlines()) <= 1
    assert "secrets." not in str(workflow.get("env"))


def test_the_page_names_every_file_and_its_commands_exist() -> None:
    """The commands of Dask on the page have the options that it names."""
    page = (ROOT / "docs" / "clusters.md").read_text(encoding="utf-8")
    for file in (path for path in EXAMPLES.iterdir() if path.is_file()):
        assert f"(../examples/clusters/{file.name})" in page
    commands = {"scheduler": dask_scheduler, "worker": dask_worker}
    found = re.findall(r"^dask (scheduler|worker) (.*)$", page, re.MULTILINE)
    assert {role for role, _ in found} == commands.keys()
    for role, words in found:
        parse(commands[role], shlex.split(words))
