"""The network in PyTorch beside what state-space layers use instead; needs PyTorch."""
