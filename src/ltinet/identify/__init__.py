"""From measured data to a continuous-time system."""
