// Contours of the density of the shown points: a smoothed grid, and the lines where it passes fixed shares of the points.
import type { Places } from "./data";
import type { State } from "./state";
import type { View } from "./view";

const CELLS = 240;
const EDGE = 1.15;
const BLUR = 2;
const PASSES = 3;
// Shares of the points that lie inside the contours.
const SHARES = [0.95, 0.8, 0.6, 0.4, 0.2];

type Segment = [number, number, number, number];

export class Density {
  wanted = false;
  /** Lines in the coordinates of the page's square, from the outer to the inner contour. */
  contours: Segment[][] = [];
  private stale = true;

  constructor(private readonly canvas: HTMLCanvasElement, private readonly state: State, private readonly view: View) {
    for (const event of ["shown", "rows"] as const) state.listen(event, () => this.outdated());
    state.listen("theme", () => this.place());
  }

  get possible(): boolean {
    return !this.view.eye.deep;
  }

  toggle(): boolean {
    this.wanted = !this.wanted && this.possible;
    this.place();
    return this.wanted;
  }

  /** Says that points have moved. */
  outdated(): void {
    this.stale = true;
    this.place();
  }

  place(): void {
    this.canvas.hidden = !this.wanted;
    if (!this.wanted) return;
    if (this.stale) this.contours = contoursOf(this.view.places, (row) => this.view.shows(row));
    this.stale = false;
    const { width, height, unit, center } = this.view.eye;
    const ratio = devicePixelRatio || 1;
    [this.canvas.width, this.canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const drawing = this.canvas.getContext("2d")!;
    drawing.setTransform(unit * ratio, 0, 0, -unit * ratio, (width / 2 - center[0] * unit) * ratio, (height / 2 + center[1] * unit) * ratio);
    drawing.strokeStyle = contourColor(this.state);
    drawing.lineWidth = 1.2 / unit;
    this.contours.forEach((lines, a) => {
      drawing.globalAlpha = 0.35 + (0.55 * a) / SHARES.length;
      drawing.beginPath();
      for (const [x1, y1, x2, y2] of lines) {
        drawing.moveTo(x1, y1);
        drawing.lineTo(x2, y2);
      }
      drawing.stroke();
    });
  }
}

export function contourColor(state: State): string {
  return state.themeName === "dark" ? "#f2f4f7" : "#1b1e24";
}

export function contoursOf({ x, y }: Places, visible: (row: number) => boolean): Segment[][] {
  let grid: Float32Array<ArrayBuffer> = new Float32Array(CELLS * CELLS);
  const scale = CELLS / (2 * EDGE);
  let total = 0;
  for (let row = 0; row < x.length; row++) {
    if (!visible(row)) continue;
    const [cx, cy] = [Math.floor((x[row]! + EDGE) * scale), Math.floor((y[row]! + EDGE) * scale)];
    if (cx < 0 || cy < 0 || cx >= CELLS || cy >= CELLS) continue;
    grid[cy * CELLS + cx]!++;
    total++;
  }
  for (let pass = 0; pass < PASSES; pass++) grid = blurred(blurred(grid, 1), CELLS);
  return SHARES.map((share) => lines(grid, heightOf(grid, share * total), (at) => at / scale - EDGE));
}

/** Averages each cell with its neighbors along one axis. */
function blurred(grid: Float32Array, stride: number): Float32Array<ArrayBuffer> {
  const out = new Float32Array(grid.length);
  for (let at = 0; at < grid.length; at++) {
    const along = stride === 1 ? at % CELLS : Math.floor(at / CELLS);
    let sum = 0;
    for (let step = -BLUR; step <= BLUR; step++) if (along + step >= 0 && along + step < CELLS) sum += grid[at + step * stride]!;
    out[at] = sum / (2 * BLUR + 1);
  }
  return out;
}

/** Returns the density above which the cells hold this many points. */
function heightOf(grid: Float32Array, points: number): number {
  const sorted = grid.slice().sort().reverse();
  let sum = 0;
  for (const height of sorted) {
    sum += height;
    if (sum >= points) return height;
  }
  return 0;
}

/** Returns the line where the grid passes a height, cell by cell (marching squares). */
function lines(grid: Float32Array, height: number, place: (at: number) => number): Segment[] {
  const found: Segment[] = [];
  if (!(height > 0)) return found;
  for (let row = 0; row + 1 < CELLS; row++) {
    for (let column = 0; column + 1 < CELLS; column++) {
      const at = row * CELLS + column;
      const corners = [grid[at]!, grid[at + 1]!, grid[at + CELLS + 1]!, grid[at + CELLS]!] as const;
      const points: [number, number][] = [];
      for (let side = 0; side < 4; side++) {
        const [a, b] = [corners[side]!, corners[(side + 1) % 4]!];
        if (a > height === b > height) continue;
        const share = (height - a) / (b - a);
        const [dx, dy] = [[share, 0], [1, share], [1 - share, 1], [0, 1 - share]][side] as [number, number];
        points.push([place(column + dx + 0.5), place(row + dy + 0.5)]);
      }
      for (let a = 0; a + 1 < points.length; a += 2) found.push([...points[a]!, ...points[a + 1]!]);
    }
  }
  return found;
}
