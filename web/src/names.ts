// Names of classes on the map, each at the densest spot of its class; if two collide, the larger class is shown.
import { el } from "./element";
import type { State } from "./state";
import type { View } from "./view";

const MOST = 60;
// On a map with few points a name would hide its points.
const FEWEST_POINTS = 100;
const CELLS = 32;
const SAMPLE = 200_000;

interface Name {
  code: number;
  x: number;
  y: number;
  element: HTMLElement;
}

export class Names {
  private names: Name[] = [];
  private wanted = true;

  constructor(private readonly layer: HTMLElement, private readonly state: State, private readonly view: View) {
    this.name();
    this.locate();
    state.listen("theme", () => this.place());
    state.listen("shown", () => this.place());
    state.listen("rows", () => this.name());
  }

  /** Creates an element for each class, larger ones first; `locate` positions them. */
  private name(): void {
    const { data, names, counts } = this.state;
    const few = data.n < FEWEST_POINTS || data.meta.categories.length > MOST;
    const bySize = few ? [] : data.meta.categories.map((_, code) => code).sort((a, b) => counts[b]! - counts[a]!);
    const before = new Map(this.names.map((one) => [one.element.textContent!, one]));
    this.names = bySize.map((code) => ({ x: NaN, y: NaN, element: el("span", { textContent: names[code]! }), ...before.get(names[code]!), code }));
    this.layer.replaceChildren(...this.names.map(({ element }) => element));
  }

  get any(): boolean {
    return this.names.length > 0;
  }

  toggle(): boolean {
    this.wanted = !this.wanted;
    this.place();
    return this.wanted;
  }

  /** Finds the densest spot of each class; call it when points have moved. */
  locate(): void {
    const { x, y, codes, n } = this.state.data;
    if (!this.any || codes === null) return;
    const grids = this.state.names.map(() => new Uint32Array(CELLS * CELLS));
    const cell = (at: number) => Math.min(CELLS - 1, Math.max(0, Math.floor(((at + 1) / 2) * CELLS)));
    const step = Math.max(1, Math.floor(n / SAMPLE));
    for (let row = 0; row < n; row += step) grids[codes[row]!]![cell(y[row]!) * CELLS + cell(x[row]!)]!++;
    const sums = this.state.names.map(() => ({ x: 0, y: 0, n: 0 }));
    const best = grids.map(densest);
    for (let row = 0; row < n; row += step) {
      const code = codes[row]!;
      const [bx, by] = best[code]!;
      if (Math.abs(cell(x[row]!) - bx) > 1 || Math.abs(cell(y[row]!) - by) > 1) continue;
      sums[code]!.x += x[row]!;
      sums[code]!.y += y[row]!;
      sums[code]!.n++;
    }
    for (const name of this.names) {
      const sum = sums[name.code]!;
      name.x = sum.x / sum.n;
      name.y = sum.y / sum.n;
    }
    this.place();
  }

  place(): void {
    this.layer.hidden = !this.wanted;
    if (!this.wanted) return;
    const taken: { left: number; right: number; top: number; bottom: number }[] = [];
    for (const { code, x, y, element } of this.names) {
      const [px, py] = this.view.project(x, y);
      const width = element.offsetWidth;
      const height = element.offsetHeight;
      const box = { left: px - width / 2, right: px + width / 2, top: py - height / 2, bottom: py + height / 2 };
      const clear = taken.every((other) => box.left > other.right || box.right < other.left || box.top > other.bottom || box.bottom < other.top);
      const visible = this.state.shown[code] === 1 && Number.isFinite(x) && clear;
      element.style.visibility = visible ? "visible" : "hidden";
      if (!visible) continue;
      taken.push(box);
      element.style.transform = `translate(${Math.round(box.left)}px, ${Math.round(box.top)}px)`;
    }
  }
}

/** Returns the cell with the most points in it and its eight neighbors. */
function densest(grid: Uint32Array): [number, number] {
  let best: [number, number] = [0, 0];
  let most = -1;
  for (let cy = 0; cy < CELLS; cy++) {
    for (let cx = 0; cx < CELLS; cx++) {
      let sum = 0;
      for (let y = Math.max(0, cy - 1); y <= Math.min(CELLS - 1, cy + 1); y++) {
        for (let x = Math.max(0, cx - 1); x <= Math.min(CELLS - 1, cx + 1); x++) sum += grid[y * CELLS + x]!;
      }
      if (sum > most) [best, most] = [[cx, cy], sum];
    }
  }
  return best;
}
