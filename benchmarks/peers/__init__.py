"""Other libraries, one file each, used as their documentation advises."""

from benchmarks.peers.control_response import forced_response
from benchmarks.peers.diffrax_solve import diffrax_solve
from benchmarks.peers.initial_value import initial_value
from benchmarks.peers.linear_simulation import lsim
from benchmarks.peers.peer import Peer
from benchmarks.peers.pymor_steps import implicit_midpoint

EXACT = (
    Peer("scipy.signal.lsim", "scipy", lsim),
    Peer("control.forced_response", "control", forced_response),
)
SOLVERS = (
    Peer("solve_ivp DOP853", "scipy", initial_value("DOP853"), tolerance=1e-8, n_steps=100),
    Peer("solve_ivp LSODA", "scipy", initial_value("LSODA"), tolerance=1e-8, n_steps=100),
    Peer("solve_ivp Radau", "scipy", initial_value("Radau"), tolerance=1e-8, n_steps=10, for_stiff=True),
    Peer("diffrax Tsit5", "diffrax", diffrax_solve("Tsit5"), tolerance=1e-8, n_steps=100),
    Peer("diffrax Kvaerno5", "diffrax", diffrax_solve("Kvaerno5"), tolerance=1e-8, n_steps=10, for_stiff=True),
    Peer("pyMOR implicit midpoint", "pymor", implicit_midpoint(1), n_steps=100),
)
