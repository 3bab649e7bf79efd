# flax 0.10.4 tests fail with AttributeError: module 'jax.api_util' has no attribute 'debug_info'
import jax, jax.numpy as jnp
import flax, flax.linen as nn
print("flax", flax.__version__, "jax", jax.__version__)

class Block(nn.Module):
    @nn.compact
    def __call__(self, c, _):
        return nn.Dense(4)(c), ()

class Stack(nn.Module):
    @nn.compact
    def __call__(self, x):
        S = nn.scan(Block, variable_axes={"params": 0}, split_rngs={"params": True}, length=3)
        y, _ = S()(x, None)
        return y

x = jnp.ones((2, 4))
v = Stack().lazy_init(jax.random.key(0), jax.ShapeDtypeStruct((2, 4), jnp.float32))
print(jax.tree_util.tree_map(jnp.shape, v))
