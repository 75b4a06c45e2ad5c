"""Version of the package, apart from the package itself so that every module can import it."""

__version__ = "0.2.0"
