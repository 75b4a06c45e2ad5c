"""FMUs for co-simulation: the exported C behind FMI 3.0 or 2.0, compiled for the platform at hand."""
