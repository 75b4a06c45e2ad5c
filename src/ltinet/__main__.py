"""`python -m ltinet` is the program `ltinet`, for where its script is not on the path."""

from ltinet.cli.app import main

if __name__ == "__main__":
    main()
