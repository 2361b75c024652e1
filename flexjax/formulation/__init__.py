"""Formulations: ways to turn a robot into a model. Classes are imported at first use."""

from flexjax.formulation._base import (
    AbstractFormulation as AbstractFormulation,
    AbstractModel as AbstractModel,
    cite as cite,
)
from flexjax.formulation._chain_model import ChainModel as ChainModel
from flexjax.formulation._registry import (
    REGISTRY as REGISTRY,
    formulation as formulation,
    formulations_for as formulations_for,
    refused_by_all as refused_by_all,
)
from flexjax.mechanism import Start as Start


def __getattr__(name: str):
    if name in REGISTRY:
        return formulation(name)
    raise AttributeError(f"module 'flexjax.formulation' has no attribute {name!r}")
