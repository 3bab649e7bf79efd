import jax
from flax import nnx


class Stack(nnx.Module):
    def __init__(self, rngs):
        self.layers = [nnx.Linear(2, 2, rngs=rngs) for _ in range(2)]


model = Stack(nnx.Rngs(0))
print(len(jax.tree_util.tree_leaves(nnx.state(model))))
