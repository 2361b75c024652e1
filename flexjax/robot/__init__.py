"""The description of a robot: links, joints, payloads, sensors; its files, paths and examples.

No equations of motion are here. Names are imported at first use, so that the command line reads a
robot file without jax; ``__init__.pyi`` lists them.
"""

from flexjax._lazy import names_of_stub

__getattr__, __all__ = names_of_stub(__name__, __file__)  # pyright: ignore
