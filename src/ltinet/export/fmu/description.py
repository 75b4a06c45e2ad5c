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
MAX_STEPS_PER_DT = 16  # communication steps for each dt of the longest delay, for which an FMU has room
VERSIONS: tuple[Version, ...] = ("3.0", "2.0")
_UNIT = re.compile(r".*\S\s*[(\[]([^()\[\]]+)[)\]]")  # a unit is part of a name: "Force (N)"
_CAPABILITIES = {
    "canHandleVariableCommunicationStepSize": "true",
    "canBeInstantiatedOnlyOncePerProcess": "false",
}
_ATTRIBUTES = {
    "input": {"causality": "input", "variability": "continuous"},
    "output": {"causality": "output", "variability": "continuous", "initial": "calculated"},
    "independent": {"causality": "independent", "variability": "continuous"},
}


@dataclass(frozen=True)
class ModelDescription:
    """What a description tells of a model."""

    name: str
    identifier: str
    token: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    model: StepModel
    sources: Sequence[str]
    signals: SignalSettings = NO_SETTINGS

    @property
    def units(self) -> list[str]:
        """Every unit once, in the order in which they come."""
        found = [unit_in_name(name) for name in (*self.inputs, *self.outputs)]
        return list(dict.fromkeys(unit for unit in found if unit is not None))

    def direct(self, output: int) -> list[int]:
        """The inputs that an output depends on at once."""
        late = self.signals.total_delay(len(self.outputs), len(self.inputs))[output] > 0.0
        return [int(place) for place in np.flatnonzero(np.where(late, 0.0, self.model.D[output]))]

    @property
    def starts(self) -> list[str]:
        """What inputs begin at: the operating point."""
        return [repr(own) if own else "0" for own in self.signals.array("u0", len(self.inputs)).tolist()]

    @property
    def told(self) -> dict[str, str]:
        """The attribute with a description, for a model with delays or an operating point."""
        return {"description": " ".join(_usage_notes(self))} if self.signals.shifts_signals else {}


def _usage_notes(described: ModelDescription) -> list[str]:
    """What an importer has to know of delays, the operating point and the hold."""
    signals, said = described.signals, []
    for name, what in (("input_delay", "Inputs are delayed by"), ("output_delay", "Outputs are delayed by")):
        own = getattr(signals, name)
        if own is not None:
            said.append(f"{what} {', '.join(map(repr, own))}.")
    if signals.has_operating_point:
        u0, y0 = (
            signals.array(*own).tolist() for own in (("u0", len(described.inputs)), ("y0", len(described.outputs)))
        )
        said.append(f"Outputs less [{', '.join(map(repr, y0))}] respond to inputs less [{', '.join(map(repr, u0))}].")
    said.append("Before the first communication step inputs are at their operating point.")
    if signals.has_delays:
        said.append("Delays are exact at communication steps of any length.")
        between = (
            "go in straight lines from one communication point to the next"
            if signals.hold == "linear"
            else ("are kept from one communication point to the next")
        )
        said.append(f"Delayed inputs {between}, as the hold of the model says, unless derivatives of inputs are given.")
        if signals.hold == "linear":
            said.append("What is not known yet, where a delay is shorter than a communication step, is kept.")
        said.append(
            f"There is room for communication steps that are {MAX_STEPS_PER_DT} times as short as the step size of the "
            "default experiment, on average over the longest delay; beyond, a step fails."
        )
    return said


def documentation_html(described: ModelDescription, version: Version) -> bytes:
    """documentation/index.html."""
    page = ElementTree.Element("html", lang="en")
    head = _add_element(page, "head")
    _add_element(head, "meta", charset="utf-8")
    _add_element(head, "title").text = described.name
    body = _add_element(page, "body")
    _add_element(body, "h1").text = described.name
    _add_element(body, "p").text = f"A linear time-invariant model, FMI {version}."
    items = _add_element(body, "ul")
    for sentence in _usage_notes(described):
        _add_element(items, "li").text = sentence
    ElementTree.indent(page)
    return b"<!DOCTYPE html>\n" + bytes(ElementTree.tostring(page, encoding="UTF-8", method="html")) + b"\n"


def unit_in_name(name: str) -> str | None:
    """The unit in a name, None where there is none."""
    found = _UNIT.fullmatch(name)
    return found[1].strip() or None if found else None


def model_description_xml(described: ModelDescription, version: Version) -> bytes:
    """The file."""
    root = _fmi3(described) if version == "3.0" else _fmi2(described)
    return _serialize_xml(root)


def build_description_xml(described: ModelDescription) -> bytes:
    """sources/buildDescription.xml of FMI 3.0."""
    root = ElementTree.Element("fmiBuildDescription", fmiVersion="3.0")
    configuration = _add_element(root, "BuildConfiguration", modelIdentifier=described.identifier)
    sources = _add_element(configuration, "SourceFileSet", language="C99")
    for name in described.sources:
        _add_element(sources, "SourceFile", name=name)
    return _serialize_xml(root)


def _add_element(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    return ElementTree.SubElement(parent, tag, attributes)


def _serialize_xml(root: ElementTree.Element) -> bytes:
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="UTF-8", xml_declaration=True)) + b"\n"


def _fmi3(described: ModelDescription) -> ElementTree.Element:
    root = ElementTree.Element(
        "fmiModelDescription",
        fmiVersion="3.0",
        modelName=described.name,
        instantiationToken=described.token,
        generationTool="ltinet",
        variableNamingConvention="flat",
    )
    root.attrib.update(described.told)
    _add_element(
        root,
        "CoSimulation",
        modelIdentifier=described.identifier,
        canGetAndSetFMUState="true",
        canSerializeFMUState="true",
        fixedInternalStepSize=repr(described.model.dt),
        **_CAPABILITIES,
    )
    _units(root, described)
    _add_element(root, "DefaultExperiment", startTime="0", stepSize=repr(described.model.dt))
    variables = _add_element(root, "ModelVariables")
    _variables_of_fmi3(variables, described)
    structure = _add_element(root, "ModelStructure")
    for kind in ("Output", "InitialUnknown"):
        for output in range(len(described.outputs)):
            direct = described.direct(output)
            _add_element(
                structure,
                kind,
                valueReference=str(len(described.inputs) + output),
                dependencies=" ".join(map(str, direct)),
                dependenciesKind=" ".join(["constant"] * len(direct)),
            )
    return root


def _variables_of_fmi3(variables: ElementTree.Element, described: ModelDescription) -> None:
    for place, (name, causality) in enumerate(_variables(described)):
        unit = unit_in_name(name) if causality != "independent" else None
        own = _ATTRIBUTES[causality] | ({} if unit is None else {"unit": unit})
        start = {"start": described.starts[place]} if causality == "input" else {}
        _add_element(variables, "Float64", name=name, valueReference=str(place), **own, **start)


def _fmi2(described: ModelDescription) -> ElementTree.Element:
    root = ElementTree.Element(
        "fmiModelDescription",
        fmiVersion="2.0",
        modelName=described.name,
        guid=described.token,
        generationTool="ltinet",
        variableNamingConvention="flat",
        numberOfEventIndicators="0",
    )
    root.attrib.update(described.told)
    simulation = _add_element(
        root,
        "CoSimulation",
        modelIdentifier=described.identifier,
        canInterpolateInputs="true",
        canGetAndSetFMUstate="true",
        canSerializeFMUstate="true",
        **_CAPABILITIES,
    )
    sources = _add_element(simulation, "SourceFiles")
    for name in described.sources:
        _add_element(sources, "File", name=name)
    _units(root, described)
    _add_element(root, "DefaultExperiment", startTime="0", stepSize=repr(described.model.dt))
    variables = _add_element(root, "ModelVariables")
    _variables_of_fmi2(variables, described)
    structure = _add_element(root, "ModelStructure")
    for group in ("Outputs", "InitialUnknowns"):
        unknowns = _add_element(structure, group) if described.outputs else structure
        for output in range(len(described.outputs)):
            direct = described.direct(output)
            _add_element(
                unknowns,
                "Unknown",
                index=str(len(described.inputs) + output + 1),
                dependencies=" ".join(str(place + 1) for place in direct),
                dependenciesKind=" ".join(["constant" if group == "Outputs" else "dependent"] * len(direct)),
            )
    return root


def _variables_of_fmi2(variables: ElementTree.Element, described: ModelDescription) -> None:
    for place, (name, causality) in enumerate(_variables(described)):
        variable = _add_element(
            variables, "ScalarVariable", name=name, valueReference=str(place), **_ATTRIBUTES[causality]
        )
        unit = unit_in_name(name) if causality != "independent" else None
        start = {"start": described.starts[place]} if causality == "input" else {}
        _add_element(variable, "Real", **({} if unit is None else {"unit": unit}), **start)


def _variables(described: ModelDescription) -> list[tuple[str, str]]:
    """Names and causalities of all variables, time last; a name that comes twice gets its causality behind it."""
    found: dict[str, str] = {}
    for causality, own in (("input", described.inputs), ("output", described.outputs), ("independent", ["time"])):
        for given in own:
            name = given
            while name in found:
                name = f"{name} {causality}"
            found[name] = causality
    return list(found.items())


def _units(root: ElementTree.Element, described: ModelDescription) -> None:
    if not described.units:
        return
    units = _add_element(root, "UnitDefinitions")
    for unit in described.units:
        _add_element(units, "Unit", name=unit)
