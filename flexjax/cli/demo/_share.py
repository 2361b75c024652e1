"""Two processes share a list of jobs.

Most of the tour is tracing and compiling. Tracing is Python code, so threads of one process would
wait for each other.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, NamedTuple

from flexjax.cli import _common


class Job(NamedTuple):
    """A call of a function of a module; arguments and result are plain data."""

    title: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def results(jobs: Sequence[Job]) -> list[Any]:
    """The results in order. This process takes jobs from the front, another one from the back."""
    waiting, found = deque(range(len(jobs))), [None] * len(jobs)
    lock = threading.Lock()

    def take(end: Callable[[], int], run: Callable[..., Any]) -> None:
        while True:
            with lock:
                if not waiting:
                    return
                k = end()
            _common.log(jobs[k].title)
            try:
                found[k] = run(jobs[k].function, *jobs[k].arguments)
            except BrokenProcessPool:  # no second process here
                waiting.append(k)
                return

    def here() -> None:
        _common.start_jax(0)
        with _common.report_phases():
            take(waiting.popleft, lambda function, *arguments: function(*arguments))

    if (os.cpu_count() or 1) < 2:
        here()
        return found
    context = get_context("spawn")
    with (
        ProcessPoolExecutor(1, context, initializer=_common.start_jax, initargs=(0,)) as other,
        ThreadPoolExecutor(1) as thread,
    ):
        # It starts first: importing jax takes both processes a second.
        back = thread.submit(take, waiting.pop, lambda *call: other.submit(*call).result())
        here()
        back.result()
        here()  # what a broken process has left
    return found
