"""Efforts over a horizon: multiple shooting, and a receding horizon."""

from flexjax.study.optimise.horizon._mpc import Mpc as Mpc, mpc as mpc
from flexjax.study.optimise.horizon._shoot import Plan as Plan, shoot as shoot
