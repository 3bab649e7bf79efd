from jax.sharding import PartitionSpec

spec = PartitionSpec("data", None)
print(f"sharded as {spec}")
