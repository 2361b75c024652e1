"""The mathematical forms that a solver accepts."""

from flexjax.term._base import AbstractTerm as AbstractTerm, Mechanical as Mechanical, State as State, unwrap as unwrap
from flexjax.term._second_order import AbstractSecondOrderTerm as AbstractSecondOrderTerm
