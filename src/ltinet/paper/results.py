"""`results.json`: all numbers of a reproduction for programs, under names that do not change from run to run."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ltinet.paper.number import Number
from ltinet.paper.run import Run
from ltinet.paper.section import Section


def results_text(sections: Sequence[Section], *, run: Run, seconds: Mapping[str, float]) -> str:
    """The file as text; `seconds` says how long each example took to compute."""
    contents = {
        "run": asdict(run),
        "examples": {section.name: {**_example(section), "seconds": seconds[section.name]} for section in sections},
    }
    return json.dumps(contents, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _example(section: Section) -> dict[str, Any]:
    return {
        "section": section.label,
        "title": section.title,
        "numbers": {number.key.split(".", 1)[1]: _number(number) for number in section.numbers},
        "tables": {
            table.name: [dict(zip(table.headings, row, strict=True)) for row in table.rows] for table in section.tables
        },
        "figures": {picture.name: f"figures/{section.name}_{picture.name}" for picture in section.pictures},
    }


def _number(number: Number) -> dict[str, Any]:
    return {
        "meaning": number.meaning,
        "paper": number.paper,
        "here": number.here,
        "expected": number.bounds,
        "verdict": str(number.verdict),
        "note": number.note,
        "band": number.band,
    }
