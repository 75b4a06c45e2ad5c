"""ONNX graphs: chunks of time as matrix products, states carried between them on two levels."""
