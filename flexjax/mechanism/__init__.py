"""What every formulation shares: sections, rigid bodies, joint hardware, and what it reports."""

from flexjax.mechanism._rigid_body import (
    centreline_pose as centreline_pose,
    rigid_inertia as rigid_inertia,
)
from flexjax.mechanism._sections import (
    BeamProperties as BeamProperties,
    beam_properties as beam_properties,
    link_quadrature as link_quadrature,
)
from flexjax.mechanism._snapshot import Energy as Energy, Snapshot as Snapshot
