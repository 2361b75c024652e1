"""Moving pictures: the scene of a robot, 3D pages, films and glTF files."""
