"""Names of MATLAB, SciPy and python-control, and the calls of this library that do the same.

A missing attribute of the module, of a system or of a network is reported with the call to use instead, an unknown keyword
of a constructor with the keyword. In the calls, `system` stands for a `StateSpace`; networks and results say how to get it.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import ParamSpec, TypeVar

EQUIVALENT_CALLS = {
    "NAMED_SYSTEMS": "ltinet.named_system(), which lists the systems",
    "StateSpaceModel": "ltinet.StateSpace(A, B, C, D)",
    "TransferFunction": "ltinet.tf(num, den)",
    "TransferFunctionModel": "ltinet.tf(num, den)",
    "ZerosPolesGain": "ltinet.zpk(zeros, poles, gain)",
    "allmargin": "system.margin()",
    "balred": "ltinet.reduce(system, order=10)",
    "bandwidth": "system.bandwidth()",
    "bode": "system.plot.bode() or system.frequency_response(omega)",
    "bode_plot": "system.plot.bode()",
    "c2d": "system.to_discrete(dt)",
    "connect": "ltinet.interconnect(systems, connections, inputs=…, outputs=…)",
    "construct": "ltinet.construct(system)",
    "d2c": "system.to_continuous()",
    "damp": "system.damping()",
    "damping": "system.damping()",
    "dcgain": "system.dcgain()",
    "dlsim": "system.simulate(u, t)",
    "eig": "system.poles()",
    "evalfr": "system.frequency_response(omega)",
    "exp": "ltinet.tf(num, den, input_delay=…) for a dead time",
    "explore": "ltinet.explore(system)",
    "export_c": "ltinet.construct(system).export_c(folder, dt)",
    "export_fmu": "ltinet.construct(system).export_fmu(path, dt)",
    "export_onnx": "ltinet.construct(system).export_onnx(path, dt)",
    "forced_response": "system.simulate(u, t)",
    "freqresp": "system.frequency_response(omega)",
    "frequency_response": "system.frequency_response(omega)",
    "h2norm": "system.norm(2)",
    "hinf_norm": "system.norm(inf)",
    "hinfnorm": "system.norm(inf)",
    "impulse": "system.impulse_response() or system.plot.impulse()",
    "impulse_response": "system.impulse_response()",
    "initial": "system.initial_response(x0)",
    "initial_response": "system.initial_response(x0)",
    "isstable": "system.isstable()",
    "kalman": "control.lqe of python-control with system.to_control()",
    "loopsens": "ltinet.sensitivity(P, C)",
    "lsim": "system.simulate(u, t)",
    "minreal": "ltinet.reduce(system, tolerance=1e-12)",
    "nyquist_plot": "system.plot.nyquist()",
    "pidstd": "ltinet.pid(kp, ki, kd, tf), the parallel form: ki = kp/Ti, kd = kp Td and tf = Td/N",
    "plot_bode": "system.plot.bode()",
    "plot_nyquist": "system.plot.nyquist()",
    "pole": "system.poles()",
    "poles": "system.poles()",
    "reduce": "ltinet.reduce(system, order=10)",
    "sample": "system.to_discrete(dt)",
    "sample_system": "system.to_discrete(dt)",
    "save": "ltinet.save_system(system, path)",
    "sigma": "numpy.linalg.svd(system.frequency_response(omega), compute_uv=False)",
    "simulate": "system.simulate(u, t)",
    "singular_values_plot": "numpy.linalg.svd(system.frequency_response(omega), compute_uv=False)",
    "ss2tf": "system.tf()",
    "ssdata": "system.A, system.B, system.C and system.D",
    "step": "system.step_response() or system.plot.step()",
    "step_info": "system.step_info()",
    "step_response": "system.step_response()",
    "stepinfo": "system.step_info()",
    "tf2ss": "ltinet.tf(num, den)",
    "to_continuous": "system.to_continuous()",
    "to_control": "system.to_control()",
    "to_discrete": "system.to_discrete(dt)",
    "to_network": "ltinet.construct(system)",
    "to_scipy": "system.to_scipy()",
    "to_torch": "ltinet.construct(system).to_torch(dt)",
    "zero": "system.zeros()",
    "zeros": "system.zeros()",
    "zpk2ss": "ltinet.zpk(zeros, poles, gain)",
}
"""Name that a user may try → call that exists."""
DESIGN_FUNCTIONS = frozenset({
    "acker", "care", "ctrb", "dare", "dlqe", "dlqr", "dlyap", "gram", "h2syn", "hinfsyn", "lqe", "lqr", "lyap",
    "mixsyn", "obsv", "place", "rlocus", "root_locus",
})  # fmt: skip
"""Functions of python-control that this library does not have."""

EQUIVALENT_KEYWORDS = {
    "InputDelay": "input_delay",
    "InputName": "inputs",
    "IODelay": "input_delay",
    "OutputDelay": "output_delay",
    "OutputName": "outputs",
    "StateName": "states",
    "Ts": "dt",
    "dead_time": "input_delay",
    "deadtime": "input_delay",
    "delay": "input_delay",
    "denominator": "den",
    "k": "gain",
    "numerator": "num",
    "p": "poles",
    "sampling_time": "dt",
    "z": "zeros",
}
"""Keyword that a user may try → keyword that exists; those that differ by upper case only are not listed."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def suggest_keywords(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate a function so that a keyword of another library is refused with the name of its own."""
    accepted = frozenset(inspect.signature(function).parameters)

    @wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        for name in kwargs:
            equivalent = EQUIVALENT_KEYWORDS.get(name, name.lower())
            if name not in accepted and equivalent in accepted:
                raise TypeError(f"{function.__qualname__}() has no keyword {name!r}; use {equivalent}")
        return function(*args, **kwargs)

    return call


def missing_attribute(obj: object, name: str, *, system: str = "") -> AttributeError:
    """Return the error for an attribute that a module or an object does not have, with the call to use instead.

    `system` is the expression that leads from the object to its `StateSpace`.
    """
    owner = f"module {obj.__name__!r}" if isinstance(obj, ModuleType) else f"{type(obj).__name__!r} object"
    text = f"{owner} has no attribute {name!r}"
    if name in EQUIVALENT_CALLS:
        call = EQUIVALENT_CALLS[name]
        text += f"; use {call}" + (f" with system = {system}" if system and "system" in call else "")
    elif name in DESIGN_FUNCTIONS:
        text += f"; use control.{name} of python-control with system.to_control()"
    return AttributeError(text, name=name, obj=obj)
