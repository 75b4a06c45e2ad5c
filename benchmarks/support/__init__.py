"""What measurements share: cases, clocks, the oracle, and how results become tables, figures and quotes."""
