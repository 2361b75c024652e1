"""Black-box models fitted to the same recordings: ARX and N4SID."""
