"""Which environment variables workers get."""

from __future__ import annotations

import pytest

from conformance.engine.workers.environment import make_worker_environment, select_passed_variables

ORDINARY = {"HOME": "/h", "PATH": "/usr/bin", "CUDA_VISIBLE_DEVICES": "0", "no_proxy": "localhost"}
SECRETS = {
    "GITHUB_TOKEN": "secret",
    "MY_INDEX": "https://user:secret@host/",
    "NOT_NAMED_LIKE_ONE": "secret",
    "HTTPS_PROXY": "http://user:secret@proxy/",
    "CUDA_API_TOKEN": "secret",
}
HEEDED = {"JAX_ENABLE_X64": "1", "XLA_FLAGS": "--x", "PYTHONPATH": "/p", "UV_INDEX_URL": "x"}


def test_a_worker_gets_an_allow_list() -> None:
    """No secret, also one that no name gives away, and nothing that jax, XLA or Python heed."""
    outer = {**ORDINARY, **SECRETS, **HEEDED, "TZ": "X"}
    got = make_worker_environment(outer, {"TPU_LOG_DIR": "disabled"}, keep_python_path=False)
    assert got.items() >= ORDINARY.items()
    assert got["TZ"] == "UTC"
    assert got["TPU_LOG_DIR"] == "disabled"
    assert not {*SECRETS, *HEEDED} & set(got)


def test_a_development_build_keeps_its_python_path() -> None:
    """A `path:` cell may need PYTHONPATH."""
    assert (
        make_worker_environment({"PYTHONPATH": "/p"}, {}, keep_python_path=True)["PYTHONPATH"]
        == "/p"
    )


@pytest.mark.parametrize("name", ["TZ", "JAX_PLATFORMS"])
def test_a_passed_variable_does_not_replace_a_pinned_one(name: str) -> None:
    """A run gives the same result in every time zone."""
    pinned = make_worker_environment({}, {}, keep_python_path=False)
    passed = make_worker_environment(
        {}, {}, keep_python_path=False, passed={name: "other", "A": "1"}
    )
    assert passed == {**pinned, "A": "1"}


def test_a_name_passes_a_secret_and_a_pattern_does_not() -> None:
    """A pattern may match a secret by accident."""
    outer = {"MYLIB_DATA": "/data", "MYLIB_TOKEN": "secret", "OTHER": "x"}
    assert select_passed_variables(["MYLIB_*"], outer) == {"MYLIB_DATA": "/data"}
    assert select_passed_variables(["MYLIB_TOKEN", "MISSING"], outer) == {"MYLIB_TOKEN": "secret"}
