"""Built-in systems as they are typed: `example:heat_rod`, or with parameters `example:heat_rod,n_states=20`."""

import inspect
import os
from collections.abc import Iterator

from ltinet.errors import InvalidSystemError
from ltinet.model.library import NAMED_SYSTEMS
from ltinet.shown import shown
from ltinet.state_space import StateSpace
from ltinet.systems import named_system

EXAMPLE = "example:"
_BREAKS = (":", "=")  # where bash cuts words


def built_in_system(text: str) -> StateSpace:
    """The system of a name and its parameters, which commas separate; a shell takes all of it as one word.

    Raises:
        InvalidSystemError: there is no such system, it has no such parameter, or a value does not fit.
    """
    name, *assignments = text.split(",")
    parameters: dict[str, int | float] = {}
    for assignment in assignments:
        key, equals, value = (part.strip() for part in assignment.partition("="))
        if not equals or not key or key in parameters:
            raise InvalidSystemError(
                f"{shown(repr(assignment))} is not a parameter and its number, each once, as in {_sample(name)}"
            )
        parameters[key] = _number(key, value)
    return named_system(name, **parameters)


def completed_source(incomplete: str) -> list[str]:
    """What an argument that begins like this may go on with: built-in systems and their parameters."""
    return [full for full in _continued(incomplete) if full.startswith(incomplete)]


def answer_to_bash() -> list[str] | None:
    """What `example:heat_rod,n` may go on with in bash, None where something else is to be completed.

    Bash cuts words at colons and equals signs, and replaces by the answer only what stands behind the last of them. The
    word is put together again in the environment, where the completion of what comes after it looks for it.
    """
    words, place = os.environ.get("COMP_WORDS", "").split(), os.environ.get("COMP_CWORD", "")
    if not os.environ.get("_LTINET_COMPLETE", "").endswith("bash") or not place.isdigit():
        return None
    start = next((at for at in range(len(words) - 1) if words[at : at + 2] == [EXAMPLE[:-1], ":"]), None)
    if start is None:
        return None
    stop = start + 1
    while stop < len(words) and (words[stop] in _BREAKS or words[stop - 1] in _BREAKS):
        stop += 1
    whole = "".join(words[start:stop])
    if start <= int(place) < stop:
        kept = max(whole.rfind(mark) for mark in _BREAKS) + 1
        return [full[kept:] for full in completed_source(whole)]
    os.environ["COMP_WORDS"] = " ".join([*words[:start], whole, *words[stop:]])
    os.environ["COMP_CWORD"] = str(int(place) - (stop - start - 1))
    return None


def _continued(whole: str) -> Iterator[str]:
    if not whole.startswith(EXAMPLE) or "," not in whole:
        yield from (f"{EXAMPLE}{name}" for name in NAMED_SYSTEMS)
        return
    begun, _, _ = whole.rpartition(",")
    name, *given = begun.removeprefix(EXAMPLE).split(",")
    if name in NAMED_SYSTEMS:
        used = {assignment.partition("=")[0] for assignment in given}
        yield from (f"{begun},{key}=" for key in _parameters(name) if key not in used)


def _number(key: str, value: str) -> int | float:
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        raise InvalidSystemError(f"{shown(key)} is {shown(repr(value))}; it must be a number") from None


def _parameters(name: str) -> dict[str, object]:
    return {key: parameter.default for key, parameter in inspect.signature(NAMED_SYSTEMS[name]).parameters.items()}


def _sample(name: str) -> str:
    known = name if name in NAMED_SYSTEMS else "heat_rod"
    key, value = next(iter(_parameters(known).items()))
    return f"{EXAMPLE}{known},{key}={value}"
