"""What users do with gradients and batches."""
