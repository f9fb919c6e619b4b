// Where the reader looks from: a center and a distance; in space also a rotation.
import type { Places } from "./data";
import type { Camera } from "./renderer";

export interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

const PERSPECTIVE = 0.22;
const CLOSEST = 1e-4;
const FURTHEST = 20;

export class Eye {
  center: [number, number] = [0, 0];
  distance = 1.1;
  private turned = [1, 0, 0, 0, 1, 0, 0, 0, 1];

  constructor(public width: number, public height: number, readonly deep: boolean) {
    if (deep) this.orbit(0.5, 0.35);
  }

  /** Pixels per unit. */
  get unit(): number {
    return this.height / 2 / this.distance;
  }

  get camera(): Camera {
    return { turn: Float32Array.from(this.turned), center: this.center, distance: this.distance, perspective: this.deep ? PERSPECTIVE : 0 };
  }

  /** Returns the canvas coordinates of a place, in CSS pixels. */
  project(x: number, y: number, z = 0): [number, number] {
    let [px, py] = [x, y];
    if (this.deep) {
      const t = this.turned;
      const w = 1 - (t[2]! * x + t[5]! * y + t[8]! * z) * PERSPECTIVE;
      px = (t[0]! * x + t[3]! * y + t[6]! * z) / w;
      py = (t[1]! * x + t[4]! * y + t[7]! * z) / w;
    }
    return [this.width / 2 + (px - this.center[0]) * this.unit, this.height / 2 - (py - this.center[1]) * this.unit];
  }

  /** Projects all places, or every `step`-th; the result holds x and y of a row one after the other. */
  projectAll({ x, y, z }: Places, step = 1): Float32Array {
    const out = new Float32Array(2 * Math.ceil(x.length / step));
    const { unit } = this;
    const [left, top] = [this.width / 2 - this.center[0] * unit, this.height / 2 + this.center[1] * unit];
    for (let row = 0, at = 0; row < x.length; row += step, at += 2) {
      if (this.deep) out.set(this.project(x[row]!, y[row]!, z ? z[row]! : 0), at);
      else [out[at], out[at + 1]] = [left + x[row]! * unit, top - y[row]! * unit];
    }
    return out;
  }

  /** Returns the place under a point of the canvas; of a map in space, its turned x and y. */
  unproject(px: number, py: number): [number, number] {
    return [this.center[0] + (px - this.width / 2) / this.unit, this.center[1] - (py - this.height / 2) / this.unit];
  }

  pan(dx: number, dy: number): void {
    this.center = [this.center[0] - dx / this.unit, this.center[1] + dy / this.unit];
  }

  /** Zooms by a factor, keeping the place under a point of the canvas where it is. */
  zoom(factor: number, px = this.width / 2, py = this.height / 2): void {
    const [x, y] = this.unproject(px, py);
    this.distance = Math.min(FURTHEST, Math.max(CLOSEST, this.distance / factor));
    const [nx, ny] = this.unproject(px, py);
    this.center = [this.center[0] + x - nx, this.center[1] + y - ny];
  }

  /** Turns the map in space by angles around the vertical and the horizontal axis of the screen. */
  orbit(across: number, up: number): void {
    const [c, s, d, e] = [Math.cos(across), Math.sin(across), Math.cos(up), Math.sin(up)];
    // column by column: first around the vertical, then around the horizontal axis
    this.turned = product([1, 0, 0, 0, d, e, 0, -e, d], product([c, 0, -s, 0, 1, 0, s, 0, c], this.turned));
  }

  get rotation(): number[] {
    return this.turned;
  }

  set rotation(turned: number[]) {
    if (turned.length === 9 && turned.every(Number.isFinite)) this.turned = turned;
  }
}

/** Multiplies two matrices stored column by column. */
function product(a: number[], b: number[]): number[] {
  const out: number[] = [];
  for (let column = 0; column < 3; column++) {
    for (let row = 0; row < 3; row++) out.push(a[row]! * b[3 * column]! + a[3 + row]! * b[3 * column + 1]! + a[6 + row]! * b[3 * column + 2]!);
  }
  return out;
}

/** Returns the box around all rows, or around some. */
export function box({ x, y, z }: Places, rows?: number[]): Area {
  if (z) {
    // a map in space is seen from all sides: a square around everything
    const furthest = Math.max(...[x, y, z].map((axis) => axis.reduce((most, side) => Math.max(most, Math.abs(side)), 0)));
    return { x: 0, y: 0, width: 2.4 * furthest, height: 2.4 * furthest };
  }
  const [[left, right], [bottom, top]] = [x, y].map((axis) => ends(rows ? Float32Array.from(rows, (row) => axis[row]!) : axis)) as [
    [number, number],
    [number, number],
  ];
  return area(left, right, bottom, top);
}

// Points beyond the middle part of a map may be left out: this share at each end of each axis, and those further away
// than this many times the extent of the middle part.
const SHARE = 0.005;
const REACH = 1.5;
const SAMPLE = 100_000;
const FEWEST = 50;

/** Returns the box around the points that are not far from the middle part of a flat map; null for few points. */
export function mainBox({ x, y, z }: Places): Area | null {
  if (z || x.length < FEWEST) return null;
  const limits = [x, y].map((axis) => {
    const step = Math.max(1, Math.floor(axis.length / SAMPLE));
    const sorted = (step === 1 ? axis.slice() : axis.filter((_, row) => row % step === 0)).sort();
    const cut = Math.ceil(SHARE * sorted.length);
    const [low, high] = [sorted[cut]!, sorted[sorted.length - 1 - cut]!];
    const beyond = ((REACH - 1) * (high - low)) / 2;
    return [low - beyond, high + beyond];
  }) as [[number, number], [number, number]];
  const [[left, right], [bottom, top]] = limits;
  let [l, r, b, t] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let row = 0; row < x.length; row++) {
    const [px, py] = [x[row]!, y[row]!];
    if (px < left || px > right || py < bottom || py > top) continue;
    if (px < l) l = px;
    if (px > r) r = px;
    if (py < b) b = py;
    if (py > t) t = py;
  }
  return area(l, r, b, t);
}

export function rowsOutside({ x, y }: Places, inner: Area): number[] {
  const rows: number[] = [];
  for (let row = 0; row < x.length; row++) {
    // a little more than half: the box is made of rounded differences
    if (Math.abs(x[row]! - inner.x) > 0.50001 * inner.width || Math.abs(y[row]! - inner.y) > 0.50001 * inner.height) rows.push(row);
  }
  return rows;
}

function area(left: number, right: number, bottom: number, top: number): Area {
  return { x: (left + right) / 2, y: (bottom + top) / 2, width: right - left || 1e-3, height: top - bottom || 1e-3 };
}

function ends(axis: Float32Array): [number, number] {
  let [low, high] = [Infinity, -Infinity];
  for (const value of axis) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return [low, high];
}
