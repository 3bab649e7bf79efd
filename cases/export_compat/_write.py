"""Export every program with the jax in use, into one file; run by `.ci/exports.py`.

A module contains the source lines of its operations, with tracebacks: to move lines here or in the
programs changes exports. Both are compiled under names that are the same on every host. Programs
are exported twice: by default, and without tracebacks (`jax_traceback_in_locations_limit=0`).
"""

from __future__ import annotations

import io
import json
import os
import sys
import types
import zipfile
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
from jax import export

EPOCH = (1980, 1, 1, 0, 0, 0)
LIMIT = "jax_traceback_in_locations_limit"
BARE = "_without_tracebacks"
"""Suffix of the name of a file that holds an export without tracebacks."""


def write(programs: Any, target: str, date: str) -> None:
    """Write the exports of this release, and a manifest.

    Args:
        programs: The module of the programs.
        target: Path of the zip file: `manifest.json`, and two serialized exports for each program
            that this release can export.
        date: Day of the release.
    """
    manifest = {"release": jax.__version__, "date": date, "results": {}, "refused": {}}
    files = {}
    for name, program in programs.PROGRAMS.items():
        try:
            exported, files[name] = exported_bytes(programs, program)
            limit = getattr(jax.config, LIMIT)
            jax.config.update(LIMIT, 0)
            jax.clear_caches()
            _, files[name + BARE] = exported_bytes(programs, program)
            jax.config.update(LIMIT, limit)
            jax.clear_caches()
        except Exception as error:  # noqa: BLE001 - the manifest lists the error
            manifest["refused"][name] = f"{type(error).__name__}: {error}".splitlines()[0]
            continue
        if program.reference is None:
            result = exported.call(*program.args)
            manifest["results"][name] = np.asarray(result).tolist()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        text = json.dumps(manifest, indent=1, sort_keys=True)
        for name, data in {"manifest.json": text.encode(), **files}.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), data, zipfile.ZIP_DEFLATED)
    with open(target, "wb") as file:  # noqa: PTH123 - one line
        file.write(buffer.getvalue())


def exported_bytes(programs: Any, program: Any) -> tuple[Any, bytes]:
    """Return the export of a program, and its bytes."""
    args = programs.make_export_args(program)
    exported = export.export(jax.jit(program.fn), **program.keywords)(*args)
    return exported, bytes(exported.serialize(vjp_order=int(program.gradient)))


if __name__ == "__main__":
    folder, target, date = sys.argv[1:]
    scope = types.ModuleType("programs")
    sys.modules["programs"] = scope
    with open(f"{folder}/_programs.py") as source:  # noqa: PTH123 - one line
        code = compile(source.read(), "export_compat/_programs.py", "exec")
    exec(code, scope.__dict__)  # noqa: S102 - own source
    write(scope, target, date)
