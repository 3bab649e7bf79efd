"""`jax.distributed` of one process without `slice_index`."""

import socket

import jax

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
jax.distributed.initialize(f"127.0.0.1:{port}", 1, 0)
print(jax.process_index(), jax.process_count(), len(jax.devices()))
print(getattr(jax.devices()[0], "slice_index", "no slice"))
jax.distributed.shutdown()
