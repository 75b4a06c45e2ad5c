"""The trade of the paper: what each connection less costs in cond(T)."""

from ltinet.explorer.subject import Subject
from ltinet.explorer.views.numbers import Plain, exact


def trade_view(subject: Subject, place: int) -> Plain:
    """Every rung of the ladder, a budget that buys it, and the one that is bought now."""
    rungs = subject.ladder
    return {
        "condition": [exact(rung.condition) for rung in rungs],
        "layers": [rung.n_layers for rung in rungs],
        "connections": [rung.n_connections for rung in rungs],
        "budgets": list(subject.budgets),
        "place": place,
    }
