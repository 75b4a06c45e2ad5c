"""From a measured frequency response to a continuous-time system."""
