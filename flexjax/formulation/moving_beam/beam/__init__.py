"""One beam of variable length: shape functions and strains."""
