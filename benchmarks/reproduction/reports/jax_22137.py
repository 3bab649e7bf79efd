import jax.numpy as jnp
import numpy as np

# unsigned integers with the largest value of the type among them
x = np.array([[6, 4294967295, 0, 4, 3, 1, 0, 7, 5, 2]], dtype=np.uint32)
smallest = np.sort(np.asarray(jnp.partition(jnp.array(x), 3))[0, :4])
print("numpy", np.sort(np.partition(x, 3)[0, :4]))
print("jax  ", smallest)
