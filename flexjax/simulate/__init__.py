"""One call from model and drive to trajectory, and what is built on it."""

from flexjax.simulate._simulate import simulate as simulate
