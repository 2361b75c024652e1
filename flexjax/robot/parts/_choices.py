"""Names that a robot file chooses from. Imports no jax: `flexjax check` reads them."""

# Degrees of freedom of each joint type. "free" is the joint of a floating base: translation in
# parent axes, then rotation.
JOINT_DOFS = {
    "revolute": 1,
    "fixed": 0,
    "sliding": 1,
    "prismatic": 1,
    "universal": 2,
    "spherical": 3,
    "free": 6,
}
SENSOR_KINDS = (
    "encoder",
    "motor_encoder",
    "tip",
    "strain_gauge",
    "flex",
    "accelerometer",
    "torque",
)

MATERIALS = {
    "aluminium": {"E": 70e9, "nu": 0.33, "rho": 2700.0},
    "steel": {"E": 210e9, "nu": 0.3, "rho": 7850.0},
    "stainless-steel": {"E": 193e9, "nu": 0.3, "rho": 8000.0},
    "titanium": {"E": 114e9, "nu": 0.34, "rho": 4430.0},
    "brass": {"E": 100e9, "nu": 0.34, "rho": 8500.0},
    "carbon-epoxy": {"E": 135e9, "G": 5e9, "rho": 1600.0},
    "glass-epoxy": {"E": 40e9, "G": 4e9, "rho": 1900.0},
    "abs": {"E": 2.2e9, "nu": 0.35, "rho": 1050.0},
    "pla": {"E": 3.5e9, "nu": 0.36, "rho": 1240.0},
}

# The class of a section by its shape in a robot file.
SECTIONS = {
    "rectangle": "Rectangle",
    "circle": "Circle",
    "tube": "Tube",
    "i": "IBeam",
    "given": "GivenSection",
}
