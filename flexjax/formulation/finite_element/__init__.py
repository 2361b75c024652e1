"""Planar arms of Euler-Bernoulli links in finite elements (My, Bien, Le, Packianather)."""

from flexjax.formulation.finite_element._formulation import FiniteElement as FiniteElement
