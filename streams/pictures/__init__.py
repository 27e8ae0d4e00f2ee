"""Pictures: what all of them have in common. Each feature draws its own in its own room (`picture.py`).

They are SVG, made by matplotlib (the `pictures` extra), and the same bytes each time: no date, no random ids. Text
stays text. They have a light ground of their own, so that they can be read on a dark page, and what tells series apart
is never the colour alone.

What may not happen here: importing matplotlib before somebody asks for a picture, or its global state (`pyplot`).
"""

from streams.pictures.palette import GRID, INK, MUTED, Look, look
from streams.pictures.paper import check, label, new_figure, save, style

__all__ = ["GRID", "INK", "MUTED", "Look", "check", "label", "look", "new_figure", "save", "style"]
