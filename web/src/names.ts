// Names on the map: as many as fit at the present zoom, none over another, with a line to the area of a displaced name.
import { el, svg } from "./element";
import { clusterSpots, islands, type Spot } from "./islands";
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
const DISPLACEMENTS = [26, 44, 64];
const DIRECTIONS = [-90, 90, -45, -135, 45, 135, 0, 180].map((angle) => (angle * Math.PI) / 180);
const GAP = 3;

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

/** A name that is shown, for exports. */
export interface Placed extends Box {
  text: string;
  level: number;
  line: [number, number, number, number] | null;
}

export class Names {
  placed: Placed[] = [];
  private spots: (Spot & { element: HTMLElement; width: number; height: number })[] = [];
  private wanted = true;

  constructor(private readonly layer: HTMLElement, private readonly lines: SVGSVGElement, private readonly state: State, private readonly view: View) {
    this.locate();
    state.listen("theme", () => this.place());
    state.listen("shown", () => this.place());
    for (const event of ["rows", "paint"] as const) state.listen(event, () => this.locate());
  }

  get any(): boolean {
    return this.spots.length > 0;
  }

  toggle(): boolean {
    this.wanted = !this.wanted;
    this.place();
    return this.wanted;
  }

  /** Finds the areas to name; call it when points have moved. */
  locate(): void {
    const { data, paint } = this.state;
    const { classes } = paint;
    let spots: Spot[] = [];
    if (data.n >= FEWEST_POINTS) {
      if (classes && classes.names.length <= MOST_CLASSES) spots = islands(this.view.places, classes.codes, classes.names);
      else if (this.view.places === data.maps[0]) spots = clusterSpots(data.meta.clusters, data.meta.maps[0]!.box);
    }
    this.layer.replaceChildren();
    this.spots = spots.slice(0, 4 * MOST).map((spot) => {
      const element = el("span", { textContent: spot.text, className: `level${Math.min(2, spot.level)}` });
      this.layer.append(element);
      return { ...spot, element, width: 0, height: 0 };
    });
    // all sizes at once, so that the browser lays them out once
    for (const spot of this.spots) [spot.width, spot.height] = [spot.element.offsetWidth, spot.element.offsetHeight];
    this.place();
  }

  place(): void {
    this.layer.style.display = this.lines.style.display = this.wanted ? "" : "none";
    this.placed = [];
    const marks: SVGElement[] = [];
    if (this.wanted) {
      const { width, height } = this.view.eye;
      const most = Math.min(MOST, Math.max(6, (width * height) / AREA));
      for (const spot of this.spots) {
        const placed = this.placed.length < most ? this.fit(spot, width, height) : null;
        spot.element.style.visibility = placed ? "visible" : "hidden";
        if (!placed) continue;
        this.placed.push(placed);
        spot.element.style.transform = `translate(${Math.round(placed.left)}px, ${Math.round(placed.top)}px)`;
        if (placed.line) {
          const [x1, y1, x2, y2] = placed.line;
          marks.push(svg("line", { x1, y1, x2, y2 }), svg("circle", { cx: x1, cy: y1, r: 2 }));
        }
      }
    }
    this.lines.replaceChildren(...marks);
  }

  /** Returns where a name fits: on its area, or beside it with a line; null if nowhere. */
  private fit(spot: (typeof this.spots)[number], width: number, height: number): Placed | null {
    if (spot.code >= 0 && this.state.shown[spot.code] !== 1) return null;
    if (spot.level > 0 && spot.radius * this.view.eye.unit < WORTH_NAMING) return null;
    const [px, py] = this.view.project(spot.x, spot.y, spot.z);
    if (px < 0 || py < 0 || px > width || py > height) return null;
    const about = (x: number, y: number): Box => ({ left: x - spot.width / 2, right: x + spot.width / 2, top: y - spot.height / 2, bottom: y + spot.height / 2 });
    const free = (box: Box) =>
      box.left >= 2 && box.top >= 2 && box.right <= width - 2 && box.bottom <= height - 2 && this.placed.every((other) => apart(box, other) && (!other.line || !crosses(box, other.line)));
    const own = about(px, py);
    if (free(own)) return { ...own, text: spot.text, level: spot.level, line: null };
    // finer names wait for more room instead of pointing from afar
    if (spot.level > 0) return null;
    for (const distance of DISPLACEMENTS) {
      for (const angle of DIRECTIONS) {
        const [x, y] = [px + Math.cos(angle) * (distance + spot.width / 3), py + Math.sin(angle) * distance];
        const box = about(x, y);
        const end: [number, number] = [Math.min(box.right, Math.max(box.left, px)), Math.min(box.bottom, Math.max(box.top, py))];
        const line: [number, number, number, number] = [px, py, ...end];
        if (free(box) && this.placed.every((other) => !crosses(other, line))) return { ...box, text: spot.text, level: spot.level, line };
      }
    }
    return null;
  }
}

function apart(a: Box, b: Box): boolean {
  return a.left > b.right + GAP || a.right < b.left - GAP || a.top > b.bottom || a.bottom < b.top;
}

/** Returns whether a line passes through a box, tested at a few points along it. */
function crosses(box: Box, [x1, y1, x2, y2]: [number, number, number, number]): boolean {
  for (let share = 0; share <= 1; share += 0.125) {
    const [x, y] = [x1 + (x2 - x1) * share, y1 + (y2 - y1) * share];
    if (x > box.left && x < box.right && y > box.top && y < box.bottom) return true;
  }
  return false;
}
