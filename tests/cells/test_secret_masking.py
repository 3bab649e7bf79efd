"""Secrets: detection, and masking in text, data and JSON."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.cells.secret_masking import Masker, is_secret, mask_text

if TYPE_CHECKING:
    from collections.abc import Callable

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
        ("GIT_CONFIG_VALUE_0", "AUTHORIZATION: basic aHVudGVyMjI="),
        ("APITOKEN", "hunter22"),
        ("DBPASS", "hunter22"),
        ("SLACK_WEBHOOK_URL", "hunter22"),
        ("MYAPIKEY", "hunter22"),
    ],
)
def test_secrets_are_detected(name: str, value: str) -> None:
    """By the name of the variable, or by credentials in its value."""
    assert is_secret(name, value)


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
        ("BYPASS", "x"),
        ("TOKENIZERS_PARALLELISM", "x"),
        ("AUTHOR", "x"),
    ],
)
def test_other_variables_are_no_secrets(name: str, value: str) -> None:
    """They are passed to the worker."""
    assert not is_secret(name, value)


@given(URL_WORD, URL_WORD)
def test_password_is_masked_completely(user: str, password: str) -> None:
    """Also if it contains an `@` or a colon."""
    said = mask_text(f"cannot reach http://{user}:{password}@host.example/index/, try again", {})
    assert said == "cannot reach http://***@host.example/index/, try again"


def test_secret_is_masked_outside_of_its_url() -> None:
    """The password alone, or a token of another variable."""
    known = {
        "UV_DEFAULT_INDEX": "https://user:pass-word@host.example/index",
        "MORE": "https://lone-token@host/",
        "GITHUB_TOKEN": "ghp_12345",
        "GIT_CONFIG_VALUE_0": "AUTHORIZATION: basic aHVudGVyMjI=",
        "API_KEY": "short",
    }
    said = mask_text("401 for pass-word, lone-token, ghp_12345, aHVudGVyMjI=; short of user", known)
    assert said == "401 for ***, ***, ***, ***; short of user"


AWKWARD = "pass\"w<o>r'd\\/ é"


@pytest.mark.parametrize(
    "spelled",
    [
        lambda secret: secret,
        lambda secret: str({"A": secret}),
        lambda secret: repr(str({"A": repr(secret)})),
        lambda secret: str(secret.encode()),
        lambda secret: json.dumps([secret]),
        html.escape,
        lambda secret: f"https://host/?key={quote(secret, safe='')}",
    ],
)
def test_escaped_secret_is_masked(spelled: Callable[[str], str]) -> None:
    """As in a traceback, in JSON, in HTML and in a URL."""
    text = Masker({"DB_PASSWORD": AWKWARD}).mask_text(spelled(AWKWARD))
    assert "***" in text
    assert re.search("pass|[wo]", text.replace("https://host/?key=", "")) is None


@given(st.text(min_size=6), st.text(), st.text())
def test_masked_json_is_valid_json(secret: str, before: str, after: str) -> None:
    """A record is a line of JSON."""
    line = json.dumps([before + secret + after])
    assert len(json.loads(Masker({"DB_PASSWORD": secret}).mask_text(line))) == 1


def test_masked_data_keep_their_length() -> None:
    """The header of a value has the offset of each leaf."""
    strings = np.array(["hunter22", "other"])
    masker = Masker({"APITOKEN": "hunter22"})
    data = masker.mask_data(b"\xff" + b"hunter22" + strings.tobytes())
    assert data == b"\xff" + b"*" * 8 + b"*" * 32 + strings[1:].tobytes()
    assert masker.mask_content(b"\xffhunter22") == b"\xff********"
    assert masker.mask_content(b"it is hunter22") == b"it is ***"


def test_masked_tree_keeps_protocol_keywords() -> None:
    """A secret `execute` does not mask the stage of that name."""
    masker = Masker({"APITOKEN": "execute"})
    event = {"stage": "execute", "error": {"message": ["cannot execute", 1, None]}}
    masked_event = {"stage": "execute", "error": {"message": ["cannot ***", 1, None]}}
    assert masker.mask_tree(event, {"stage"}) == masked_event
