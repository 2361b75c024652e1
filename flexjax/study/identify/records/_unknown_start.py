"""A start that is estimated from the readings of a recording."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class UnknownStart:
    """Start of an experiment: the vibration and the states of filters that its readings show.

    A recording rarely starts at rest. Amplitude and phase of the lowest modes, and the states of
    low-pass filters, are estimated together with the parameters, each recording's own. A validation
    recording gets them from its first samples alone, as an ARX model does. Their prior is an effect
    as large as the readings.

    Arguments:
        samples: number of first samples that determine the start of a validation recording.
        modes: number of modes, of the model in which the search starts, without friction.

    >>> import flexjax as fx
    >>> fx.UnknownStart(12)
    UnknownStart(samples=12, modes=1)
    """

    samples: int
    modes: int = 1

    def __post_init__(self):
        if not (isinstance(self.samples, int) and self.samples >= 2):
            raise ValueError(f"samples: {self.samples}; expected a whole number of at least 2.")
        if not (isinstance(self.modes, int) and self.modes >= 0):
            raise ValueError(f"modes: {self.modes}; expected a whole number of at least 0.")
