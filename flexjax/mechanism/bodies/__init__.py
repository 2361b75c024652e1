"""Bodies: sections, rigid inertia, natural frequencies, and the description of a robot."""
