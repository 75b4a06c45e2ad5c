"""`modelDescription.xml` of FMI 2.0 and 3.0.

Names and units of variables, start values, documentation, and the dependence of outputs on inputs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

import numpy as np

from ltinet.export.step_model import StepModel
from ltinet.systems.signal_settings import NO_SETTINGS, SignalSettings

Version = Literal["3.0", "2.0"]
MAX_STEPS_PER_DT = 16  # communication steps per dt of the longest delay that an FMU can store
VERSIONS: tuple[Version, ...] = ("3.0", "2.0")
_UNIT = re.compile(r".*\S\s*[(\[]([^()\[\]]+)[)\]]")  # a unit at the end of a name: "Force (N)"
_CAPABILITIES = {"canHandleVariableCommunicationStepSize": "true", "canBeInstantiatedOnlyOncePerProcess": "false"}
_ATTRIBUTES = {
    "input": {"causality": "input", "variability": "continuous"},
    "output": {"causality": "output", "variability": "continuous", "initial": "calculated"},
    "independent": {"causality": "independent", "variability": "continuous"},
}


@dataclass(frozen=True)
class ModelDescription:
    """Facts of a model for `modelDescription.xml`."""

    name: str
    identifier: str
    token: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    model: StepModel
    sources: Sequence[str]
    signals: SignalSettings = NO_SETTINGS

    def direct(self, output: int) -> list[int]:
        """Return the inputs that an output depends on without delay."""
        is_delayed = self.signals.total_delay(len(self.outputs), len(self.inputs))[output] > 0.0
        return [int(index) for index in np.flatnonzero(np.where(is_delayed, 0.0, self.model.D[output]))]


def _usage_notes(description: ModelDescription) -> list[str]:
    """Return sentences on delays, operating point and hold for the importer."""
    signals, notes = description.signals, []
    for name, text in (("input_delay", "Inputs are delayed by"), ("output_delay", "Outputs are delayed by")):
        delays = getattr(signals, name)
        if delays is not None:
            notes.append(f"{text} {', '.join(map(repr, delays))}.")
    if signals.has_operating_point:
        u0, y0 = signals.array("u0", len(description.inputs)), signals.array("y0", len(description.outputs))
        u0_text, y0_text = (", ".join(map(repr, values.tolist())) for values in (u0, y0))
        notes.append(f"Outputs minus [{y0_text}] respond to inputs minus [{u0_text}].")
    notes.append("Before the first communication step inputs are at their operating point.")
    if signals.has_delays:
        notes.append("Delays are exact at communication steps of any length.")
        shape = "linear" if signals.hold == "linear" else "constant"
        notes.append(
            f"Delayed inputs are {shape} between communication points, which is the hold of the model, unless their "
            "derivatives are set."
        )
        if signals.hold == "linear":
            notes.append("Where a delay is shorter than a communication step, the last known value is held.")
        notes.append(
            f"On average over the longest delay, communication steps must not be shorter than 1/{MAX_STEPS_PER_DT} of the "
            "step size of the default experiment; otherwise a step fails."
        )
    return notes


def documentation_html(description: ModelDescription, version: Version) -> bytes:
    """Return documentation/index.html."""
    page = ElementTree.Element("html", lang="en")
    head = _add_element(page, "head")
    _add_element(head, "meta", charset="utf-8")
    _add_element(head, "title").text = description.name
    body = _add_element(page, "body")
    _add_element(body, "h1").text = description.name
    _add_element(body, "p").text = f"A linear time-invariant model, FMI {version}."
    items = _add_element(body, "ul")
    for sentence in _usage_notes(description):
        _add_element(items, "li").text = sentence
    ElementTree.indent(page)
    return b"<!DOCTYPE html>\n" + bytes(ElementTree.tostring(page, encoding="UTF-8", method="html")) + b"\n"


def unit_in_name(name: str) -> str | None:
    """Return the unit at the end of a name, or None."""
    match = _UNIT.fullmatch(name)
    return match[1].strip() or None if match else None


def model_description_xml(description: ModelDescription, version: Version) -> bytes:
    """Return modelDescription.xml."""
    is_fmi3, dt, n_inputs = version == "3.0", repr(description.model.dt), len(description.inputs)
    identity = {"instantiationToken" if is_fmi3 else "guid": description.token}
    attributes = {"fmiVersion": version, "modelName": description.name, **identity, "generationTool": "ltinet"}
    attributes |= {"variableNamingConvention": "flat"} | ({} if is_fmi3 else {"numberOfEventIndicators": "0"})
    if description.signals.shifts_signals:
        attributes["description"] = " ".join(_usage_notes(description))
    root = ElementTree.Element("fmiModelDescription", attributes)
    simulation = _add_element(root, "CoSimulation", modelIdentifier=description.identifier)
    if is_fmi3:
        simulation.attrib.update(canGetAndSetFMUState="true", canSerializeFMUState="true", fixedInternalStepSize=dt)
    else:
        simulation.attrib.update(canInterpolateInputs="true", canGetAndSetFMUstate="true", canSerializeFMUstate="true")
        sources = _add_element(simulation, "SourceFiles")
        for name in description.sources:
            _add_element(sources, "File", name=name)
    simulation.attrib.update(_CAPABILITIES)
    units = dict.fromkeys(filter(None, map(unit_in_name, (*description.inputs, *description.outputs))))
    if units:
        definitions = _add_element(root, "UnitDefinitions")
        for unit in units:
            _add_element(definitions, "Unit", name=unit)
    _add_element(root, "DefaultExperiment", startTime="0", stepSize=dt)
    _add_variables(_add_element(root, "ModelVariables"), description, is_fmi3=is_fmi3)
    structure = _add_element(root, "ModelStructure")
    for kind in ("Output", "InitialUnknown"):
        # FMI 2.0 groups the unknowns and counts variables from 1.
        group = structure if is_fmi3 or not description.outputs else _add_element(structure, f"{kind}s")
        for output in range(len(description.outputs)):
            direct, reference = description.direct(output), n_inputs + output
            dependency_kind = "constant" if is_fmi3 or kind == "Output" else "dependent"
            unknown = {"valueReference": str(reference)} if is_fmi3 else {"index": str(reference + 1)}
            unknown["dependencies"] = " ".join(str(index if is_fmi3 else index + 1) for index in direct)
            unknown["dependenciesKind"] = " ".join([dependency_kind] * len(direct))
            _add_element(group, kind if is_fmi3 else "Unknown", **unknown)
    return _serialize_xml(root)


def _add_variables(parent: ElementTree.Element, description: ModelDescription, *, is_fmi3: bool) -> None:
    """Add all variables; FMI 2.0 has an element for the type inside that of the variable."""
    operating_point = description.signals.array("u0", len(description.inputs)).tolist()
    for index, (name, causality) in enumerate(_variables(description)):
        unit = unit_in_name(name) if causality != "independent" else None
        of_type = {} if unit is None else {"unit": unit}
        if causality == "input":
            of_type["start"] = repr(operating_point[index]) if operating_point[index] else "0"
        common = {"name": name, "valueReference": str(index), **_ATTRIBUTES[causality]}
        if is_fmi3:
            _add_element(parent, "Float64", **common, **of_type)
        else:
            _add_element(_add_element(parent, "ScalarVariable", **common), "Real", **of_type)


def build_description_xml(description: ModelDescription) -> bytes:
    """Return sources/buildDescription.xml of FMI 3.0."""
    root = ElementTree.Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = _add_element(root, "BuildConfiguration", modelIdentifier=description.identifier)
    sources = _add_element(configuration, "SourceFileSet", language="C99")
    for name in description.sources:
        _add_element(sources, "SourceFile", name=name)
    return _serialize_xml(root)


def _add_element(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, tag, attributes)


def _serialize_xml(root: ElementTree.Element) -> bytes:
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)) + b"\n"


def _variables(description: ModelDescription) -> list[tuple[str, str]]:
    """Return names and causalities of all variables, time last; the causality is appended to a name that occurs twice."""
    variables: dict[str, str] = {}
    groups = (("input", description.inputs), ("output", description.outputs), ("independent", ["time"]))
    for causality, name in ((causality, name) for causality, names in groups for name in names):
        unique = name
        while unique in variables:
            unique = f"{unique} {causality}"
        variables[unique] = causality
    return list(variables.items())
