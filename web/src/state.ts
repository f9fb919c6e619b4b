// The shared state of the page: colors, shown classes, selected rows, theme.
import { ClassColumn, type Codes } from "./columns";
import type { MapData, Meta } from "./data";
import { canBeClasses, canBeScale, classPaint, type Paint, plainPaint, type ScaleKind, scalePaint, type ThemeName, valuesOf } from "./paint";

export const GROUNDS = { light: "#fcfcfb", dark: "#14171c" };
export const MARKS = { light: "#16181d", dark: "#ffffff" };

export type Change = "shown" | "selected" | "theme" | "rows" | "paint" | "hover" | "found";
export type Mode = "classes" | "scale";

export type LegendOrder = "name" | "size" | "data";

/** What a column hides: some of its classes, or values outside a range. */
interface Filter {
  names?: Set<string>;
  range?: [number, number];
}

export class State {
  /** Selected rows in the order of selection, and what selected them, if that can be repeated. */
  selected: number[] = [];
  query = "";
  /** Rows that the search finds while its text is being typed. */
  found: number[] = [];
  hovered = -1;
  paint: Paint;
  scaleKind: ScaleKind = "linear";
  /** The column whose classes colored the points last: their names stay on the map when numbers color the points. */
  classesBefore: string | null;
  /** One flag per class of the paint; the last is for rows without a label. */
  shown: Uint8Array = new Uint8Array(0);
  counts: Uint32Array = new Uint32Array(0);
  names: string[] = [];
  legendOrder: LegendOrder = "name";
  themeName: ThemeName;
  private readonly filters = new Map<string, Filter>();
  private mask: Uint8Array | null = null;
  private readonly listeners = new Map<Change, (() => void)[]>();

  constructor(readonly data: MapData) {
    this.themeName = preferred(data.meta.theme);
    this.paint = plainPaint(data.n, data.meta.palette);
    this.classesBefore = data.columns[0]?.kind === "classes" ? data.columns[0].name : null;
    this.colorBy(data.meta.color);
  }

  /** Colors the points by a column; without a name all alike. */
  colorBy(name: string | null, mode?: Mode, kind: ScaleKind = this.scaleKind): void {
    const column = this.data.column(name);
    const { palette } = this.data.meta;
    this.scaleKind = kind;
    const scale = column && canBeScale(column) && (mode === "scale" || !(mode === "classes" && canBeClasses(column))) && (mode === "scale" || !(column instanceof ClassColumn));
    if (!column || column.kind === "texts") this.paint = plainPaint(this.data.n, palette);
    else this.paint = scale ? scalePaint(column, kind, palette) : classPaint(column, palette);
    if (this.paint.classes) this.classesBefore = name;
    this.describe();
    this.changed("paint");
  }

  get mode(): Mode | null {
    return this.paint.classes ? "classes" : this.paint.scale ? "scale" : null;
  }

  /** Updates the state after rows in `data` have changed; classes stay shown or hidden by name. */
  takeRows(): void {
    const name = this.paint.column?.name ?? this.data.meta.color;
    this.colorBy(name, this.mode ?? undefined);
    this.filter();
    this.changed("rows");
  }

  private describe(): void {
    const { classes } = this.paint;
    this.names = classes ? [...classes.names, ...(classes.missing ? ["unlabeled"] : [])] : [];
    const hidden = this.paint.classes ? this.filters.get(this.paint.column?.name ?? "")?.names : undefined;
    this.shown = Uint8Array.from(this.names, (one) => (hidden?.has(one) ? 0 : 1));
    this.counts = tally(classes?.codes ?? null, this.names.length);
  }

  /** Shows the classes whose flag is 1. */
  show(flag: (code: number) => number): void {
    this.shown.forEach((_, code) => (this.shown[code] = flag(code)));
    const names = new Set(this.names.filter((_, code) => !this.shown[code]));
    this.setFilter(this.paint.column?.name ?? "", { names: names.size ? names : undefined });
  }

  /** Shows only rows whose value in a column lies in a range; null removes the range. Missing values are outside. */
  showRange(column: string, range: [number, number] | null): void {
    this.setFilter(column, { range: range ?? undefined });
  }

  /** Changes what a column hides, by classes or by a range, and keeps the other. */
  private setFilter(column: string, change: { names?: Set<string> | undefined; range?: [number, number] | undefined }): void {
    const { names, range } = { ...this.filters.get(column), ...change };
    if (names || range) this.filters.set(column, { ...(names && { names }), ...(range && { range }) });
    else this.filters.delete(column);
    this.filter();
    this.changed("shown");
  }

  /** Shows what a column hides. */
  clearFilter(column: string): void {
    this.filters.delete(column);
    this.filter();
    this.describe();
    this.changed("shown");
  }

  /** Shows all rows, also those hidden by classes of another column. */
  showAll(): void {
    this.filters.clear();
    this.show(() => 1);
  }

  get filtered(): boolean {
    return this.mask !== null;
  }

  /** Names of hidden classes by column. */
  get hidden(): [string, string[]][] {
    return [...this.filters].flatMap(([column, { names }]) => (names ? [[column, [...names]] as [string, string[]]] : []));
  }

  /** Ranges of shown values by column. */
  get ranges(): [string, number, number][] {
    return [...this.filters].flatMap(([column, { range }]) => (range ? [[column, ...range] as [string, number, number]] : []));
  }

  hide(hidden: [string, string[]][], ranges: [string, number, number][] = []): void {
    this.filters.clear();
    for (const [column, names] of hidden) this.filters.set(column, { names: new Set(names) });
    for (const [column, low, high] of ranges) this.filters.set(column, { ...this.filters.get(column), range: [low, high] });
    this.filter();
    this.describe();
    this.changed("shown");
  }

  private filter(): void {
    const { n, meta } = this.data;
    this.mask = null;
    for (const [name, { names, range }] of this.filters) {
      const column = this.data.column(name);
      if (column && range && canBeScale(column)) {
        const values = valuesOf(column);
        this.mask ??= new Uint8Array(n).fill(1);
        for (let row = 0; row < n; row++) if (!(values[row]! >= range[0] && values[row]! <= range[1])) this.mask[row] = 0;
      }
      if (!column || !names || !canBeClasses(column)) continue;
      const { codes, names: all } = classPaint(column, meta.palette).classes!;
      const flags = Uint8Array.from([...all, "unlabeled"], (one) => (names.has(one) ? 0 : 1));
      if (flags.every((flag) => flag === 1)) continue;
      this.mask ??= new Uint8Array(n).fill(1);
      for (let row = 0; row < n; row++) if (!flags[codes[row]!]) this.mask[row] = 0;
    }
  }

  /** Returns the classes of the paint in the order of the legend. */
  order(): number[] {
    // a part of a map has some of its classes
    const codes = [...this.counts.keys()].filter((code) => this.counts[code]);
    if (this.legendOrder === "size") return codes.sort((a, b) => this.counts[b]! - this.counts[a]! || a - b);
    if (this.legendOrder === "name") return codes;
    const first = new Map<number, number>();
    for (const code of this.paint.codes) if (!first.has(code)) first.set(code, first.size);
    return codes.sort((a, b) => (first.get(a) ?? Infinity) - (first.get(b) ?? Infinity) || a - b);
  }

  orderBy(order: LegendOrder): void {
    this.legendOrder = order;
    this.changed("shown");
  }

  color(code: number): string {
    return this.paint.colors(this.themeName)[code]!;
  }

  /** Returns the color of a row. */
  colorOf(row: number): string {
    return this.color(this.paint.codes[row]!);
  }

  visible(row: number): boolean {
    return this.mask === null || this.mask[row] === 1;
  }

  /** Returns the shown rows, or null if all are shown. */
  visibleRows(): number[] | null {
    if (this.mask === null) return null;
    const rows: number[] = [];
    for (let row = 0; row < this.data.n; row++) if (this.mask[row]) rows.push(row);
    return rows;
  }

  visibleCount(): number {
    return this.mask === null ? this.data.n : this.mask.reduce((sum, flag) => sum + flag, 0);
  }

  /** Selects rows; `query` is the search that found them, if one did. */
  select(rows: number[], query = ""): void {
    this.selected = rows;
    this.query = query;
    this.changed("selected");
  }

  hover(row: number): void {
    if (row === this.hovered) return;
    this.hovered = row;
    this.changed("hover");
  }

  listen(event: Change, listener: () => void): void {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
  }

  changed(event: Change): void {
    for (const listener of this.listeners.get(event) ?? []) listener();
  }

  setTheme(name: ThemeName): void {
    this.themeName = name;
    this.changed("theme");
  }
}

export function tally(codes: Codes | null, size: number, rows?: number[]): Uint32Array {
  const counts = new Uint32Array(size);
  if (codes === null) return counts;
  if (rows) for (const row of rows) counts[codes[row]!]!++;
  else for (let row = 0; row < codes.length; row++) counts[codes[row]!]!++;
  return counts;
}

function preferred(theme: Meta["theme"]): ThemeName {
  if (theme !== "auto") return theme;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
