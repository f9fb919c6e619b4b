// The map: regl-scatterplot with this page's camera, sizes and colours.
import createScatterplot from "regl-scatterplot";

import type { MapData } from "./data";

export interface Theme {
  name: "light" | "dark";
  background: string;
  colours: string[];
  marked: string;
}

// Fraction of the occupied area that the points would cover if none overlapped.
const INK = 0.8;
const CELLS = 48;
const SMALLEST = 1.2;
const LARGEST = 11;
// Camera moves are animated up to this number of points; above, a frame takes too long without a GPU.
const ANIMATED = 200_000;
// Above this number of points, discs cost more than they show: points are squares of a few pixels.
const SQUARES = 400_000;
const MARGIN = 1.1;
// Height of the toolbar at the lower edge, in pixels: no point starts behind it.
const TOOLS = 56;
// The initial view shows only the middle 99.8 % of the points if their box is smaller than this fraction of the whole.
const OUTLYING = 0.6;

// New points are drawn larger: factors of the usual size, by how new they are.
const FRESH = [1, 1.4, 2.2];

type Plot = ReturnType<typeof createScatterplot>;

export class View {
  private readonly plot: Plot;
  private scale = 1;
  private readonly animated: boolean;
  private ground: number;
  /** How new each row is, an index of FRESH; null if the map does not grow. */
  fresh: Uint8Array | null = null;

  constructor(private readonly canvas: HTMLCanvasElement, private readonly data: MapData, theme: Theme) {
    this.ground = occupied(data);
    this.animated = data.n <= ANIMATED && !matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.plot = createScatterplot({
      canvas,
      width: "auto",
      height: "auto",
      renderPointsAsSquares: data.n > SQUARES,
      opacityBy: "density" as never,
      opacityByDensityFill: 0.25,
      opacityInactiveMax: 0.25,
      opacityInactiveScale: 0.5,
      pointOutlineWidth: 1,
      pointSizeSelected: 0.5,
      pointScaleMode: "asinh",
      lassoInitiator: false,
      lassoMinDelay: 6,
      lassoMinDist: 3,
      lassoLineWidth: 2,
      actionKeyMap: { lasso: "shift", merge: "cmd", remove: "alt" },
      deselectOnDblClick: false,
      deselectOnEscape: false,
      // a worker would need a copy of every point, which takes longer than building the index
      spatialIndexUseWorker: false,
      showReticle: false,
      ...this.coloured(theme),
      pointSize: this.pointSize(),
    } as never);
  }

  /** Draws the positions in `data` and moves the camera to show all of them. */
  async draw(): Promise<void> {
    await this.redraw();
    await this.fit(false);
  }

  /** Draws the positions in `data` without moving the camera; only `rows`, if given. */
  async redraw(rows: number[] | null = null): Promise<void> {
    const { x, y, codes, values, n } = this.data;
    if (n === 0) return;
    const points: Record<string, ArrayLike<number>> = { x, y };
    if (codes) points["valueA"] = codes;
    else if (values) points["valueA"] = values;
    if (this.fresh) {
      points["valueA"] ??= new Uint8Array(n);
      points["valueB"] = this.fresh;
    }
    await this.plot.draw(points as never, {
      zDataType: codes ? "categorical" : "continuous",
      ...(this.fresh ? { wDataType: "categorical" } : {}),
      ...(rows ? { filter: rows } : {}),
      preventFilterReset: true,
    });
  }

  /** Updates the point size after points have moved. */
  settle(): void {
    this.ground = occupied(this.data);
    void this.plot.set(this.sized());
  }

  setTheme(theme: Theme): void {
    void this.plot.set(this.coloured(theme));
  }

  resizePoints(factor: number): void {
    this.scale = Math.min(8, Math.max(0.25, this.scale * factor));
    void this.plot.set(this.sized());
  }

  setLasso(on: boolean): void {
    void this.plot.set({ mouseMode: on ? "lasso" : "panZoom" });
  }

  /** Shows only the given rows; all of them for null. */
  async filter(rows: number[] | null): Promise<void> {
    await (rows ? this.plot.filter(rows) : this.plot.unfilter());
  }

  select(rows: number[]): void {
    if (rows.length) this.plot.select(rows);
    else this.plot.deselect();
  }

  hover(row: number): void {
    this.plot.hover(row);
  }

  on(handlers: {
    over: (row: number) => void;
    out: () => void;
    select: (rows: number[]) => void;
    view: () => void;
    lassoEnd: () => void;
  }): void {
    this.plot.subscribe("pointOver", handlers.over);
    this.plot.subscribe("pointOut", handlers.out);
    this.plot.subscribe("select", ({ points }) => handlers.select(points));
    this.plot.subscribe("deselect", () => handlers.select([]));
    this.plot.subscribe("view", handlers.view);
    this.plot.subscribe("lassoEnd", handlers.lassoEnd);
  }

  /** Returns the canvas coordinates of a position, in CSS pixels. */
  project(x: number, y: number): [number, number] {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const [centreX, centreY] = this.target();
    const unit = height / 2 / this.distance();
    return [width / 2 + (x - centreX) * unit, height / 2 - (y - centreY) * unit];
  }

  /** Returns the visible row nearest to a position on the canvas, in CSS pixels. */
  nearest(px: number, py: number, visible: (row: number) => boolean): number {
    let best = -1;
    let least = Infinity;
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const [centreX, centreY] = this.target();
    const unit = height / 2 / this.distance();
    const x = centreX + (px - width / 2) / unit;
    const y = centreY - (py - height / 2) / unit;
    for (let row = 0; row < this.data.n; row++) {
      const d2 = (this.data.x[row]! - x) ** 2 + (this.data.y[row]! - y) ** 2;
      if (d2 < least && visible(row)) {
        best = row;
        least = d2;
      }
    }
    return best;
  }

  async zoom(factor: number): Promise<void> {
    await this.look(this.target(), this.distance() / factor);
  }

  /** Moves the camera by fractions of the window. */
  async pan(across: number, up: number): Promise<void> {
    const [x, y] = this.target();
    const height = 2 * this.distance();
    await this.look([x + across * height * this.aspect(), y + up * height], this.distance(), false);
  }

  async fit(animate = true): Promise<void> {
    if (this.data.n === 0) return;
    const everything = box(this.data, 0);
    const inner = box(this.data, 0.001);
    const shrunk = Math.max(inner.width / everything.width, inner.height / everything.height);
    await this.frame(shrunk < OUTLYING ? inner : everything, animate);
  }

  async zoomTo(rows: number[]): Promise<void> {
    const area = box(this.data, 0, rows);
    const least = this.distance() < 0.15 ? 0.02 : 0.15;
    await this.frame({ ...area, width: Math.max(area.width, least), height: Math.max(area.height, least) }, true);
  }

  private async frame(area: Area, animate: boolean): Promise<void> {
    const height = this.canvas.clientHeight;
    const free = Math.max(0.5, 1 - TOOLS / height);
    const distance = (Math.max(area.height / free, area.width / this.aspect()) / 2) * MARGIN || 1;
    await this.look([area.x, area.y - distance * (1 - free)], distance, animate);
  }

  private async look(target: [number, number], distance: number, animate = true): Promise<void> {
    const options = animate && this.animated ? { transition: true, transitionDuration: 250 } : {};
    await this.plot.zoomToLocation(target, distance, options);
  }

  private target(): [number, number] {
    return this.plot.get("cameraTarget");
  }

  private distance(): number {
    const distance = this.plot.get("cameraDistance") as unknown as number | number[];
    return Array.isArray(distance) || ArrayBuffer.isView(distance) ? (distance as number[])[0]! : distance;
  }

  private aspect(): number {
    return this.canvas.clientWidth / this.canvas.clientHeight;
  }

  private sized(): Record<string, unknown> {
    const size = this.pointSize();
    return this.fresh ? { sizeBy: "valueB", pointSize: FRESH.map((factor) => factor * size) } : { pointSize: size };
  }

  private pointSize(): number {
    // the map fills the height of the canvas if it is higher than wide
    const area = this.ground * Math.min(this.canvas.clientWidth, this.canvas.clientHeight) ** 2;
    const side = Math.sqrt((INK * area * 4) / Math.PI / Math.max(1, this.data.n));
    return Math.min(LARGEST, Math.max(SMALLEST, side)) * this.scale;
  }

  private coloured(theme: Theme): Record<string, unknown> {
    return {
      backgroundColor: theme.background,
      pointColor: theme.colours,
      pointColorActive: theme.marked,
      pointColorHover: theme.marked,
      lassoColor: theme.marked,
      colorBy: this.data.codes || this.data.values ? "valueA" : null,
    };
  }
}

interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Returns the fraction of the page's square that contains points. */
function occupied({ x, y, n }: MapData): number {
  const cells = new Uint8Array(CELLS * CELLS);
  const cell = (at: number) => Math.min(CELLS - 1, Math.floor(((at + 1) / 2) * CELLS));
  for (let row = 0; row < n; row++) cells[cell(y[row]!) * CELLS + cell(x[row]!)] = 1;
  return cells.reduce((sum, one) => sum + one, 0) / cells.length;
}

/** Returns the box around the rows, without the given fraction of them at each side. */
function box(data: MapData, share: number, rows?: number[]): Area {
  const sides = [data.x, data.y].map((axis) => {
    const taken = rows ? Float32Array.from(rows, (row) => axis[row]!) : axis.slice();
    if (share === 0) {
      let low = Infinity;
      let high = -Infinity;
      for (const value of taken) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
      return [low, high];
    }
    taken.sort();
    const cut = Math.floor(share * taken.length);
    return [taken[cut]!, taken[taken.length - 1 - cut]!];
  }) as [[number, number], [number, number]];
  const [[left, right], [bottom, top]] = sides;
  return { x: (left + right) / 2, y: (bottom + top) / 2, width: right - left || 1e-3, height: top - bottom || 1e-3 };
}
