// One map on the stage with everything that lies over it: contours, names, the lasso.
import { Beyond } from "./beyond";
import { Density } from "./density";
import { type Dom, el, svg } from "./element";
import { type Combination, Gestures } from "./gestures";
import { Names } from "./names";
import { Nearest } from "./nearest";
import type { State } from "./state";
import { View } from "./view";

export interface PaneActions {
  hover: (row: number, pane: Pane) => void;
  moved: () => void;
  lassoEnd: () => void;
}

const DESCRIPTION =
  "Map of points. Arrow keys move, plus and minus zoom, 0 shows everything, L draws a lasso, Enter inspects the point in the middle, question mark lists all keys.";

export class Pane {
  readonly element: HTMLElement;
  readonly view: View;
  readonly names: Names;
  readonly density: Density;
  readonly nearest: Nearest;
  readonly beyond: Beyond;
  readonly gestures: Gestures;
  private readonly title = el("h2", { className: "map-name" });
  private readonly path = svg("path");

  constructor(dom: Dom, state: State, public map: number, actions: PaneActions) {
    const canvas = el("canvas", { className: "map", tabIndex: 0 });
    if (!dom.get("map")) canvas.id = "map";
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-label", DESCRIPTION);
    const contours = el("canvas", { className: "contours", hidden: true });
    const lines = svg("svg", { class: "lines", "aria-hidden": "true" });
    const lasso = svg("svg", { class: "lasso", "aria-hidden": "true" }, this.path);
    const layer = el("div", { className: "names" });
    layer.setAttribute("aria-hidden", "true");
    const near = svg("svg", { class: "lines near", "aria-hidden": "true" });
    const marks = el("div", { className: "beyond" });
    this.element = el("div", { className: "pane" }, canvas, contours, near, lines, layer, lasso, marks, this.title);
    dom.get("panes").append(this.element);
    this.view = new View(canvas, state, map);
    this.names = new Names(layer, lines, state, this.view);
    this.density = new Density(contours, state, this.view);
    this.nearest = new Nearest(near, state, this.view);
    this.beyond = new Beyond(marks, this.view);
    this.gestures = new Gestures(this.view, {
      hover: (row) => actions.hover(row, this),
      pick: (row, how) => this.pick(state, row, how, actions),
      lasso: (polygon, how) => {
        state.select(combined(state.selected, this.view.within(polygon), how));
        actions.lassoEnd();
      },
      drawing: (polygon) => this.path.setAttribute("d", polygon.length ? `M${polygon.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L")}Z` : ""),
      moved: actions.moved,
    });
    this.view.onView(() => {
      this.names.request();
      this.density.place();
      this.nearest.place();
      this.beyond.place();
    });
    this.entitle(state);
  }

  private pick(state: State, row: number, how: Combination, actions: PaneActions): void {
    actions.hover(row, this);
    if (row >= 0) state.select(combined(state.selected, [row], how));
    else if (how === "replace" && state.selected.length) state.select([]);
  }

  private entitle(state: State): void {
    this.title.textContent = state.data.maps[this.map]!.name;
    this.title.hidden = state.data.maps.length < 2;
  }

  /** Shows another map of the same rows; the points move there. */
  async show(state: State, map: number): Promise<void> {
    this.map = map;
    this.entitle(state);
    await this.view.show(map);
    this.names.locate();
    this.density.outdated();
  }

  /** Puts the pane back on the stage, with a map. */
  reuse(dom: Dom, state: State, map: number): void {
    this.map = map;
    this.view.put(state.data.maps[map]!);
    this.entitle(state);
    dom.get("panes").append(this.element);
  }

  async draw(): Promise<void> {
    await this.view.draw();
    this.names.locate();
  }
}

export function combined(before: number[], rows: number[], how: Combination): number[] {
  if (how === "replace") return rows;
  const changed = new Set(rows);
  return how === "add" ? [...new Set([...before, ...rows])] : before.filter((row) => !changed.has(row));
}
