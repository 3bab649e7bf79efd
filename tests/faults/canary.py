"""A secret in 20 places, and every command that writes files: does one reach a file or a message?

Each place has a canary of its own, so that what leaks tells from where.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.projects import HEAD, RELEASE, ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CANARY: Final = "c4nary"
NOWHERE: Final = "127.0.0.1:9"
OTHER: Final = "0.10.2"
SUITE: Final = "array-api-tests"
VARIABLES: Final = {
    "GITHUB_TOKEN": f"ghp_{CANARY}-01",
    "APITOKEN": f"{CANARY}-02",
    "DBPASS": f"{CANARY}-03",
    "SLACK_WEBHOOK_URL": f"https://hooks.example/{CANARY}-04",
    "DATABASE": f"postgresql://someone:{CANARY}-05@{NOWHERE}/runs",
    "CONFORMANCE_STORE": f"postgresql://someone:{CANARY}-06@{NOWHERE}/runs",
    "UV_DEFAULT_INDEX": f"http://user:{CANARY}-07@{NOWHERE}/index/",
    "UV_EXTRA_INDEX_URL": f"http://{CANARY}-08@{NOWHERE}/more/",
    "PIP_INDEX_URL": f"http://user:{CANARY}-09@{NOWHERE}/index/",
    "CONFORMANCE_NIGHTLY_INDEX": f"http://user:{CANARY}@10@{NOWHERE}/nightly/",
    "UV_INDEX_PRIVATE_PASSWORD": f"{CANARY}-11",
    "MY_PROXY": f"http://user:{CANARY}-12@{NOWHERE}/",
    "AWS_SECRET_ACCESS_KEY": f"{CANARY}-13/1+x",
    # Nothing says that this is a secret. It reaches no job, and no file of /proc shows it.
    "UNSUSPECTED": f"{CANARY}-14",
    # These two reach the jobs, which print them.
    "PASSED_TOKEN": f"{CANARY}-15",
    "QUOTED_PASSWORD": f"<\"{CANARY}-16' \\é>",
}
"""Places in the environment."""
PLACES: Final = (*VARIABLES, "netrc", "--with", "--api", "suite fetch")
"""All places; the last ones are a file and three addresses on command lines."""
SETTINGS: Final = f"""\
[tool.conformance]
pass-env = ["PASSED_TOKEN", "QUOTED_PASSWORD"]
nightly-index = "http://{NOWHERE}/nightly/"
"""
CASES: Final = f"""\
{HEAD}


def seen():
    import os
    texts, pid = [str(dict(os.environ))], os.getpid()
    while pid > 1:
        try:
            with open(f"/proc/{{pid}}/environ", "rb") as file:
                texts.append(str(file.read()))
            with open(f"/proc/{{pid}}/stat") as file:
                pid = int(file.read().rpartition(")")[2].split()[1])
        except OSError:
            break
    return texts


@probe()
def prints(env):
    import sys
    print(seen())
    print(seen(), file=sys.stderr)
    raise ValueError("\\n".join(seen()))


@probe()
def deviates(env):
    return Observed(len(seen()[0]), reference=-1)


@probe()
def gives(env):
    import os
    texts = [os.environ[name] for name in ("PASSED_TOKEN", "QUOTED_PASSWORD")]
    return Observed({{"python": texts, "numpy": np.array(texts), "all": str(texts)}})
"""
SCRIPT: Final = "import os, sys\nprint(os.environ, file=sys.stderr)\nsys.exit(str(os.environ))\n"
TESTS: Final = """\
import os, warnings

def test_environment():
    print(os.environ)
    warnings.warn(str(os.environ))
    raise ValueError(str(dict(os.environ)))
"""
FILES: Final = {
    "pyproject.toml": SETTINGS,
    "cases/fam/topic.py": CASES,
    "script.py": SCRIPT,
    "tests/test_it.py": TESTS,
    f"suites/{SUITE}/suite.toml": (ROOT / "suites" / SUITE / "suite.toml").read_text(),
}
"""A project whose code prints its environment, and that of its ancestors."""


@dataclass(slots=True)
class Campaign:
    """All commands, run in a project by a caller with secrets.

    Attributes:
        project: The project, made of `FILES`.
        folder: Where everything else is written.
        cache: Cache folder with the environments of both releases.
        printed: Output of each command, by command line.
    """

    project: Path
    folder: Path
    cache: Path
    printed: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str | Path, **variables: str | None) -> str:
        """Run a command; return what it prints.

        Args:
            *arguments: Its arguments.
            **variables: Variables to set, or to unset where None.
        """
        netrc = self.folder / "netrc"
        if not netrc.exists():
            netrc.touch(mode=0o600)
            netrc.write_text(f"machine 127.0.0.1 login user password {CANARY}-17\n")
        harmless = {
            name: value
            for name, value in os.environ.items()
            if name not in {"CI", "CONFORMANCE_INDEX_URL", "UV_FIND_LINKS", "UV_INDEX_URL"}
        }
        given = {
            **harmless, **VARIABLES, "NETRC": str(netrc), "UV_HTTP_RETRIES": "0",
            "PYTHONPATH": str(ROOT), "COLUMNS": "200", "CONFORMANCE_CACHE": str(self.cache),
            **variables,
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "conformance", *map(str, arguments)],
            cwd=self.project, capture_output=True, text=True, check=False, timeout=600,
            env={name: value for name, value in given.items() if value is not None},
        )  # fmt: skip
        text = done.stdout + done.stderr
        self.printed[f"{len(self.printed)} {' '.join(map(str, arguments[:2]))}"] = text
        return text

    def go(self) -> None:
        """Run all commands."""
        one, two, out = self.folder / "one", self.folder / "two", self.folder / "out"
        out.mkdir()
        self.run("run", "--cell", RELEASE, "--run", one, "--verbose", "--report")
        self.run("run", "--resume", "--run", one, "--json", "-")
        # Another place for environments: they would have to be made, and cannot.
        (self.project / "matrix" / "locks" / f"jax{OTHER}-py311.txt").unlink()
        empty = {
            "CONFORMANCE_CACHE": str(self.folder / "empty"),
            "UV_CACHE_DIR": str(self.folder / "uv-cache"),
        }
        cells = ("--cell", RELEASE, "--cell", OTHER, "--cell", "nightly")
        self.run("run", *cells, "--run", two, **empty)
        self.run("run", "--cell", RELEASE, "--with", "optax", "--verbose", **empty)
        self.run("doctor", **empty)
        self.run("matrix", "releases", "--refresh", **empty)
        url = f"https://user:{CANARY}-18@{NOWHERE}/optax-0.2.5-py3-none-any.whl"
        self.run("run", "--cell", RELEASE, "--with", f"optax @ {url}")
        self.run("history", "add", one)
        local: dict[str, str | None] = {"CONFORMANCE_STORE": None}
        formats = ("markdown", "junit", "csv", "jobs-csv", "json", "jsonl")
        files = [word for name in formats for word in (f"--{name}", str(out / name))]
        self.run("report", one, two, "--out", out / "site", *files)
        self.run("accept", "--run", one, **local)
        self.run("history", "add", one, **local)
        self.run("history", "fam/prints", **local)
        api = f"https://user:{CANARY}-19@{NOWHERE}/api"
        self.run("notify", "--github", "owner/repo", "--when", "new", "--api", api, **local)
        self.run("notify", "--when", "new", "--json", out / "notify.json", **local)
        self.run(
            "repro", "fam/prints", "--cell", RELEASE, "--issue", "--out", out / "r.py", **local
        )
        self.run("bisect", "script.py", "--good", RELEASE, "--bad", OTHER, **local)
        self.run("suite", "run", "tests", "--cell", RELEASE, "--json", out / "suite.json", **local)
        address = f"https://user:{CANARY}-20@{NOWHERE}/suite.git"
        self.run("suite", "fetch", SUITE, "--url", address, **empty)

    def leaks(self) -> Iterator[str]:
        """Yield each file and each command whose output has a canary."""
        for command, text in self.printed.items():
            if CANARY in text:
                yield f"output of {command}: {_around(text)}"
        for folder in (self.project, self.folder, self.cache / "results", self.cache / "blobs"):
            for path in folder.rglob("*"):
                if path.is_file() and path.name != "netrc" and CANARY.encode() in path.read_bytes():
                    yield f"{path}: {_around(path.read_bytes().decode(errors='replace'))}"


def _around(text: str) -> str:
    start = text.find(CANARY)
    return repr(text[max(0, start - 40) : start + 40])
