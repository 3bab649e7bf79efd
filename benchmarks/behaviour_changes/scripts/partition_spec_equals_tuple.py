import sys

from jax.sharding import PartitionSpec

spec = PartitionSpec("data", None)
sys.exit(0 if spec == ("data", None) else 1)
