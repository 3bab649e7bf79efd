"""Write the checkpoints of one release: `python cases/checkpoints/_write.py FILE.zip`.

Run it with the Python of an environment that has the release of jax, and the Flax, Optax and Orbax
that are current at the time. The files are data of the cases: commit them with the goldens.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import pickle
import sys
import tempfile
import zipfile
from importlib import metadata
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import numpy as np
import optax
import orbax.checkpoint as ocp
from _content import PICKLED, make_state, make_treedef, numbers
from absl import flags
from flax import serialization
from jax.experimental.array_serialization import serialization as arrays
from jax.sharding import Mesh

EPOCH = (1980, 1, 1, 0, 0, 0)
PROTOCOL = 4


def write_pickles():
    """Return the bytes of each pickle by name, and the names of those that are refused."""
    files = {"pickle/treedef_proto": make_treedef().serialize_using_proto()}
    refused = {}
    for name, make in PICKLED.items():
        try:
            files[f"pickle/{name}"] = pickle.dumps(make(), PROTOCOL)
        except Exception as error:  # noqa: BLE001 - the manifest lists the error
            refused[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    adam = optax.adam(0.1).init({"w": np.ones(2, np.float32)})
    files["pickle/adam"] = pickle.dumps(adam, PROTOCOL)
    return files, refused


def write_arrays(state, folder):
    """Write two arrays of a state with TensorStore, as `jax.experimental.array_serialization`."""
    for name, value in state["params"].items():
        spec = arrays.get_tensorstore_spec(str(folder / name))
        asyncio.run(arrays.async_serialize(value, spec))


def write_files(folder):
    """Write checkpoints of all other formats in a folder."""
    state = make_state(Mesh(np.array(jax.devices()), ("x",)))
    buffer = io.BytesIO()
    np.savez(buffer, **{name: numbers(name) for name in ("float32", "bfloat16", "complex64")})
    (folder / "arrays.npz").write_bytes(buffer.getvalue())
    (folder / "state.msgpack").write_bytes(serialization.to_bytes(state))
    write_arrays(state, folder / "arrays")
    flags.FLAGS.mark_as_parsed()  # Orbax 0.5 and 0.6 read a flag
    checkpointer = ocp.StandardCheckpointer()
    checkpointer.save(folder / "orbax", state)
    getattr(checkpointer, "wait_until_finished", lambda: None)()


def main(target):
    """Write all checkpoints of this release into one zip file."""
    files, refused = write_pickles()
    versions = {
        name: metadata.version(name) for name in ("jax", "flax", "optax", "orbax-checkpoint")
    }
    manifest = {"versions": versions, "refused": refused}
    files["manifest.json"] = json.dumps(manifest, indent=1, sort_keys=True).encode()
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                files[str(path.relative_to(folder))] = path.read_bytes()
    with zipfile.ZipFile(target, "w") as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), files[name], zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main(sys.argv[1])
