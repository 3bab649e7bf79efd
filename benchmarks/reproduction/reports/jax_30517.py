# Python dies here, no traceback.
import weakref

import jax

compiled = weakref.WeakKeyDictionary()


def make():
    def marker(_):
        return None

    def run(fn):
        return None

    run = compiled[marker] = jax.jit(run, static_argnums=0)
    run(marker)


make()
print("survived")
