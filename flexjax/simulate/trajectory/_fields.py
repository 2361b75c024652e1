"""Dimensions, units and meanings of the fields of a trajectory."""

POSE = ("x", "y", "z", "qw", "qx", "qy", "qz")
TWIST = ("vx", "vy", "vz", "wx", "wy", "wz")
WRENCH = ("fx", "fy", "fz", "mx", "my", "mz")
STRAIN = ("axial", "shear_y", "shear_z", "torsion", "curvature_y", "curvature_z")
PARTS = {
    "pose": POSE,
    "axis": ("x", "y", "z"),
    "twist": TWIST,
    "wrench": WRENCH,
    "strain_part": STRAIN,
}
SECTION = ("time", "link", "station")

# field: (dimensions, units, what it is)
FIELDS: dict[str, tuple[tuple[str, ...], str, str]] = {
    "q": (("time", "dof"), "rad or m (see dof_unit)", "joint coordinates, link side"),
    "qd": (("time", "dof"), "rad/s or m/s", "joint rates"),
    "qdd": (("time", "dof"), "rad/s2 or m/s2", "joint accelerations"),
    "motor": (("time", "dof"), "rad or m (see dof_unit)", "joint coordinates, motor side"),
    "effort": (("time", "dof"), "N m or N", "effort of the drive on the motor side"),
    "frames": (
        (*SECTION, "pose"),
        "m (x, y, z), 1 (quaternion)",
        "world frames of the sections",
    ),
    "velocity": ((*SECTION, "twist"), "m/s, rad/s", "twist of the section in its own axes"),
    "acceleration": (
        (*SECTION, "twist"),
        "m/s2, rad/s2",
        "acceleration of the section in its own axes, without gravity",
    ),
    "deflection": (
        (*SECTION, "axis"),
        "m",
        "deflection from the tangent at the link's base, in the axes there",
    ),
    "strain": (
        (*SECTION, "strain_part"),
        "1, 1/m",
        "axial and shear strain, torsion and curvature",
    ),
    "reaction": (
        ("time", "joint", "wrench"),
        "N, N m",
        "wrench of parent on child at the joint, in child axes",
    ),
}
ENERGIES = {
    "kinetic": "kinetic energy",
    "elastic": "elastic energy",
    "gravity": "potential energy of gravity",
    "dissipated": "energy dissipated since the start",
    "work": "work done by drive, loads and moving base since the start",
}
