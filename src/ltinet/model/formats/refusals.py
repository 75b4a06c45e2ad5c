"""Why a sound file is not read: what it holds is too large, or is something else than real numbers."""


class BeyondLimitError(ValueError):
    """The arrays of a file exceed `max_bytes`; the message says by which array and how to raise the limit."""


class UnusableError(ValueError):
    """A variable is there and whole, but holds no real numbers."""


def is_complex(name: str) -> UnusableError:
    """The refusal of a complex matrix; neighbouring libraries drop its imaginary part in silence."""
    return UnusableError(
        f"{name} is complex, and only real numbers are of use here: save {name}.real (in MATLAB: real({name})) if that "
        "is meant"
    )
