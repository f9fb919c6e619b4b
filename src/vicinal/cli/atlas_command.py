"""The commands `vicinal atlas …`: a published map that grows, changes and forgets."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vicinal.cli import describing, fitting, options
from vicinal.cli.methods import Method, make_spec
from vicinal.cli.writing import check_outputs, print_table, write_report
from vicinal.files.atomic import StagedFiles
from vicinal.files.data_table import ColumnChoice, Role, values_of
from vicinal.files.preparation import STEPS_ATTRIBUTE, Preparation, Preprocessing

if TYPE_CHECKING:
    from vicinal import Atlas
    from vicinal.files.data_table import DataTable

SUFFIXES = {"report": (".json",), "html": (".html",), "png": (".png",)}
EXPORTED = {"output": (".csv", ".parquet", ".vicinal", ".html")}
# A model knows how its features are made.
NOT_PLACED = ("features", "exclude", "vectors", "categories", "dates")

Folder = Annotated[Path, typer.Argument(metavar="ATLAS", help="The folder of the atlas.")]
At = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="When the rows came: 2026-03-02 or 2026-03-02T08:00. Default: now."),
]
Report = Annotated[Path | None, typer.Option(help="Also write what was done (.json).")]
Html = Annotated[Path | None, typer.Option(help="Also write a page (.html).")]
Png = Annotated[Path | None, typer.Option(help="Also write a picture (.png).")]
Loyalty = Annotated[
    float | None, typer.Option(metavar="N", min=0.0, help="Pull toward the old places; 0 for none. Default: 0.2.")
]
VersionNumber = Annotated[int, typer.Argument(metavar="VERSION", help="Number of a version; see `vicinal atlas show`.")]
Ids = Annotated[str | None, typer.Option("--ids", metavar="A,B,C", help="Ids of rows.")]
IdFile = Annotated[Path | None, typer.Option("--ids-from", metavar="FILE", help="A file with one id per line.")]


def build() -> typer.Typer:
    """Return the group of commands."""
    app = typer.Typer(help="Keep a published map: add rows, lay it out again, compare, forget.", no_args_is_help=True)
    for command in (init, append, refit, show, diff, drift, rollback, forget, migrate, export):
        app.command()(options.with_groups(command))
    return app


def init(
    *,
    folder: Folder,
    file: options.Source,
    method: options.How = Method.UMAP,
    columns: options.Chosen,
    steps: options.Prepared,
    shape: options.Shape,
    n_epochs: options.NEpochs = None,
    run: options.Run,
    at: At = None,
    quiet: options.Quiet = False,
) -> None:
    """Fit a map of the rows of a file and make it the first version of a new atlas."""
    import vicinal

    when = time_of(at)
    model = make_spec(method, shape | {"n_epochs": n_epochs}, **run).build()
    table, X, preparation = fitting.load_rows(file, columns, steps, shape["metric"])
    describing.announce_columns(table, None, all_columns=False, quiet=quiet)
    describing.warn_of_scale(table, X, shape["metric"], quiet=quiet)
    preparation.keep_in(model)
    with fitting.one_line_warnings(quiet):
        atlas = vicinal.Atlas.create(folder, X, ids_of(table), columns=columns_of(table), estimator=model, at=when)
    if not quiet:
        print(f"made {folder}: version {atlas.version}, {len(atlas.ids):,} rows, {len(atlas.areas)} areas")


def append(
    folder: Folder,
    file: options.Source,
    columns: Annotated[ColumnChoice, options.Group(options.choose_columns, *NOT_PLACED)],
    deleted: Annotated[str | None, typer.Option(metavar="A,B,C", help="Ids of rows that go.")] = None,
    deleted_from: Annotated[Path | None, typer.Option(metavar="FILE", help="A file with one id per line.")] = None,
    at: At = None,
    report: Report = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Place the rows of a file in the map, whose other rows stay where they are.

    Rows that are there already are skipped, rows with other content move, and rows that fit nowhere are drawn apart.
    """
    check_outputs({"report": report}, [file], force, SUFFIXES)
    atlas, when = open_atlas(folder), time_of(at)
    gone = given_ids(atlas, deleted, deleted_from, "--deleted") or []
    X, table = read_rows(atlas, file, columns)
    known, given = atlas.columns().columns, columns_of(table) or {}
    # Columns that the first file did not have are not added by a later one.
    further = {name: given[name] for name in known if name in given} or None
    with fitting.one_line_warnings(quiet):
        record = atlas.append(X, ids_of(table), columns=further, deleted=gone, at=when)
    finish(record, report)
    if not quiet:
        parts = ("added", "changed", "described", "skipped", "deleted", "new_territory")
        told = ", ".join(f"{record[name]:,} {name.replace('_', ' ')}" for name in parts if record[name])
        print(f"{folder}: version {atlas.version}, {record['rows']:,} rows: {told or 'nothing new'}")
        for reason in atlas.strain.reasons:
            print(f"a refit is advisable: {reason}")


def refit(
    folder: Folder,
    loyalty: Loyalty = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start anew instead of from the published map.")] = False,
    report: Report = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Lay all rows out again such that people recognize the map."""
    check_outputs({"report": report}, [], force, SUFFIXES)
    atlas = open_atlas(folder)
    with fitting.one_line_warnings(quiet):
        record = atlas.refit(loyalty_of(loyalty), fresh=fresh)
    finish(record, report)
    if not quiet:
        print_fit(folder, atlas, record)


def show(folder: Folder, report: Report = None, force: options.Force = False) -> None:
    """List the versions and areas of an atlas, and say whether a refit is advisable."""
    check_outputs({"report": report}, [], force, SUFFIXES)
    atlas = open_atlas(folder)
    strain = atlas.strain
    found = {"versions": atlas.versions, "areas": atlas.areas, "strain": {"total": strain.total, "areas": strain.areas}}
    finish(found, report)
    versions = (f"{one['made']}, {one['rows']:,} rows, {one['at'][:16]}" for one in atlas.versions)
    print_table(("version", "made"), zip((str(one["version"]) for one in atlas.versions), versions, strict=True))
    told = "{rows:,} rows, {since_fit:,} since the fit, strain {strain:.2f}"
    print_table(("area", "rows"), ((one["name"], told.format(**one)) for one in strain.areas))
    apart = int(atlas.new_territory.sum())
    if apart:
        print(f"{apart:,} rows are in new territory")
    print("a refit is advisable: " + "; ".join(strain.reasons) if strain.reasons else "no refit is needed")


def diff(
    folder: Folder,
    before: VersionNumber,
    after: Annotated[int | None, typer.Argument(metavar="VERSION", help="Default: the newest.")] = None,
    html: Html = None,
    report: Report = None,
    force: options.Force = False,
) -> None:
    """Compare two versions: rows that came, went and moved, and what became of the areas."""
    check_outputs({"html": html, "report": report}, [], force, SUFFIXES)
    found = open_atlas(folder).diff(before, after)
    with StagedFiles() as staged:
        if html is not None:
            title = f"{folder.resolve().name}: version {before} and {found.after.version}"
            found.to_html(staged.path_for(html), title=title)
        if report is not None:
            write_report(staged.path_for(report), found.summary())
    print(found)


def drift(
    folder: Folder,
    since: Annotated[int | None, typer.Option(metavar="VERSION", help="Default: the version of the last fit.")] = None,
    label: Annotated[str | None, typer.Option(help="A column of classes whose shares are compared too.")] = None,
    png: Png = None,
    report: Report = None,
    force: options.Force = False,
) -> None:
    """Test whether the rows that came since a version differ from its rows, per area and as a whole."""
    check_outputs({"png": png, "report": report}, [], force, SUFFIXES)
    found = open_atlas(folder).drift(since, label)
    with StagedFiles() as staged:
        if png is not None:
            from vicinal import plot

            plot.save(staged.path_for(png), found.plot())
        if report is not None:
            staged.path_for(report).write_text(found.to_json() + "\n", encoding="utf-8")
    print(found)


def rollback(folder: Folder, version: VersionNumber, quiet: options.Quiet = False) -> None:
    """Make a new version with the content of an old one."""
    atlas = open_atlas(folder)
    made = atlas.rollback(version)
    if not quiet:
        print(f"{folder}: version {made} has the content of version {version}, {len(atlas.ids):,} rows")


def forget(
    folder: Folder,
    ids: Ids = None,
    ids_from: IdFile = None,
    older_than: Annotated[str | None, typer.Option(metavar="TIME", help="Rows that came before this time.")] = None,
    keep_last: Annotated[int | None, typer.Option(metavar="N", min=1, help="All rows but the N latest.")] = None,
    quiet: options.Quiet = False,
) -> None:
    """Remove rows from the map, its model and all files, also from those of old versions."""
    atlas = open_atlas(folder)
    given = given_ids(atlas, ids, ids_from, "--ids")
    record = atlas.forget(given, older_than=time_of(older_than, "--older-than"), keep_last=keep_last)
    if not quiet:
        print(f"{folder}: version {atlas.version}, {record['forgotten']:,} rows forgotten, {record['rows']:,} left")


def migrate(
    folder: Folder,
    file: options.Source,
    columns: options.Chosen,
    loyalty: Loyalty = None,
    changed: Annotated[
        Path | None, typer.Option("--output", "-o", help="Table of how far each row moved (.csv or .parquet).")
    ] = None,
    report: Report = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Lay the same rows out by other values, such as those of a new embedding model, onto the old map."""
    check_outputs({"output": changed, "report": report}, [file], force, SUFFIXES | {"output": (".csv", ".parquet")})
    atlas = open_atlas(folder)
    table, X, preparation = fitting.load_rows(file, columns, Preprocessing(), None)
    model = atlas.estimator()
    for name in (STEPS_ATTRIBUTE, "feature_names_in_"):
        vars(model).pop(name, None)
    preparation.keep_in(model)
    with fitting.one_line_warnings(quiet):
        found = atlas.migrate(X, ids_of(table), estimator=model, loyalty=loyalty_of(loyalty))
    finish(found.record, report)
    if changed is not None:
        import polars as pl

        from vicinal.cli.writing import write_frame

        frame = {"id": found.ids.tolist(), "kept_neighbors": found.kept_neighbors, "moved": found.moved}
        with StagedFiles() as staged:
            write_frame(staged.path_for(changed), pl.DataFrame(frame).sort("kept_neighbors"))
    if not quiet:
        print_fit(folder, atlas, found.record)
        print(f"rows kept {100 * found.record['kept_neighbors']:.0f} % of their neighbors")


def export(
    folder: Folder,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Table (.csv, .parquet), page (.html) or fitted model (.vicinal).")
    ],
    version: Annotated[int | None, typer.Option("--version", metavar="N", help="Default: the newest.")] = None,
    quiet: options.Quiet = False,
    force: options.Force = False,
) -> None:
    """Write a version of an atlas to one file."""
    check_outputs({"output": output}, [], force, EXPORTED)
    atlas = open_atlas(folder)
    atlas.export(output, version)
    if not quiet:
        print(f"wrote {output}: version {version or atlas.version}")


def open_atlas(folder: Path) -> Atlas:
    """Open an atlas."""
    import vicinal

    return vicinal.Atlas.open(folder)


def read_rows(atlas: Atlas, file: Path, columns: ColumnChoice) -> tuple[Any, DataTable]:
    """Read the rows of a file as those of the last fit were read and prepared."""
    preparation = Preparation.of_model(atlas.estimator())
    table = preparation.read(file, columns)
    return preparation.apply(table.X), table


def ids_of(table: DataTable) -> Any:
    """Return the ids of a table as texts or whole numbers; None if it has none."""
    values = values_of(table.columns, Role.ID)
    if values is None:
        return None
    given = values.tolist()
    return given if all(isinstance(one, int) for one in given) else [str(one) for one in given]


def columns_of(table: DataTable) -> dict[str, list[Any]] | None:
    """Return the columns of a table that are neither features nor ids; None if there are none."""
    from vicinal.atlas.tables import columns_of_table

    return columns_of_table(table.columns) or None


def given_ids(atlas: Atlas, text: str | None, file: Path | None, option: str) -> list[Any] | None:
    """Return ids from an option or from a file with one per line, as numbers if the ids of the atlas are numbers."""
    if text is not None and file is not None:
        raise ValueError(f"{option} and {option}-from cannot be used together")
    if file is not None:
        found = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    elif text is not None:
        found = options.names_of(text)
    else:
        return None
    if atlas.ids.dtype == object:
        return list(found)
    bad = [one for one in found if not one.lstrip("-").isdecimal()]
    if bad:
        raise ValueError(f"{option} has {bad[0]!r}, but the ids of the atlas are whole numbers")
    return [int(one) for one in found]


def time_of(text: str | None, option: str = "--at") -> datetime | None:
    """Read a time."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{option} must be a time such as 2026-03-02 or 2026-03-02T08:00, got {text!r}") from None


def loyalty_of(given: float | None) -> float:
    """Return the given loyalty, or the default."""
    from vicinal.atlas.refit import LOYALTY

    return LOYALTY if given is None else given


def finish(record: dict[str, Any], report: Path | None) -> None:
    """Write a record."""
    if report is not None:
        with StagedFiles() as staged:
            write_report(staged.path_for(report), json.loads(json.dumps(record, default=str)))


def print_fit(folder: Path, atlas: Atlas, record: dict[str, Any]) -> None:
    """Print what a new layout changed."""
    moved, kept = 100 * record["median_move"], 100 * record["names_kept"]
    print(f"{folder}: version {atlas.version}, {record['rows']:,} rows")
    print(f"rows moved by {moved:.2g} % of the width of the map at the median")
    if "loss_without_loyalty" in record:
        cost = 100 * (record["loss"] / record["loss_without_loyalty"] - 1)
        print(f"loyalty to the old places costs {cost:.1f} % of the loss")
    print(f"{kept:.0f} % of the areas keep their names")
    for line in record["changes"]:
        print(f"  {line}")
