"""Layers on a GPU beside their peers: `python -m benchmarks.gpu`; says so where there is none."""

import sys

import torch

from benchmarks.learning.__main__ import main

if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("there is no GPU here that PyTorch can use; python -m benchmarks.learning runs on a CPU")
    else:
        sys.argv[1:] = ["--device", "cuda", "--precision", "both", *sys.argv[1:]]
        main()
