"""The registry of formulations: public name -> dotted name of the class.

A new formulation joins with one line. The table imports nothing, so `import flexjax` stays lazy.
"""

REGISTRY = {
    "RigidArm": "flexjax.formulation.rigid_arm.RigidArm",
    "ScrewSynthesis": "flexjax.formulation.screw_synthesis.ScrewSynthesis",
    "FiniteElement": "flexjax.formulation.finite_element.FiniteElement",
    "MovingBeam": "flexjax.formulation.moving_beam.MovingBeam",
    "TransferMatrix": "flexjax.formulation.transfer_matrix.TransferMatrix",
    "PortHamiltonian": "flexjax.formulation.port_hamiltonian.PortHamiltonian",
}
