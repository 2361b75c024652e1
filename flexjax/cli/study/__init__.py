"""Commands of studies: identify, optimise, sweep, reproduce."""
