"""Every rule that a robot must meet."""
