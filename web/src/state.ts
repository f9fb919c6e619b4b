// What the parts of the page agree on: which classes are shown, which rows are selected, which theme.
import type { MapData, Meta } from "./data";
import type { Theme } from "./view";

const GROUNDS = { light: "#fcfcfb", dark: "#14171c" };
const MARKS = { light: "#16181d", dark: "#ffffff" };

export class State {
  selected: number[] = [];
  /** One flag a class; the last is for rows without a label. */
  readonly shown: Uint8Array;
  readonly counts: Uint32Array;
  readonly names: string[];
  themeName: "light" | "dark";
  private readonly listeners: Record<"shown" | "selected" | "theme", (() => void)[]> = { shown: [], selected: [], theme: [] };

  constructor(readonly data: MapData) {
    const { meta, codes } = data;
    this.names = [...meta.categories, ...(meta.unlabelled ? ["unlabelled"] : [])];
    this.shown = new Uint8Array(this.names.length).fill(1);
    this.counts = tally(codes, this.names.length);
    this.themeName = preferred(meta.theme);
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

  /** The rows of classes that are shown, or null if that is all of them. */
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

  listen(event: "shown" | "selected" | "theme", listener: () => void): void {
    this.listeners[event].push(listener);
  }

  changed(event: "shown" | "selected" | "theme"): void {
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
