"""Facts of a pasted report about the runs of its author: releases, versions, variables, devices.

Pure.
"""

from __future__ import annotations

import ast
import re
import shlex
from typing import Final

from conformance.corpus.python_source import find_imported_modules, parse

DEVICE_COUNT_FLAG: Final = "--xla_force_host_platform_device_count"
_RELEASE: Final = re.compile(
    r"\bjax(?:lib)?\b[^\w\n]{0,40}(?:version[^\w\n]{1,8})?v?(\d+\.\d+(?:\.\d+)+)", re.IGNORECASE
)
_SHOWN_RELEASE: Final = re.compile(
    r"\bjax\.__version__\)?[ \t]*\n\s*'?(\d+\.\d+(?:\.\d+)+)'?[ \t]*$", re.MULTILINE
)
"""The release as an interactive session prints it below `jax.__version__`."""
_PIN: Final = re.compile(
    r"^[ \t>]*(?P<name>[A-Za-z][\w.-]*[A-Za-z0-9])(?:==|:?[ \t]+v?)"
    r"(?P<version>\d+(?:\.\d+)+(?:\.?\w+)?)"
    r"[ \t]*(?:pypi_0[ \t]+pypi|\S*site-packages\S*)?[ \t]*$",
    re.MULTILINE,
)
"""A line of `pip list`, `pip freeze`, `conda list` or `jax.print_environment_info()`."""
_JAX_FAMILY: Final = re.compile(r"jax|jaxlib|jax[-_](?:cuda|rocm|metal|tpu)\S*|libtpu|python")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_COMMAND: Final = re.compile(
    r"((?:(?<!\S)`?[A-Za-z_]\w*=(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s`\"']+)[ \t]+)+)"
    r"(?:uv[ \t]+run[ \t]+)?(?:python|ipython|pytest)[\d.]*\b"
)
"""Variables before a command, also within a sentence."""
_DEVICE_COUNT: Final = re.compile(
    r"--xla_force_host_platform_device_count[= ](\d+)|jax_num_cpu_devices\W{1,4}(\d+)",
    re.IGNORECASE,
)
_LOCAL_DEVICES: Final = re.compile(r"^[ \t>]*device info:.*\b(\d+) local devices", re.MULTILINE)
"""The line of `jax.print_environment_info()`."""
MOST_DEVICES: Final = 512
"""Number of devices above which a number is taken for something else."""
_DEVICE_SETTING: Final = re.compile(r"xla_force_host_platform_device_count|jax_num_cpu_devices")


def find_releases(text: str) -> set[str]:
    """Return the releases of jax that a report names, e.g. `jax==0.7.1`, `jax: 0.7.1`.

    Args:
        text: The report.
    """
    return {match[1] for match in _RELEASE.finditer(text)}


def find_release(text: str) -> str:
    """Return the release of jax that a report names, empty if it names several or none.

    Args:
        text: The report.
    """
    found = _RELEASE.finditer(text)
    # The number of jaxlib may differ from that of jax, and a report often lists both.
    named = {match[1] for match in found if not match[0].lower().startswith("jaxlib")}
    named |= set(_SHOWN_RELEASE.findall(text))
    return named.pop() if len(named) == 1 else ""


def find_pins(text: str, script: str) -> tuple[str, ...]:
    """Return the versions in a report of the packages that its script imports.

    Args:
        text: The report.
        script: Python source of its script.

    Returns:
        Requirements, e.g. `flax==0.10.2`; none of jax itself, which the search varies.
    """
    imported = find_imported_modules(parse(script))
    found = {match["name"]: match["version"] for match in _PIN.finditer(text)}
    return tuple(
        f"{name}=={version}"
        for name, version in sorted(found.items())
        # A report lists everything that is installed; pins of what is not imported only conflict.
        if name.replace("-", "_").lower() in imported and not _JAX_FAMILY.fullmatch(name.lower())
    )


def find_variables(text: str, script: str, notes: list[str]) -> dict[str, str]:
    """Return the environment variables in which the author of a report ran its script.

    Those before a command of Python, if the report has only one such command or all agree; and the
    number of devices, of a flag or of the host, unless the script sets it itself.

    Args:
        text: The report.
        script: Python source of its script.
        notes: Gets a sentence if the commands do not agree.
    """
    commands = [read_assignments(match[1].strip("`")) for match in _COMMAND.finditer(text)]
    agreed = [one for one in commands if one == commands[0]] == commands
    variables = commands[0] if commands and agreed else {}
    if not agreed:
        notes.append("its commands set different environment variables, of which none is set here")
    flags = variables.get("XLA_FLAGS", "")
    devices = _find_device_count(text)
    if devices > 1 and not (_DEVICE_COUNT.search(flags) or sets_device_count(parse(script))):
        variables["XLA_FLAGS"] = f"{flags} {DEVICE_COUNT_FLAG}={devices}".strip()
    return variables


def read_assignments(command: str) -> dict[str, str]:
    """Return the variables that a shell command sets before its first word.

    Args:
        command: The command.
    """
    variables: dict[str, str] = {}
    try:
        words = shlex.split(command)
    except ValueError:
        return variables
    for word in words:
        match = _ASSIGNMENT.fullmatch(word)
        if match is None:
            break
        variables[match[1]] = match[2]
    return variables


def _find_device_count(text: str) -> int:
    """Return the number of devices that a report names, 0 if it names several or none."""
    # A flag is a choice of the author, also where the host has other devices.
    for pattern in (_DEVICE_COUNT, _LOCAL_DEVICES):
        found = {int(next(filter(None, groups.groups()))) for groups in pattern.finditer(text)}
        if found:
            return found.pop() if len(found) == 1 and max(found) <= MOST_DEVICES else 0
    return 0


def sets_device_count(tree: ast.AST) -> bool:
    """Say whether a script sets the number of devices; its comments may only describe it.

    Args:
        tree: Syntax tree of the script.
    """
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return any(
        isinstance(node, ast.Constant)
        and id(node) not in docstrings
        and _DEVICE_SETTING.search(str(node.value))
        for node in ast.walk(tree)
    )
