"""The problem behind a move: free parameters, costs, limits and samples."""

from flexjax.study.optimise.problem._costs import (
    COSTS as COSTS,
    HOLDS as HOLDS,
    SQUARES as SQUARES,
    Cost as Cost,
    Minimise as Minimise,
    Move as Move,
    read_costs as read_costs,
)
from flexjax.study.optimise.problem._feasible import (
    check_duration as check_duration,
    check_ends as check_ends,
    check_rest as check_rest,
)
from flexjax.study.optimise.problem._limits import (
    MARGINS as MARGINS,
    SHAPED as SHAPED,
    Limit as Limit,
    read_limits as read_limits,
)
from flexjax.study.optimise.problem._motions import (
    at_rest as at_rest,
    check_coordinates as check_coordinates,
    drivable as drivable,
    inner_values as inner_values,
    known_coordinates as known_coordinates,
    read_end as read_end,
    spline_drive as spline_drive,
    spline_scales as spline_scales,
    spline_values as spline_values,
)
from flexjax.study.optimise.problem._problem import (
    Curved as Curved,
    Duration as Duration,
    Problem as Problem,
)
from flexjax.study.optimise.problem._samples import (
    Samples as Samples,
    Spread as Spread,
    read_samples as read_samples,
)
