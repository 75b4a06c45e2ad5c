"""What `dir()` and completion show of an object: what its users may use, not what the rooms here hand each other."""


def listed_without(thing: object, *inner: str) -> list[str]:
    """The names that `dir()` lists, without inner ones; these stay reachable."""
    return sorted(set(object.__dir__(thing)) - set(inner))
