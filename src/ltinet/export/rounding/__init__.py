"""How far rounding may take an exported network from the exact solution of its equations."""
