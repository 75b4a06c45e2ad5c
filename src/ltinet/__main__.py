"""Entry point of the command line, `ltinet` or `python -m ltinet`."""

import gc


def main() -> None:
    """Import the commands and run one.

    Garbage collection is disabled during the imports, whose objects live until the end, and skips them afterwards.
    """
    gc.disable()
    from ltinet.cli.app import main as run

    gc.freeze()
    gc.enable()
    run()


if __name__ == "__main__":
    main()
