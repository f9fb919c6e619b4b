// One map on a canvas: what is drawn, from where, and which point is where.
import type { Codes } from "./columns";
import { type Area, box, Eye, mainBox, rowsOutside } from "./camera";
import type { Places } from "./data";
import { type Layer, Renderer } from "./renderer";
import { GROUNDS, MARKS, type State } from "./state";

// Fraction of the occupied area that the points would cover if none overlapped.
const INK = 0.8;
const CELLS = 48;
const SMALLEST = 1.3;
const LARGEST = 11;
const FAINTEST = 0.12;
// Camera moves are animated up to this number of points; above, a frame takes too long without a GPU.
const ANIMATED = 200_000;
const ANIMATION_MS = 250;
const MORPH_MS = 900;
// While the camera moves, at most this many points are drawn.
const WHILE_MOVING = 250_000;
const SETTLED_MS = 140;
const MARGIN = 1.1;
// Height of the toolbar at the lower edge, in pixels: no point starts behind it.
const TOOLS = 56;
// The first view leaves out points beyond the middle of the map if the others become this much larger.
const WORTH_LEAVING = 1.6;
// A selected point is at least this large, in pixels.
const MARKED = 4;
// Outlines of more points than this would hide each other.
const OUTLINED = 400;

export class View {
  readonly renderer: Renderer;
  readonly eye: Eye;
  /** How new each row is, an index of the renderer's levels; null if the map does not grow. */
  fresh: Uint8Array | null = null;
  places: Places;
  /** Returns the color number of each row if this map has its own; null for those of the paint. */
  recolor: ((view: View) => Codes | null) | null = null;
  /** Rows that the first view leaves out, and its distance. */
  outliers: number[] = [];
  overview = 1;
  private scale = 1;
  private ground = 1;
  private scheduled = 0;
  private moving = 0;
  private readonly listeners: (() => void)[] = [];

  constructor(readonly canvas: HTMLCanvasElement, private readonly state: State, map = 0) {
    this.places = state.data.maps[map]!;
    this.renderer = new Renderer(canvas);
    this.eye = new Eye(1, 1, this.places.z !== null);
    this.resize();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.renderer.begin();
      this.redraw();
    });
    const marks = { selected: () => state.selected, found: () => state.found, hovered: () => (state.hovered < 0 ? [] : [state.hovered]) };
    const mark = (rows: keyof typeof marks) => () => {
      this.renderer.setRows(rows, this.present(marks[rows]()));
      this.request();
    };
    state.listen("selected", mark("selected"));
    state.listen("found", mark("found"));
    state.listen("hover", mark("hovered"));
    state.listen("paint", () => this.color());
    state.listen("theme", () => this.color());
    state.listen("shown", () => this.filter());
  }

  private get animated(): boolean {
    return this.state.data.n <= ANIMATED && !matchMedia("(prefers-reduced-motion: reduce)").matches;
  }

  /** Calls a listener after each change of what is seen. */
  onView(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Takes everything from the state and moves the camera to show all points. */
  async draw(): Promise<void> {
    if (this.state.data.n === 0) return;
    this.redraw();
    this.settle();
    await this.fit(false);
  }

  /** Draws the places as they are, without moving the camera. */
  redraw(): void {
    const { x, y, z } = this.places;
    this.renderer.setPlaces(x, y, z);
    this.renderer.setLevels(this.fresh ?? new Uint8Array(x.length));
    this.color();
    this.filter();
    this.mark();
  }

  private mark(): void {
    for (const rows of ["selected", "found"] as const) this.renderer.setRows(rows, this.present(this.state[rows]));
  }

  /** Returns whether a row is drawn on this map. */
  shows(row: number): boolean {
    return this.state.visible(row) && !this.places.absent?.[row];
  }

  private present(rows: number[]): number[] {
    const { absent } = this.places;
    return absent ? rows.filter((row) => !absent[row]) : rows;
  }

  /** Draws other places of the rows, which may leave out other rows and have other colors. */
  put(places: Places): void {
    const changes = places !== this.places && (this.recolor || places.absent || this.places.absent);
    this.places = places;
    if (changes) {
      this.color();
      this.filter();
      this.mark();
    }
    this.moved();
  }

  /** Updates the places only: points have moved. */
  moved(): void {
    this.renderer.setPlaces(this.places.x, this.places.y, this.places.z);
    this.changed();
  }

  private color(): void {
    if (this.state.data.n === 0) return;
    this.renderer.setCodes(this.recolor?.(this) ?? this.state.paint.codes);
    this.renderer.setColors(this.state.paint.colors(this.state.themeName));
    this.request();
  }

  private filter(): void {
    this.renderer.setShown(this.state.filtered || this.places.absent ? (row) => this.shows(row) : null);
    this.request();
  }

  /** Updates the point size after points have moved. */
  settle(): void {
    this.ground = occupied(this.places);
    this.request();
  }

  resizePoints(factor: number): void {
    this.scale = Math.min(8, Math.max(0.25, this.scale * factor));
    this.request();
  }

  /** Adapts to the size of the canvas; the place in the middle stays there. */
  resize(): void {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    [this.eye.width, this.eye.height] = [width, height];
    this.changed();
  }

  /** Draws at the next frame. */
  request(): void {
    this.scheduled ||= requestAnimationFrame(() => {
      this.scheduled = 0;
      this.paint();
    });
  }

  /** Says that the camera or the places have changed. */
  changed(): void {
    this.request();
    for (const listener of this.listeners) listener();
  }

  /** Draws at once, at the given resolution if the canvas is about to be read. */
  paint(ratio = this.canvas.width / this.eye.width, complete = false): void {
    const { state, renderer } = this;
    if (state.data.n === 0) return;
    const size = this.pointSize();
    const opacity = this.opacity(size);
    const mark = MARKS[state.themeName];
    const chosen = renderer.count("selected") > 0 || renderer.count("found") > 0;
    const large = Math.max(MARKED, 1.25 * size) * ratio;
    const limit = this.moving && !complete ? WHILE_MOVING : Infinity;
    const layers: Layer[] = [{ rows: "shown", size: size * ratio, opacity: chosen ? 0.22 * opacity : opacity, limit }];
    for (const rows of ["selected", "found"] as const) {
      if (renderer.count(rows) <= OUTLINED) layers.push({ rows, size: large + 2 * ratio, opacity: 0.9, single: mark });
      layers.push({ rows, size: large, opacity: renderer.count(rows) <= OUTLINED ? 1 : Math.max(0.6, opacity) });
    }
    const [hover, ring] = [Math.max(2 * MARKED, 1.8 * size) * ratio, 2 * ratio];
    layers.push({ rows: "hovered", size: hover, opacity: 1 });
    layers.push({ rows: "hovered", size: hover + 2 * ring, opacity: 1, single: mark, ring });
    renderer.draw(this.eye.camera, GROUNDS[state.themeName], layers);
  }

  project(x: number, y: number, z = 0): [number, number] {
    return this.eye.project(x, y, z);
  }

  projectRow(row: number): [number, number] {
    const { x, y, z } = this.places;
    return this.eye.project(x[row]!, y[row]!, z ? z[row]! : 0);
  }

  /** Returns the shown row nearest to a position on the canvas and closer than `reach`, in CSS pixels; -1 for none. */
  nearest(px: number, py: number, reach = Infinity): number {
    const { x, y, z } = this.places;
    const { state, eye } = this;
    let best = -1;
    let least = reach * reach;
    if (z) {
      const seen = eye.projectAll(this.places);
      let front = -Infinity;
      const [, , a, , , b, , , c] = eye.rotation as [number, number, number, number, number, number, number, number, number];
      for (let row = 0; row < state.data.n; row++) {
        const d2 = (seen[2 * row]! - px) ** 2 + (seen[2 * row + 1]! - py) ** 2;
        const depth = a * x[row]! + b * y[row]! + c * z[row]!;
        // of the points under the pointer, the one in front
        if (d2 < least && (d2 > 36 || depth > front) && this.shows(row)) [best, least, front] = [row, Math.max(d2, 36), depth];
      }
      return best;
    }
    const [cx, cy] = eye.unproject(px, py);
    least /= eye.unit ** 2;
    for (let row = 0; row < state.data.n; row++) {
      const d2 = (x[row]! - cx) ** 2 + (y[row]! - cy) ** 2;
      if (d2 < least && this.shows(row)) [best, least] = [row, d2];
    }
    return best;
  }

  /** Returns the shown rows inside a polygon of canvas coordinates. */
  within(polygon: [number, number][]): number[] {
    const seen = this.eye.projectAll(this.places);
    const [xs, ys] = [polygon.map(([x]) => x), polygon.map(([, y]) => y)];
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const rows: number[] = [];
    for (let row = 0; row < this.state.data.n; row++) {
      const [x, y] = [seen[2 * row]!, seen[2 * row + 1]!];
      if (x < left || x > right || y < top || y > bottom || !this.shows(row)) continue;
      let inside = false;
      for (let a = 0, b = polygon.length - 1; a < polygon.length; b = a++) {
        if (ys[a]! > y !== ys[b]! > y && x < ((xs[b]! - xs[a]!) * (y - ys[a]!)) / (ys[b]! - ys[a]!) + xs[a]!) inside = !inside;
      }
      if (inside) rows.push(row);
    }
    return rows;
  }

  async zoom(factor: number): Promise<void> {
    await this.look(this.eye.center, this.eye.distance / factor);
  }

  /** Moves the camera by fractions of the window. */
  pan(across: number, up: number): void {
    this.eye.pan(-across * this.eye.width, up * this.eye.height);
    this.moves();
  }

  /** Draws fewer points for a moment: the camera has been moved by hand. */
  moves(): void {
    clearTimeout(this.moving);
    this.moving = window.setTimeout(() => {
      this.moving = 0;
      this.request();
    }, SETTLED_MS);
    this.changed();
  }

  async fit(animate = true): Promise<void> {
    if (this.state.data.n === 0) return;
    const everything = box(this.places);
    const inner = mainBox(this.places);
    const leaves = inner !== null && this.fitting(everything) / this.fitting(inner) >= WORTH_LEAVING;
    const area = leaves ? inner : everything;
    this.outliers = leaves ? rowsOutside(this.places, inner) : [];
    this.overview = this.fitting(area);
    await this.frame(area, animate);
  }

  async zoomTo(rows: number[]): Promise<void> {
    if (this.eye.deep) return this.look(this.centerOf(rows), Math.min(this.eye.distance, 0.5));
    const area = box(this.places, rows);
    const whole = Math.min(1, this.overview);
    const least = (this.eye.distance < 0.15 * whole ? 0.02 : 0.15) * whole;
    await this.frame({ ...area, width: Math.max(area.width, least), height: Math.max(area.height, least) }, true);
  }

  private centerOf(rows: number[]): [number, number] {
    const sums = [0, 0];
    for (const row of rows) {
      const [x, y] = this.eye.unproject(...this.projectRow(row));
      sums[0]! += x / rows.length;
      sums[1]! += y / rows.length;
    }
    return [sums[0]!, sums[1]!];
  }

  private async frame(area: Area, animate: boolean): Promise<void> {
    const distance = this.fitting(area);
    await this.look([area.x, area.y - distance * (1 - this.free)], distance, animate);
  }

  /** The part of the height that is not behind the toolbar. */
  private get free(): number {
    return Math.max(0.5, 1 - TOOLS / this.eye.height);
  }

  /** Returns the distance from which an area fills the canvas. */
  private fitting(area: Area): number {
    const { width, height } = this.eye;
    return (Math.max(area.height / this.free, (area.width * height) / width) / 2) * MARGIN || 1;
  }

  /** Moves the camera, in equal ratios of the distance per frame. */
  async look(center: [number, number], distance: number, animate = true): Promise<void> {
    const [from, to] = [{ center: this.eye.center, distance: this.eye.distance }, { center, distance }];
    await this.animate(animate && this.animated ? ANIMATION_MS : 0, (share) => {
      this.eye.distance = share === 1 ? to.distance : from.distance * (to.distance / from.distance) ** share;
      this.eye.center = [0, 1].map((a) => from.center[a]! + (to.center[a]! - from.center[a]!) * share) as [number, number];
      this.changed();
    });
  }

  /** Shows another map of the same rows; the points move there. */
  async show(map: number): Promise<void> {
    await this.morph(this.places, this.state.data.maps[map]!);
  }

  /** Moves all points from some places to others. */
  async morph(from: Places, to: Places): Promise<void> {
    if (from === to) return;
    const mixed = between(from, to, 0);
    await this.animate(this.animated ? MORPH_MS : 0, (share) => {
      if (share < 1) for (const axis of ["x", "y", "z"] as const) mix(from[axis], to[axis], share, mixed[axis]);
      this.put(share === 1 ? to : mixed);
    });
    this.settle();
  }

  private animate(ms: number, step: (share: number) => void): Promise<void> {
    if (ms === 0) return Promise.resolve(step(1));
    const start = performance.now();
    return new Promise((done) => {
      const frame = () => {
        const share = Math.min(1, (performance.now() - start) / ms);
        step(share === 1 ? 1 : share * share * (3 - 2 * share));
        if (share < 1) requestAnimationFrame(frame);
        else done();
      };
      requestAnimationFrame(frame);
    });
  }

  /** Returns the diameter of a point in CSS pixels: smaller if there are many, larger as one zooms in. */
  pointSize(): number {
    const { width, height } = this.eye;
    // the map fills the height of the canvas if it is higher than wide
    const area = this.ground * Math.min(width, height) ** 2;
    const zoomed = Math.max(0.4, 1.1 / this.eye.distance) ** 0.6;
    const side = Math.sqrt((INK * area * 4) / Math.PI / Math.max(1, this.state.data.n)) * zoomed;
    return Math.min(LARGEST, Math.max(SMALLEST, side)) * this.scale;
  }

  /** Returns the opacity of a point: less where many would cover each other. */
  private opacity(size: number): number {
    const area = this.ground * (2 * this.eye.unit) ** 2;
    const layers = (this.state.data.n * Math.PI * size * size) / 4 / area;
    return Math.min(0.92, Math.max(FAINTEST, 0.92 / Math.max(1, layers) ** 0.55));
  }
}

/** Returns places on the way from some to others, of the rows that both have. */
export function between(from: Places, to: Places, share: number): Places {
  const absent = from.absent && to.absent ? from.absent.map((one, row) => one | to.absent![row]!) : (from.absent ?? to.absent ?? null);
  const mixed: Places = { name: to.name, x: from.x.slice(), y: from.y.slice(), z: from.z?.slice() ?? null, absent };
  for (const axis of ["x", "y", "z"] as const) mix(from[axis], to[axis], share, mixed[axis]);
  return mixed;
}

function mix(from: Float32Array | null, to: Float32Array | null, share: number, into: Float32Array | null): void {
  if (!from || !to || !into) return;
  for (let row = 0; row < from.length; row++) into[row] = from[row]! + (to[row]! - from[row]!) * share;
}

/** Returns the fraction of the page's square that contains points. */
function occupied({ x, y }: Places): number {
  const cells = new Uint8Array(CELLS * CELLS);
  const cell = (at: number) => Math.min(CELLS - 1, Math.max(0, Math.floor(((at + 1) / 2) * CELLS)));
  for (let row = 0; row < x.length; row++) cells[cell(y[row]!) * CELLS + cell(x[row]!)] = 1;
  return cells.reduce((sum, one) => sum + one, 0) / cells.length;
}
