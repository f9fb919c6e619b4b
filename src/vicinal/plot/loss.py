"""Line charts of losses over epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from vicinal.plot.palette import check_theme, palette

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOSS_INCHES = (6.4, 3.6)


def loss(
    history: Any, *, ax: Axes | None = None, theme: str = "light", title: str | None = None, log: bool = False
) -> Axes:
    """Draw losses over epochs.

    Parameters
    ----------
    history : fitted model, mapping or sequence
        A model with ``loss_history_``, a mapping of names to losses per epoch, or one sequence of losses. A mapping may
        contain the epoch numbers as "epoch"; by default they are 1, 2, ….
    ax : matplotlib axes, optional
        Axes to draw on; by default those of a new figure.
    theme : {"light", "dark"}
        Colours of the figure.
    title : str, optional
        Title of the axes.
    log : bool, default=False
        Whether the loss axis is logarithmic.
    """
    found = _history(history)
    curves = dict(found) if isinstance(found, Mapping) else {"loss": found}
    given = curves.pop("epoch", None)
    lines = {str(name): np.asarray(values, dtype=np.float64) for name, values in curves.items()}
    for name, values in lines.items():
        if values.ndim != 1 or len(values) == 0:
            raise ValueError(f"history must contain one number per epoch; {name!r} has shape {values.shape}")
        if given is not None and len(given) != len(values):
            raise ValueError(f"history has {len(given)} epochs, but {len(values)} numbers of {name!r}")
    look = check_theme(theme)
    if ax is None:
        from matplotlib import pyplot as plt

        figure, ax = plt.subplots(figsize=LOSS_INCHES, layout="constrained")
        figure.set_facecolor(look.background)
    ax.set_facecolor(look.background)
    for (name, values), colour in zip(lines.items(), palette(len(lines), theme), strict=True):
        epochs = np.arange(1, len(values) + 1) if given is None else np.asarray(given)
        ax.plot(epochs, values, color=colour, linewidth=1.8, label=name)
        last = np.flatnonzero(np.isfinite(values))
        if len(lines) > 1 and len(last):
            end = last[-1]
            ax.annotate(
                name, (epochs[end], values[end]), xytext=(6, 0), textcoords="offset points", color=colour, va="center"
            )
    if log:
        ax.set_yscale("log")
    ax.set_xlabel("epoch", color=look.ink)
    ax.set_ylabel("loss" if len(lines) > 1 else next(iter(lines)), color=look.ink)
    ax.grid(axis="y", color=look.faint, alpha=0.45, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(colors=look.ink, length=0)
    ax.margins(x=0.02)
    for side, spine in ax.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(look.faint)
    if title:
        ax.set_title(title, color=look.ink, fontsize=13, loc="left", pad=10)
    return ax


def _history(given: Any) -> Any:
    """Return the losses of a model, or what was given instead of one."""
    if hasattr(given, "loss_history_"):
        return given.loss_history_
    if hasattr(given, "get_params"):
        name = type(given).__name__
        raise ValueError(
            f"this {name} has no loss history: fit it with compute_loss=True if it has that parameter, or give losses"
        )
    return given
