// The shared state of the page: shown classes, selected rows, theme.
import type { MapData, Meta } from "./data";
import type { Theme } from "./view";

const GROUNDS = { light: "#fcfcfb", dark: "#14171c" };
const MARKS = { light: "#16181d", dark: "#ffffff" };

type Change = "shown" | "selected" | "theme" | "rows";

export class State {
  selected: number[] = [];
  /** One flag per class; the last is for rows without a label. */
  shown: Uint8Array = new Uint8Array(0);
  counts: Uint32Array = new Uint32Array(0);
  names: string[] = [];
  themeName: "light" | "dark";
  private readonly listeners: Record<Change, (() => void)[]> = { shown: [], selected: [], theme: [], rows: [] };

  constructor(readonly data: MapData) {
    this.themeName = preferred(data.meta.theme);
    this.takeRows();
  }

  /** Updates the state after rows in `data` have changed; classes stay shown or hidden by name. */
  takeRows(): void {
    const { meta, codes } = this.data;
    const flags = new Map(this.names.map((name, code) => [name, this.shown[code]!]));
    this.names = [...meta.categories, ...(meta.unlabelled ? ["unlabelled"] : [])];
    this.shown = Uint8Array.from(this.names, (name) => flags.get(name) ?? 1);
    this.counts = tally(codes, this.names.length);
    this.changed("rows");
  }

  get theme(): Theme {
    return {
      name: this.themeName,
      background: GROUNDS[this.themeName],
      colours: colours(this.data.meta, this.themeName),
      marked: MARKS[this.themeName],
    };
  }

  colour(code: number): string {
    return this.theme.colours[code]!;
  }

  visible(row: number): boolean {
    return this.data.codes === null || this.shown[this.data.codes[row]!] === 1;
  }

  /** Returns the rows of the shown classes, or null if all are shown. */
  visibleRows(): number[] | null {
    const { codes, n } = this.data;
    if (codes === null || this.shown.every((flag) => flag === 1)) return null;
    const rows: number[] = [];
    for (let row = 0; row < n; row++) if (this.shown[codes[row]!]) rows.push(row);
    return rows;
  }

  visibleCount(): number {
    return this.names.length ? this.counts.reduce((sum, n, code) => sum + (this.shown[code] ? n : 0), 0) : this.data.n;
  }

  listen(event: Change, listener: () => void): void {
    this.listeners[event].push(listener);
  }

  changed(event: Change): void {
    for (const listener of this.listeners[event]) listener();
  }

  setTheme(name: "light" | "dark"): void {
    this.themeName = name;
    document.documentElement.dataset["theme"] = name;
    this.changed("theme");
  }
}

export function tally(codes: ArrayLike<number> | null, size: number, rows?: number[]): Uint32Array {
  const counts = new Uint32Array(size);
  if (codes === null) return counts;
  if (rows) for (const row of rows) counts[codes[row]!]!++;
  else for (let row = 0; row < codes.length; row++) counts[codes[row]!]!++;
  return counts;
}

function colours(meta: Meta, theme: "light" | "dark"): string[] {
  return meta.values ? meta.palette.values : meta.palette[theme];
}

function preferred(theme: Meta["theme"]): "light" | "dark" {
  if (theme !== "auto") return theme;
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
