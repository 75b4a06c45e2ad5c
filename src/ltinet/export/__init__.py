"""Exports of networks: C code, FMUs, ONNX graphs, objects of other libraries, and files of samples."""
