"""ONNX graphs: blocks of time as matrix products, states carried between them on two levels."""
