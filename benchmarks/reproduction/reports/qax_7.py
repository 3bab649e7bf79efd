import jax
from jax import core

with core.new_main(core.EvalTrace) as main:
    print(main.level)
