"""The environment of docs/control.md is one that Gymnasium accepts, and it can be learned."""

import jax
import numpy as np
import pytest

from tests.test_docs import blocks


@pytest.fixture(scope="module")
def environment():
    pytest.importorskip("gymnasium")
    space = {}
    with jax.numpy_rank_promotion("allow"):
        for block in blocks("control.md", "python")[:2]:
            exec(compile(block, "control.md", "exec"), space)
    return space["environment"]


@pytest.mark.docs
@pytest.mark.filterwarnings("ignore::UserWarning")  # Gymnasium's advice about unbounded spaces
def test_gymnasium_accepts_the_environment(environment):
    from gymnasium.utils.env_checker import check_env

    check_env(environment, skip_render_check=True)


@pytest.mark.docs
def test_an_episode_ends_and_depends_on_the_action(environment):
    """A controller that pulls the arm to the target earns more than one that does nothing."""

    def episode(policy):
        observation, _ = environment.reset(seed=1)
        total, count, over = 0.0, 0, False
        while not over:
            observation, reward, ended, stopped, _ = environment.step(policy(observation))
            total, count, over = total + reward, count + 1, ended or stopped
        assert count == environment.steps and not ended
        return total

    def reach(seen):
        q, qd, target = seen[:2].astype(float), seen[2:4].astype(float), seen[6:8].astype(float)
        bend = -np.arccos((target @ target - 0.5**2 - 0.4**2) / (2 * 0.5 * 0.4))
        turn = np.arctan2(0.4 * np.sin(bend), 0.5 + 0.4 * np.cos(bend))
        goal = np.array([np.arctan2(target[1], target[0]) - turn, bend])
        effort = np.array([40.0, 15.0]) * (goal - q) - np.array([3.0, 0.8]) * qd
        return np.clip(effort / environment.limits, -1, 1).astype(np.float32)

    assert episode(reach) > episode(lambda seen: np.zeros(2, np.float32)) + 5
