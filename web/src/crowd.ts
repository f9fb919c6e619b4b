// Which points lie where on the canvas, so that names find free ground. Many points are sampled evenly.
import type { State } from "./state";
import type { View } from "./view";

export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const CELL = 14;
const MOST = 40_000;

export class Crowd {
  /** The shown rows on the canvas, or an even sample of them, and their positions. */
  private readonly rows: Uint32Array;
  private readonly seen: Float32Array;
  private readonly begins: Uint32Array;
  private readonly columns: number;
  private readonly lines: number;
  /** Whether `rows` has all of them. */
  readonly complete: boolean;

  constructor(view: View, state: State) {
    const { width, height } = view.eye;
    let step = Math.max(1, Math.ceil(state.data.n / MOST));
    let inside = onCanvas(view, step);
    // where few points are on the canvas, all of them count
    if (step > 1 && inside.rows.length * step <= MOST) inside = onCanvas(view, (step = 1));
    this.complete = step === 1;
    const { rows, seen } = inside;
    this.columns = Math.ceil(width / CELL) || 1;
    this.lines = Math.ceil(height / CELL) || 1;
    this.begins = new Uint32Array(this.columns * this.lines + 1);
    const cells = rows.map((_, a) => Math.floor(seen[2 * a + 1]! / CELL) * this.columns + Math.floor(seen[2 * a]! / CELL));
    for (const cell of cells) this.begins[cell + 1]!++;
    for (let cell = 0; cell + 1 < this.begins.length; cell++) this.begins[cell + 1]! += this.begins[cell]!;
    const next = this.begins.slice();
    this.rows = new Uint32Array(cells.length);
    this.seen = new Float32Array(2 * cells.length);
    cells.forEach((cell, a) => {
      const at = next[cell]!++;
      this.rows[at] = rows[a]!;
      this.seen[2 * at] = seen[2 * a]!;
      this.seen[2 * at + 1] = seen[2 * a + 1]!;
    });
  }

  get size(): number {
    return this.rows.length;
  }

  /** Returns the rows on the canvas with their positions; only useful if there are few. */
  list(): { row: number; x: number; y: number }[] {
    return Array.from(this.rows, (row, at) => ({ row, x: this.seen[2 * at]!, y: this.seen[2 * at + 1]! }));
  }

  /** Counts the points in a box, up to `limit`; a point for which `own` is true counts as more than any limit. */
  within({ left, right, top, bottom }: Box, limit: number, own: (row: number) => boolean): number {
    let found = 0;
    const from = Math.max(0, Math.floor(left / CELL));
    const to = Math.min(this.columns - 1, Math.floor(right / CELL));
    for (let line = Math.max(0, Math.floor(top / CELL)); line <= Math.min(this.lines - 1, Math.floor(bottom / CELL)); line++) {
      // the cells of a line are stored one after the other
      for (let at = this.begins[line * this.columns + from]!; at < this.begins[line * this.columns + to + 1]!; at++) {
        const [x, y] = [this.seen[2 * at]!, this.seen[2 * at + 1]!];
        if (x < left || x > right || y < top || y > bottom) continue;
        if (own(this.rows[at]!)) return Infinity;
        if (++found > limit) return found;
      }
    }
    return found;
  }
}

/** Returns every `step`-th row, if it is shown and on the canvas, and their positions. */
function onCanvas(view: View, step: number): { rows: number[]; seen: number[] } {
  const { eye, places } = view;
  const all = eye.projectAll(places, step);
  const [rows, seen]: [number[], number[]] = [[], []];
  for (let a = 0; 2 * a < all.length; a++) {
    const [x, y] = [all[2 * a]!, all[2 * a + 1]!];
    if (x < 0 || y < 0 || x >= eye.width || y >= eye.height || !view.shows(a * step)) continue;
    rows.push(a * step);
    seen.push(x, y);
  }
  return { rows, seen };
}
