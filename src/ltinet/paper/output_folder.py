"""Where a reproduction goes: checked before the work begins, then every file whole or not at all."""

import io
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ltinet.atomic import write_whole
from ltinet.errors import FileFormatError
from ltinet.paper.report import DrawnPicture
from ltinet.paper.section import Picture
from ltinet.plotting import save_figure

_DOTS_PER_INCH = 160  # sharp on paper and on dense screens


@dataclass(frozen=True)
class OutputFolder:
    """A folder that exists and takes files; pictures go to `figures` in it, other files of other runs stay."""

    path: Path

    @classmethod
    def ready(cls, path: Path) -> "OutputFolder":
        """Make the folder, and `figures` in it, and try to write there."""
        try:
            (path / "figures").mkdir(parents=True, exist_ok=True)
            for folder in (path, path / "figures"):
                with tempfile.TemporaryFile(dir=folder):
                    pass
        except OSError as error:
            raise FileFormatError(
                f"{path} cannot be written to: {error.strerror}; give another folder to write to"
            ) from error
        return cls(path)

    def save_picture(self, picture: Picture, *, example: str, as_svg: bool) -> DrawnPicture:
        """Draw a picture and write it as PNG and, which takes as long again, as SVG."""
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        with matplotlib.rc_context({"figure.dpi": _DOTS_PER_INCH}):
            figure = picture.draw()
        canvas: Any = FigureCanvasAgg(figure)  # whose methods have no types
        png = self.path / "figures" / f"{example}_{picture.name}.png"
        content = io.BytesIO()
        canvas.print_png(content)  # `savefig` would draw everything twice
        _write(png, content.getvalue())
        if as_svg:
            figure.set_layout_engine("none")  # it is found by now, and finding it anew takes a second
            save_figure(figure, png.with_suffix(".svg"))
        width, height = figure.get_size_inches()
        return DrawnPicture(png, inches_wide=float(width), inches_high=float(height))

    def write(self, name: str, text: str) -> Path:
        """Write a text file and give its path."""
        path = self.path / name
        _write(path, text.encode())
        return path


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise FileFormatError(f"{path} cannot be written: {error.strerror}") from error
