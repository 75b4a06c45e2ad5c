"""The program `ltinet`, which is also `python -m ltinet`, for where its script is not on the path."""

import gc


def main() -> None:
    """Import the commands and run one. What is imported stays, so that looking for garbage in it costs time alone."""
    gc.disable()
    from ltinet.cli.app import main as run

    gc.freeze()
    gc.enable()
    run()


if __name__ == "__main__":
    main()
