"""The order in which parallel workers take the files of tests."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from tests.conftest import LONG, ROOT, order, pytest_xdist_make_scheduler, scope


def test_long_files_come_first():
    assert all((ROOT / file).exists() for file in LONG)
    names = [f"{LONG[1]}::test_a[x]", "tests/test_other.py::test_b", f"{LONG[0]}::test_c[x]"]
    assert sorted(names, key=order) == [names[2], names[0], names[1]]


def test_parameters_of_the_contract_go_to_different_workers():
    assert scope("tests/test_contract.py::test_a[x]") != scope("tests/test_contract.py::test_a[y]")
    assert scope("tests/test_other.py::test_a[x]") == scope("tests/test_other.py::test_b[y]")


def test_a_parallel_run_starts_with_them():
    """Two workers take one file each at the start, then one more each."""
    pytest.importorskip("xdist")
    options = {"dist": "loadfile", "tx": ["popen", "popen"]}
    config = SimpleNamespace(getvalue=options.get, option=SimpleNamespace(loadscopereorder=True))
    scheduler = pytest_xdist_make_scheduler(config, None)
    files = ["tests/test_many.py"] * 5 + ["tests/test_other.py", LONG[1], LONG[2], LONG[3]]
    tests = [f"{file}::test_{k}" for k, file in enumerate(files)]
    workers = [Mock(shutting_down=False) for _ in range(2)]
    for worker in workers:
        scheduler.add_node(worker)
        scheduler.add_node_collection(worker, tests)
    scheduler.schedule()
    sent = [[i for call in w.send_runtest_some.call_args_list for i in call[0][0]] for w in workers]
    assert sent == [[6, 8], [7, 0, 1, 2, 3, 4]]
