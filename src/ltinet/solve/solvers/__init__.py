"""The paper's forward passes: one differential equation per neuron, by SciPy's solvers."""
