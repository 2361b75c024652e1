"""What a chain consists of, and where it is: layout, parameters, links, kinematics."""
