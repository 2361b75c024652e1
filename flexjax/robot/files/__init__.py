"""Robot files: TOML, JSON, URDF, and their schema."""
