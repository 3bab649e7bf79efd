"""What is a secret, and that it is masked wherever it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cells.masking import is_secret, masked, without_secrets

URL_WORD = st.text("abcXYZ019._~-%@:!", min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_TOKEN", "x"),
        ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("PGPASSWORD", "x"),
        ("db_password", "x"),
        ("OPENAI_API_KEY", "x"),
        ("SSH_AUTH_SOCK", "/run/agent"),
        ("TWINE_PASSWORD", "x"),
        ("MY_PAT", "x"),
        ("PLAIN", "postgresql://someone:word@host/runs"),
        ("HTTPS_PROXY", "http://word@proxy:3128"),
    ],
)
def test_what_is_a_secret(name: str, value: str) -> None:
    """By its name, or by a URL with credentials that it holds."""
    assert is_secret(name, value)
    assert without_secrets({name: value, "HOME": "/root"}) == {"HOME": "/root"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PWD", "/work"),
        ("OLDPWD", "/"),
        ("PATH", "/usr/bin:/bin"),
        ("GIT_AUTHOR_NAME", "somebody"),
        ("KEYBOARD", "us"),
        ("PATTERN", "x"),
        ("COMPASS", "north"),
        ("XAUTHORITY", "/home/me/.Xauthority"),
        ("HTTP_PROXY", "http://proxy:3128"),
        ("HOMEPAGE", "https://example.org/@someone"),
        ("LD_LIBRARY_PATH", "/usr/lib"),
        ("CUDA_VISIBLE_DEVICES", "0"),
    ],
)
def test_what_is_none(name: str, value: str) -> None:
    """It reaches the worker."""
    assert not is_secret(name, value)


@given(URL_WORD, URL_WORD)
def test_no_part_of_a_password_stays(user: str, password: str) -> None:
    """Also where it holds an `@` or a colon."""
    said = masked(f"cannot reach http://{user}:{password}@host.example/index/, try again", {})
    assert said == "cannot reach http://***@host.example/index/, try again"


def test_a_known_secret_is_masked_without_its_url() -> None:
    """A program may say the password alone, or a token from another variable."""
    known = {
        "UV_DEFAULT_INDEX": "https://user:pass-word@host.example/index",
        "MORE": "https://lone-token@host/",
        "GITHUB_TOKEN": "ghp_12345",
        "API_KEY": "short",
    }
    said = masked("401 for pass-word, lone-token and ghp_12345; short of user", known)
    assert said == "401 for ***, *** and ***; short of user"
