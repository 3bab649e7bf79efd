"""Numbers of processes by the functions that exist on both sides."""

import jax

print(jax.process_index(), jax.process_count(), jax.host_count(), jax.host_id(), jax.host_ids())
print([device.process_index for device in jax.devices()])
