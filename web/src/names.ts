// Names on the map: beside the points they name and never over them or over each other, more of them as one zooms, and
// at last the texts of single rows. A line leads from a name to its area; lines do not cross.
import { type Box, Crowd } from "./crowd";
import { el, svg } from "./element";
import { clusterSpots, islands, type Spot } from "./islands";
import { type Classes, classPaint } from "./paint";
import type { State } from "./state";
import type { View } from "./view";

const MOST_CLASSES = 400;
// On a map with few points a name would hide its points.
const FEWEST_POINTS = 100;
// One name per this area of the canvas, in square pixels.
const AREA = 14_000;
const MOST = 90;
// A further area of a class is named when it is this large on the screen, in pixels.
const WORTH_NAMING = 6;
// How far from its area a name may stand, in pixels: main names, and finer ones.
const REACH = [320, 110];
const STEP = 9;
const DIRECTIONS = Array.from({ length: 16 }, (_, a) => (a * Math.PI) / 8);
const GAP = 3;
// Height of the toolbar, and of marks above it, at the lower edge.
const [TOOLS, TOOLS_AND_MARKS] = [58, 92];
// A name may cover this many points of other classes, if it covers none of its own.
const TOLERATED = 2;
const COST_OF_POINT = 25;
// Rows are named by their own texts when at most this many are on the canvas.
const FEW_ROWS = 60;
// Longer names and texts of rows are cut, so that exports show what the page shows.
const [LONGEST_NAME, LONGEST_ROW] = [36, 42];
export const ROW_LEVEL = 3;

type Line = [number, number, number, number];

/** A name that is shown, for exports. */
export interface Placed extends Box {
  text: string;
  level: number;
  line: Line | null;
}

interface Name extends Spot {
  element: HTMLElement;
  width: number;
  height: number;
  /** Where it stood last, from its area: it stays there as long as it can. */
  last: [number, number] | null;
}

export class Names {
  placed: Placed[] = [];
  /** Returns the areas to name if this map has its own; null for those of the paint. */
  spotsOf: (() => Spot[] | null) | null = null;
  private spots: Name[] = [];
  private codes: Classes["codes"] | null = null;
  private rowNames: HTMLElement[] = [];
  private wanted = true;
  private scheduled = 0;

  constructor(private readonly layer: HTMLElement, private readonly lines: SVGSVGElement, private readonly state: State, private readonly view: View) {
    this.locate();
    for (const event of ["rows", "paint", "shown"] as const) state.listen(event, () => this.locate());
  }

  get any(): boolean {
    return this.spots.length > 0 || this.rowText !== null;
  }

  /** Places the names at the next frame, together with the points. */
  request(): void {
    this.scheduled ||= requestAnimationFrame(() => {
      this.scheduled = 0;
      this.place();
    });
  }

  toggle(): boolean {
    this.wanted = !this.wanted;
    this.place();
    return this.wanted;
  }

  /** Returns the areas to name: of the classes that color the points, of clusters, or of the classes shown before. */
  private areas(): Spot[] {
    const { data, paint } = this.state;
    this.codes = null;
    if (data.n < FEWEST_POINTS) return [];
    const own = this.spotsOf?.();
    if (own) return own;
    const first = this.view.places === data.maps[0];
    if (!paint.classes && first && data.meta.clusters.length) return clusterSpots(data.meta.clusters, data.meta.maps[0]!.box);
    const before = paint.classes ? null : data.column(this.state.classesBefore ?? "");
    const classes = paint.classes ?? (before && classPaint(before, data.meta.palette).classes);
    if (!classes || classes.names.length > MOST_CLASSES) return [];
    this.codes = classes.codes;
    return islands(this.view.places, classes.codes, classes.names, (row) => this.view.shows(row));
  }

  /** Finds the areas to name; call it when points have moved. */
  locate(): void {
    this.layer.replaceChildren();
    this.rowNames = [];
    this.spots = this.areas().slice(0, 4 * MOST).map((spot) => {
      const text = shortened(spot.text, LONGEST_NAME);
      const element = el("span", { textContent: text, className: `level${Math.min(2, spot.level)}` });
      this.layer.append(element);
      return { ...spot, text, element, width: 0, height: 0, last: null };
    });
    // all sizes at once, so that the browser lays them out once
    for (const spot of this.spots) [spot.width, spot.height] = [spot.element.offsetWidth, spot.element.offsetHeight];
    this.place();
  }

  place(): void {
    this.layer.style.display = this.lines.style.display = this.wanted ? "" : "none";
    this.placed = [];
    const marks: SVGElement[] = [];
    if (this.wanted && this.any) {
      const crowd = new Crowd(this.view, this.state);
      const most = Math.min(MOST, Math.max(6, (this.view.eye.width * this.view.eye.height) / AREA));
      for (const spot of this.spots) {
        const placed = this.placed.length < most ? this.fit(spot, crowd) : null;
        spot.element.style.visibility = placed ? "visible" : "hidden";
        if (!placed) continue;
        this.placed.push(placed);
        spot.element.style.transform = `translate(${Math.round(placed.left)}px, ${Math.round(placed.top)}px)`;
        if (placed.line) {
          const [x1, y1, x2, y2] = placed.line;
          marks.push(svg("line", { x1, y1, x2, y2 }), svg("circle", { cx: x1, cy: y1, r: 2 }));
        }
      }
      this.nameRows(crowd);
    }
    this.lines.replaceChildren(...marks);
  }

  /** Returns where a name fits: near its area, with a line to it, and over none of its points; null if nowhere. */
  private fit(spot: Name, crowd: Crowd): Placed | null {
    const { width, height, unit } = this.view.eye;
    if (spot.level > 0 && spot.radius * unit < WORTH_NAMING) return null;
    const [px, py] = this.view.project(spot.x, spot.y, spot.z);
    if (px < 0 || py < 0 || px > width || py > height) return null;
    const own = spot.code >= 0 && this.codes ? (row: number) => this.codes![row] === spot.code : () => true;
    let [best, least]: [Placed | null, number] = [null, Infinity];
    const attempt = (dx: number, dy: number, cost: number): boolean => {
      const found = this.at(spot, px, py, dx, dy);
      if (!found || cost >= least) return false;
      const covered = crowd.within(this.padded(found), TOLERATED, own);
      if (covered > TOLERATED || cost + covered * COST_OF_POINT >= least) return false;
      [best, least] = [found, cost + covered * COST_OF_POINT];
      spot.last = [dx, dy];
      return true;
    };
    if (spot.last && attempt(...spot.last, 0)) return best;
    attempt(0, 0, 0);
    const reach = REACH[Math.min(1, spot.level)]!;
    for (const angle of DIRECTIONS) {
      const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
      const support = Math.min(spot.width / 2 / Math.max(1e-6, Math.abs(cos)), spot.height / 2 / Math.max(1e-6, Math.abs(sin)));
      for (let distance = STEP; distance <= reach && distance < least; distance += STEP) {
        if (attempt(cos * (distance + support), sin * (distance + support), distance)) break;
      }
    }
    if (!best) spot.last = null;
    return best;
  }

  /** Returns a name at an offset from its area, if it is on the canvas and apart from the other names and lines. */
  private at(spot: Name, px: number, py: number, dx: number, dy: number): Placed | null {
    const { width, height } = this.view.eye;
    const [x, y] = [px + dx, py + dy];
    const box: Box = { left: x - spot.width / 2, right: x + spot.width / 2, top: y - spot.height / 2, bottom: y + spot.height / 2 };
    const floor = height - (this.view.outliers.length ? TOOLS_AND_MARKS : TOOLS);
    if (box.left < 2 || box.top < 2 || box.right > width - 2 || box.bottom > floor) return null;
    const inside = px >= box.left && px <= box.right && py >= box.top && py <= box.bottom;
    const end: [number, number] = [Math.min(box.right, Math.max(box.left, px)), Math.min(box.bottom, Math.max(box.top, py))];
    const line: Placed["line"] = inside ? null : [px, py, ...end];
    for (const other of this.placed) {
      if (!apart(box, other) || (other.line && crosses(box, other.line)) || (line && crosses(other, line)) || (line && other.line && meet(line, other.line))) return null;
    }
    return { ...box, text: spot.text, level: spot.level, line };
  }

  /** Adds the size of a point, so that no part of one is covered. */
  private padded(box: Box): Box {
    const by = this.view.pointSize() / 2;
    return { left: box.left - by, right: box.right + by, top: box.top - by, bottom: box.bottom + by };
  }

  /** Returns the function that gives rows their own text, or null if they have none. */
  private get rowText(): ((row: number) => string) | null {
    const { data } = this.state;
    const texts = data.columns.find((one) => one.kind === "texts");
    return texts ? (row) => texts.text(row) : data.hasIds ? (row) => data.ids.at(row) : null;
  }

  /** Names single rows when few are on the canvas. */
  private nameRows(crowd: Crowd): void {
    const text = this.rowText;
    const few = text && crowd.complete && crowd.size <= FEW_ROWS && crowd.size < this.state.data.n / 2;
    let used = 0;
    for (const { row, x, y } of few ? crowd.list() : []) {
      const cut = shortened(text!(row).split("\n")[0]!.trim(), LONGEST_ROW);
      if (!cut) continue;
      const element = (this.rowNames[used] ??= this.layer.appendChild(el("span", { className: "row" })));
      element.textContent = cut;
      const placed = this.beside(crowd, row, x, y, cut, element);
      element.style.visibility = placed ? "visible" : "hidden";
      if (!placed) continue;
      used++;
      this.placed.push(placed);
      element.style.transform = `translate(${Math.round(placed.left)}px, ${Math.round(placed.top)}px)`;
    }
    for (const element of this.rowNames.slice(used)) element.style.visibility = "hidden";
  }

  /** Returns where the text of a row fits: right of its point, left, above or below. */
  private beside(crowd: Crowd, row: number, x: number, y: number, text: string, element: HTMLElement): Placed | null {
    const { offsetWidth: width, offsetHeight: height } = element;
    const gap = this.view.pointSize() / 2 + 2;
    const spot = { text, level: ROW_LEVEL, width, height } as Name;
    for (const [dx, dy] of [[gap + width / 2, 0], [-gap - width / 2, 0], [0, -gap - height / 2], [0, gap + height / 2]] as const) {
      const found = this.at(spot, x, y, dx, dy);
      if (found && crowd.within(found, 0, (other) => other !== row) === 0) return { ...found, line: null };
    }
    return null;
  }
}

function shortened(text: string, longest: number): string {
  const letters = [...text];
  return letters.length > longest ? `${letters.slice(0, longest - 1).join("").trimEnd()}…` : text;
}

function apart(a: Box, b: Box): boolean {
  return a.left > b.right + GAP || a.right < b.left - GAP || a.top > b.bottom || a.bottom < b.top;
}

/** Returns whether two lines cross: the ends of each are on different sides of the other. */
function meet(a: Line, b: Line): boolean {
  return side(a, b[0], b[1]) * side(a, b[2], b[3]) < 0 && side(b, a[0], a[1]) * side(b, a[2], a[3]) < 0;
}

function side([x1, y1, x2, y2]: Line, x: number, y: number): number {
  return (x2 - x1) * (y - y1) - (y2 - y1) * (x - x1);
}

/** Returns whether a line passes through a box, tested at a few points along it. */
function crosses(box: Box, [x1, y1, x2, y2]: Line): boolean {
  const steps = Math.max(8, Math.ceil(Math.hypot(x2 - x1, y2 - y1) / 12));
  for (let a = 0; a <= steps; a++) {
    const [x, y] = [x1 + ((x2 - x1) * a) / steps, y1 + ((y2 - y1) * a) / steps];
    if (x > box.left && x < box.right && y > box.top && y < box.bottom) return true;
  }
  return false;
}
