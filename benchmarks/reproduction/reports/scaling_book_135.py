import jax

mesh = jax.make_mesh(axis_shapes=(1,), axis_names=("x",))
print(jax.__version__, mesh.axis_names)
