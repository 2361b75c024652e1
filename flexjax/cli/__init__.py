"""The command line.

A command is one file with ``Args`` (a dataclass) and ``run(args)``, and one line in the table of
``_main.py``.
"""

from flexjax.cli._main import main as main
