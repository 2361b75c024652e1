"""How the best move is found: on the host, or inside jit."""

from flexjax.study.optimise.search._host import Found as Found, Point as Point, Search as Search
from flexjax.study.optimise.search._inside import (
    Setting as Setting,
    best_of as best_of,
    box as box,
    search_one as search_one,
)
from flexjax.study.optimise.search._methods import METHODS as METHODS
from flexjax.study.optimise.search._sqp import Iterate as Iterate
