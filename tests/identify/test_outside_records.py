"""Recordings that another code made: the intervals of three formulations cover the truth."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.outside]
FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "identify_bench_arm"


@pytest.fixture(scope="module")
def recovery():
    pytest.importorskip("exudyn")
    spec = importlib.util.spec_from_file_location("recovery", FOLDER / "recovery.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def records(recovery):
    return recovery.outside_records(50)


@pytest.mark.parametrize("name", ["TransferMatrix", "FiniteElement", "PortHamiltonian"])
def test_intervals_cover_what_exudyn_simulated(recovery, records, name, record_number):
    found = recovery.coverage(recovery.FORMULATIONS[name], *records)
    for k, path in enumerate(recovery.NOMINAL):
        what = f"coverage of {path}, Exudyn's recordings, {name}"
        record_number(what, found.coverage[k], (0.90, 0.99), relation="in")
    # A mean of 50 standard errors has one of 0.14.
    largest = np.max(np.abs(recovery.bias(found)))
    record_number(f"bias in standard errors, Exudyn's recordings, {name}", largest, 0.5)
