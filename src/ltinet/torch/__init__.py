"""Networks as PyTorch modules."""
