"""Write the picture of the README: the slide of a chain of masses, of which each becomes a neuron of its own."""

from pathlib import Path

import ltinet
from ltinet.plotting import new_figure, save_figure
from ltinet.plotting.plots import SLIDE_SIZE

TARGET = Path(__file__).parent / "_static" / "overview.png"


def main() -> None:
    """Draw it anew."""
    figure = new_figure(*SLIDE_SIZE)
    ltinet.construct(ltinet.named_system("mass_spring_damper", n_masses=24)).plot(figure=figure)
    save_figure(figure, TARGET)


if __name__ == "__main__":
    main()
