"""From continuous time to discrete time and back."""
