"""Mathematics that knows no robot."""
