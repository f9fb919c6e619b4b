"""A live server for the rows of a file, or for a model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from vicinal.cli.methods import Recipe, rebuild, signature

if TYPE_CHECKING:
    from vicinal.cli.streaming import Reading
    from vicinal.files.readers import Table
    from vicinal.viewer.server import LiveServer
    from vicinal.viewer.session import Session


def live_server(
    table: Table, recipe: Recipe, *, title: str, label: str | None, ids: str | None, port: int
) -> LiveServer:
    """Ready to run; its session is not started."""
    from vicinal.viewer.packing import Columns
    from vicinal.viewer.session import Session

    columns = Columns(
        labels=table.labels,
        hover={name: column for name, column in table.along.items() if name != ids} or None,
        ids=None if ids is None else table.along[ids].tolist(),
    )
    session = Session(
        table.X,
        partial(rebuild, recipe.method),
        _adjustable(recipe),
        columns=columns,
        title=title,
        label=label or "",
    )
    return _server(session, port)


def stream_server(reading: Reading, recipe: Recipe, *, port: int) -> LiveServer:
    """Ready to run; what is wrong with the beginning of the file is raised."""
    from vicinal.viewer.stream_session import StreamSession

    next(reading.tables())
    session = StreamSession(
        reading.tables,
        partial(rebuild, recipe.method),
        _adjustable(recipe),
        total=reading.total(),
        ids=reading.ids,
        title=reading.path.stem,
        label=reading.columns["label"] or "",
    )
    return _server(session, port)


def model_server(model: Any, *, title: str, port: int) -> LiveServer:
    """Ready to run; shows a fitted model, on which files can be projected."""
    from vicinal.viewer.session import Session

    return _server(Session.of(model, title=title), port)


def _adjustable(recipe: Recipe) -> dict[str, Any]:
    """The recipe's parameters and those that a reader may change, as far as they have values."""
    from vicinal.viewer.session import ADJUSTABLE

    known = signature(recipe.method)
    defaults = {name: known[name].default for name in ADJUSTABLE if name in known}
    return {name: value for name, value in (defaults | recipe.parameters).items() if value is not None}


def _server(session: Session, port: int) -> LiveServer:
    try:
        from vicinal.viewer.server import LiveServer
    except ModuleNotFoundError as error:
        raise ImportError(f"the live page needs {error.name}: pip install 'vicinal[app]'") from error
    return LiveServer(session, port=port)


def watch(server: LiveServer, browser: bool) -> None:
    """Says where the page is and serves it until Ctrl-C."""
    print(f"watch {server.address}\nCtrl-C ends it", flush=True)
    if browser:
        import webbrowser

        webbrowser.open(server.address)
    try:
        server.run()
    finally:
        server.close()
