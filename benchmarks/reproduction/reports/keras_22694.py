from jax.sharding import PartitionSpec

layout = PartitionSpec("model", None)
assert layout == ("model", None), f"unexpected layout {layout}"
print("layout ok")
