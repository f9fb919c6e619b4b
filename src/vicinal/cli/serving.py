"""Local servers of live pages: for the rows of a file, a stream, or a fitted model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from vicinal.cli.methods import EstimatorSpec, build_estimator, signature

if TYPE_CHECKING:
    from vicinal.cli.rows import LoadedRows
    from vicinal.cli.stream_fitting import StreamSource
    from vicinal.viewer.server import LiveServer
    from vicinal.viewer.session import Session


def live_server(rows: LoadedRows, spec: EstimatorSpec, *, title: str, port: int) -> LiveServer:
    """Create a server that shows a fit of the rows; its session is not started yet."""
    from vicinal.viewer.session import Session

    session = Session(
        rows.X,
        partial(build_estimator, spec.method),
        _adjustable(spec),
        columns=rows.metadata.page_columns(),
        title=title,
        label=rows.metadata.label_name or "",
        source=rows.source,
    )
    return _server(session, port)


def stream_server(source: StreamSource, spec: EstimatorSpec, *, port: int) -> LiveServer:
    """Create a server that shows a growing map; raise if the first batch of the file is invalid."""
    from vicinal.viewer.stream_session import StreamSession

    first = next(source.tables())
    session = StreamSession(
        source.tables,
        partial(build_estimator, spec.method),
        _adjustable(spec),
        total=source.total(),
        ids=source.id_name,
        title=source.path.stem,
        label=source.columns["label"] or "",
        source=source.layout(first),
    )
    return _server(session, port)


def model_server(model: Any, *, title: str, port: int) -> LiveServer:
    """Create a server that shows a fitted model and places the rows of uploaded files on it."""
    from vicinal.viewer.session import Session

    return _server(Session.of(model, title=title), port)


def _adjustable(spec: EstimatorSpec) -> dict[str, Any]:
    """Return the spec's parameters and the defaults of those that the page can change, without None values."""
    from vicinal.viewer.session import ADJUSTABLE

    known = signature(spec.method)
    defaults = {name: known[name].default for name in (*ADJUSTABLE, "metric") if name in known}
    return {name: value for name, value in (defaults | spec.parameters).items() if value is not None}


def _server(session: Session, port: int) -> LiveServer:
    try:
        from vicinal.viewer.server import LiveServer
    except ModuleNotFoundError as error:
        raise ImportError(f"the live page requires {error.name}; install with: pip install 'vicinal[app]'") from error
    return LiveServer(session, port=port)


def serve_until_interrupted(server: LiveServer, browser: bool) -> None:
    """Print the address of the page and serve it until Ctrl-C."""
    print(f"open {server.address}\npress Ctrl-C to stop", flush=True)
    if browser:
        import webbrowser

        webbrowser.open(server.address)
    try:
        server.run()
    except KeyboardInterrupt:
        pass  # the way to stop it
    finally:
        server.close()
