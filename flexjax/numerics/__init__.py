"""Mathematics, independent of robots."""
