"""Static facts: which robots fit (a rigid carrier, then one elastic arm of tubes), the stages of the carrier, the segments and elements of the arm."""

import dataclasses

from flexjax.formulation.moving_beam._shapes import SPATIAL, Shapes
from flexjax.mechanism import chain_order, serial_refusals
from flexjax.robot import Robot

CARRIER_JOINTS = ("revolute", "universal", "fixed", "prismatic")


@dataclasses.dataclass(frozen=True)
class Stage:
    """One joint (or one axis of a universal joint) of the carrier and the body behind it."""

    joint: int
    part: int
    dof: int  # index among the joint coordinates; -1 for a fixed joint
    link: int  # index of the rigid link behind it; -1 for none
    last: bool  # the last part of its joint: hub and joint mass sit here
    turns: bool  # about its axis; otherwise it shifts along it, if it moves at all


@dataclasses.dataclass(frozen=True)
class Segment:
    """A stretch of the arm with the same tubes (``layers``, counted along the arm) and ``elements`` of equal length."""

    layers: tuple[int, ...]
    elements: int


@dataclasses.dataclass(frozen=True)
class Layout:
    """Order of the coordinates: joints in robot order, then per element the unknowns of its outer node and its own."""

    stages: tuple[Stage, ...]
    tubes: tuple[int, ...]  # links of the arm, base to tip
    slides: bool  # the first tube runs out of its joint (its part behind the joint is straight and rigid)
    lengths: tuple[int, ...]  # indices of the length coordinates among the joint coordinates
    length_joints: tuple[int, ...]
    segments: tuple[Segment, ...]
    dofs: int
    planar: bool
    shapes: Shapes

    @property
    def elements(self) -> int:
        return sum(s.elements for s in self.segments)

    @property
    def node(self) -> int:
        """Unknowns of a node: ux, uy, uy' in the plane; ux, alpha, uy, uy', uz, uz' in space."""
        return self.shapes.node

    @property
    def width(self) -> int:
        """Unknowns per element: of its outer node, and its own."""
        return self.shapes.node + self.shapes.own

    @property
    def nv(self) -> int:
        return self.dofs + self.elements * self.width

    @property
    def length_of_tube(self) -> tuple[int, ...]:
        """For each tube the position among the lengths of the coordinate that moves it; -1 if none does."""
        first = () if self.slides else (-1,)
        return first + tuple(range(len(self.lengths)))


def split(robot: Robot) -> tuple[list[int], list[int]]:
    """(joints of the carrier, joints of the arm): the arm begins with the first elastic link."""
    order = chain_order(robot)
    for k, i in enumerate(order):
        if robot.links[robot.link_index(robot.joints[i].child)].elastic:
            return order[:k], order[k:]
    return order, []


def refusals(robot: Robot, elements: int) -> list[str]:
    faults = serial_refusals(robot)
    if len(chain_order(robot)) != len(robot.tree_joints):
        return faults
    carrier, arm = split(robot)
    if not arm:
        faults.append("links: all are rigid; expected an elastic link at the end of the chain")
    for i in carrier + arm[:1]:
        joint = robot.joints[i]
        if joint.type not in CARRIER_JOINTS:
            faults.append(
                f"joints.{joint.name}.type: {joint.type}; expected one of {', '.join(CARRIER_JOINTS)} ahead of the beam"
            )
        elif joint.telescopes and i in carrier:
            faults.append(
                f"joints.{joint.name}: a rigid link that slides through its joint; expected an axis (a plain shift)"
            )
    for i in arm[1:]:
        joint = robot.joints[i]
        if not joint.telescopes:
            faults.append(
                f"joints.{joint.name}: a {joint.type} joint behind an elastic link; expected only telescope joints there (prismatic without axis)"
            )
        elif joint.offset is not None or joint.rotation is not None:
            faults.append(f"joints.{joint.name}: offset or rotation; expected tubes on one line")
        elif joint.hub is not None or joint.mass is not None:
            faults.append(f"joints.{joint.name}: hub or mass; expected it as a payload on the tube")
    for joint in robot.tree_joints:
        if joint.flexible:
            faults.append(f"joints.{joint.name}.stiffness: a flexible joint; expected a rigid one")
    faults += _link_refusals(robot, arm)
    if arm and not faults and elements < len(_segments(robot, arm, 10**6)):
        faults.append(
            f"elements: {elements}; expected at least {len(_segments(robot, arm, 10**6))}, one for each stretch of constant section or overlap"
        )
    return faults


def _link_refusals(robot: Robot, arm: list[int]) -> list[str]:
    faults = []
    slides = bool(arm) and robot.joints[arm[0]].telescopes
    for k, i in enumerate(arm):
        link = robot.links[robot.link_index(robot.joints[i].child)]
        where = f"links.{link.name}"
        if not link.elastic:
            faults.append(f"{where}: a rigid link behind an elastic one; expected it as a payload")
            continue
        if link.curvature is not None:
            faults.append(f"{where}.curvature: initially curved; expected a straight beam")
        parts = link.pieces or (link,)
        if any(p.section_end is not None for p in parts):
            faults.append(
                f"{where}: tapered; expected pieces of constant section (the product integrals are made for them)"
            )
        if link.pieces and (len(arm) > 1 or slides or k):
            faults.append(
                f"{where}.pieces: a moving tube with several sections; expected one section per tube"
            )
        if link.damping is not None and link.damping.modal is not None:
            faults.append(f"{where}.damping.modal: expected strain_rate or mass")
        if not robot.planar and any(
            p.constants is not None and p.constants.rhoIx is None for p in parts
        ):
            faults.append(
                f"{where}.constants.rhoIx: absent, so torsion has no inertia; give it, or set planar = true"
            )
    return faults


def _segments(robot: Robot, arm: list[int], elements: int) -> tuple[Segment, ...]:
    links = [robot.links[robot.link_index(robot.joints[i].child)] for i in arm]
    if len(links) == 1:
        layers = [(0,)] * max(1, len(links[0].pieces))
    else:
        layers = [(0,)] + [x for k in range(1, len(links)) for x in ((k - 1, k), (k,))]
    count = [elements // len(layers)] * len(layers)
    # What is left over goes to single tubes first: overlaps are short and stiff.
    for k in sorted(range(len(layers)), key=lambda k: (len(layers[k]), k))[
        : elements % len(layers)
    ]:
        count[k] += 1
    return tuple(Segment(x, n) for x, n in zip(layers, count, strict=True))


def layout(robot: Robot, elements: int, shapes: Shapes = SPATIAL) -> Layout:
    start = {name: sl.start for name, sl in robot.dof_slices().items()}
    carrier, arm = split(robot)
    slides = robot.joints[arm[0]].telescopes
    stages = []
    for i in carrier + arm[:1]:
        joint = robot.joints[i]
        parts = 2 if joint.type == "universal" else 1
        moves = joint.type != "fixed" and not (slides and i == arm[0])
        for part in range(parts):
            last = part == parts - 1
            link = robot.link_index(joint.child) if last and i in carrier else -1
            stages.append(
                Stage(
                    i,
                    part,
                    start[joint.name] + part if moves else -1,
                    link,
                    last,
                    moves and joint.type != "prismatic",
                )
            )
    moving = arm if slides else arm[1:]
    return Layout(
        stages=tuple(stages),
        tubes=tuple(robot.link_index(robot.joints[i].child) for i in arm),
        slides=slides,
        lengths=tuple(start[robot.joints[i].name] for i in moving),
        length_joints=tuple(moving),
        segments=_segments(robot, arm, elements),
        dofs=robot.dofs,
        planar=robot.planar,
        shapes=shapes.flat() if robot.planar else shapes,
    )
