"""File formats for systems and networks: MATLAB, HDF5, NumPy, Matrix Market, safetensors."""
