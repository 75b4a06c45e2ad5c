"""Time of an ONNX graph in onnxruntime against the engine, one thread each, by turns, in processor time."""

import tempfile
import time
from pathlib import Path

import numpy as np

import ltinet

N_TIMES = 99_991
DT = 0.01


def milliseconds(net: ltinet.DynamicNetwork, *, turns: int = 7) -> tuple[float, float]:
    """Of the engine and of onnxruntime for the same run, the least of some turns."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    u, t = np.random.default_rng(0).standard_normal((N_TIMES, net.n_inputs)), DT * np.arange(N_TIMES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.onnx"
        net.export_onnx(path, DT)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = {"u": u[None], "state": np.zeros((1, net.n_states))}
    engine, graph = [], []
    for _ in range(turns):
        begun = time.process_time()
        net.simulate(u, t, hold="zero")
        between = time.process_time()
        session.run(None, given)
        engine.append(between - begun)
        graph.append(time.process_time() - between)
    return 1e3 * min(engine), 1e3 * min(graph)
