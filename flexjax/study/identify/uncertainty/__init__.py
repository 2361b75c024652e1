"""Confidence of estimates: covariance, bootstrap, posterior samples."""
