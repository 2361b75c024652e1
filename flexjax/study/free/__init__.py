"""Free parameters: the paths of a robot, drive and start that a study varies."""

from flexjax.study.free._free import (
    Free as Free,
    FreeLike as FreeLike,
    Parameters as Parameters,
    Target as Target,
    as_free as as_free,
    check_range as check_range,
    listed as listed,
    no_parameters as no_parameters,
    parameters as parameters,
)
