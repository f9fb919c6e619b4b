// A page of two versions of a map: rows and areas that changed, arrows of moved rows, and the way from one to the other.
// It is a script of its own before that of the page, so that other pages do not carry it.
import "./diff.css";

import { type App, TOGETHER } from "./app";
import { ClassColumn, type Codes } from "./columns";
import { type AreaChange, type Diff, documentSource, type MapData } from "./data";
import { count, el, icon } from "./element";
import { clusterSpots } from "./islands";
import type { Pane } from "./pane";
import { MARKS } from "./state";
import { between } from "./view";

// More arrows than this would hide each other and the points.
const MOST_ARROWS = 300;
// Shorter arrows on the screen are no more than a dot, in pixels.
const SHORTEST = 5;
const HEAD = 5;
const WAY_MS = 1800;
const ON_THE_WAY = "way";
const STEPS = 100;
const COME = ["born", "grown", "split off"];
const GO = ["gone", "shrunk", "absorbed", "divided"];
const SILENT = "kept";

class Versions {
  arrows = true;
  /** How far the points are on the way from the old version to the new one, if one map is shown. */
  share = 1;
  /** The areas of the old version by row, in the numbers of the new column. */
  private readonly oldAreas: Codes;
  /** Rows that have moved far, in an order in which a part of them is a fair sample. */
  private readonly moved: number[];
  private readonly canvases = new Map<Pane, HTMLCanvasElement>();
  private running = 0;
  private readonly slider = el("input", { type: "range", id: "way", min: "0", max: String(STEPS), value: String(STEPS) });

  constructor(private readonly app: App, private readonly diff: Diff) {
    const { data } = app.state;
    this.oldAreas = codesOf(data, diff.areas[0]);
    const change = data.column(diff.change) as ClassColumn;
    const code = change.names.indexOf(diff.moved);
    this.moved = scattered(Array.from(change.codes, (_, row) => row).filter((row) => change.codes[row] === code));
    app.onPane = (pane) => this.join(pane);
    app.onMaps(() => this.arrived());
    for (const event of ["shown", "selected", "theme", "paint"] as const) app.state.listen(event, () => this.drawArrows());
    this.build();
  }

  /** Gives a pane the areas and names of its version, and a canvas for arrows. */
  private join(pane: Pane): void {
    const { state, panes } = this.app;
    const { view, names } = pane;
    const [old] = state.data.maps;
    view.recolor = ({ places }) => (places === old && this.byArea ? this.oldAreas : null);
    names.spotsOf = () => {
      const version = state.data.maps.indexOf(view.places);
      return version < 0 || !this.byArea ? null : clusterSpots(this.diff.names[version]!, state.data.meta.maps[0]!.box);
    };
    const canvas = el("canvas", { className: "ways" });
    view.canvas.after(canvas);
    this.canvases.set(pane, canvas);
    view.onView(() => {
      this.drawOn(pane);
      // side by side, both versions are seen from the same place
      for (const other of panes) {
        const [from, to] = [view.eye, other.view.eye];
        if (other === pane || (from.distance === to.distance && from.center.every((one, a) => one === to.center[a]))) continue;
        [to.center, to.distance] = [[...from.center], from.distance];
        other.view.changed();
      }
    });
  }

  private get byArea(): boolean {
    return this.app.state.paint.column?.name === this.diff.areas[1];
  }

  private arrived(): void {
    const { shownMaps } = this.app;
    if (shownMaps !== TOGETHER && shownMaps !== ON_THE_WAY) this.share = Number(shownMaps);
    this.slider.value = String(this.share * STEPS);
    this.drawArrows();
  }

  /** Puts the points somewhere on the way. */
  private async go(share: number): Promise<void> {
    if (this.app.shownMaps === TOGETHER) await this.app.showMaps("1");
    const [old, now] = this.app.state.data.maps as [MapData["maps"][0], MapData["maps"][0]];
    const { view, names } = this.app.panes[0]!;
    this.share = share;
    this.slider.value = String(Math.round(share * STEPS));
    view.put(share === 0 ? old : share === 1 ? now : between(old, now, share));
    // neither map is shown, so that the buttons of both lead to them
    this.app.shownMaps = ON_THE_WAY;
    for (const button of this.app.dom.all("#maps button")) button.setAttribute("aria-pressed", "false");
    if (share === 0 || share === 1) {
      await this.app.showMaps(String(share));
      names.locate();
    }
  }

  /** Moves the points from the old version to the new one. */
  async play(): Promise<void> {
    const run = ++this.running;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.go(1);
    await this.go(0);
    const start = performance.now();
    for (let share = 0; share < 1 && run === this.running; ) {
      const now = await new Promise<number>((frame) => requestAnimationFrame(frame));
      share = Math.min(1, Math.max(0, (now - start) / WAY_MS));
      if (run === this.running) await this.go(share === 1 ? 1 : share * share * (3 - 2 * share));
    }
  }

  private build(): void {
    const { dom } = this.app;
    const { facts, changes } = this.diff;
    const list = el("dl", { className: "facts" }, ...facts.flatMap(([name, value]) => [el("dt", { textContent: name }), el("dd", { textContent: value })]));
    const play = el("button", { id: "play", title: "Move the points from the old version to the new one" }, icon("play"), "Play");
    play.onclick = () => void this.play();
    this.slider.setAttribute("aria-label", "From the old version to the new one");
    this.slider.oninput = () => {
      this.running++;
      void this.go(Number(this.slider.value) / STEPS);
    };
    const arrows = el("input", { type: "checkbox", id: "arrows", checked: this.arrows });
    arrows.onchange = () => {
      this.arrows = arrows.checked;
      this.drawArrows();
    };
    const told = changes.filter(({ kind }) => kind !== SILENT);
    const kept = changes.filter(({ kind }) => kind === SILENT);
    const section = el("section", { id: "diff" }, el("h2", {}, el("span", { className: "name", textContent: "What has changed" })), list);
    section.setAttribute("aria-label", "Changes");
    section.append(el("div", { className: "way" }, play, this.slider), el("label", { className: "arrows" }, arrows, "Arrows of moved rows"));
    if (told.length) section.append(this.listing(told));
    if (kept.length) section.append(el("details", { open: told.length === 0 }, el("summary", { textContent: `${count(kept.length)} unchanged areas` }), this.listing(kept)));
    dom.get("find").before(section);
    // a narrow page begins with the old version
    this.arrived();
  }

  private listing(changes: AreaChange[]): HTMLElement {
    return el("ul", {}, ...changes.map((one) => {
      const side = COME.includes(one.kind) ? "come" : GO.includes(one.kind) ? "go" : one.kind === SILENT ? "" : "other";
      const rows = one.rows[0] === 0 ? `+${count(one.rows[1])}` : `${count(one.rows[0])} → ${count(one.rows[1])}`;
      const button = el("button", { title: one.text }, el("span", { className: `kind ${side}`, textContent: one.kind }), el("span", { className: "name", textContent: one.name }), el("span", { className: "n", textContent: rows }));
      button.onclick = () => this.select(one.name);
      return el("li", {}, button);
    }));
  }

  /** Selects the rows that an area has in either version. */
  private select(name: string): void {
    const { state } = this.app;
    const [old, now] = this.diff.areas.map((one) => codesOf(state.data, one)) as [Codes, Codes];
    const code = (state.data.column(this.diff.areas[1]) as ClassColumn).names.indexOf(name);
    const rows: number[] = [];
    for (let row = 0; row < state.data.n; row++) if (old[row] === code || now[row] === code) rows.push(row);
    state.select(rows);
    // both panes follow the one that has the area
    const pane = this.app.panes[now.includes(code) ? this.app.panes.length - 1 : 0]!;
    if (rows.length) void pane.view.zoomTo(rows);
  }

  private drawArrows(): void {
    for (const pane of this.app.panes) this.drawOn(pane);
  }

  /** Returns the rows that have an arrow: the selected ones, otherwise those that moved far; a sample of too many. */
  rowsWithArrows(): number[] {
    const { state } = this.app;
    const maps = state.data.maps;
    const chosen = state.selected.length ? scattered(state.selected) : this.moved;
    const found: number[] = [];
    for (const row of this.arrows ? chosen : []) {
      if (found.length === MOST_ARROWS) break;
      if (state.visible(row) && !maps.some(({ absent }) => absent?.[row])) found.push(row);
    }
    return found;
  }

  /** Draws arrows from the old places to where the points are; on the old map to where they will be. */
  private drawOn({ view }: Pane): void {
    const canvas = [...this.canvases].find(([pane]) => pane.view === view)![1];
    const [old, now] = this.app.state.data.maps as [MapData["maps"][0], MapData["maps"][0]];
    const { width, height } = view.eye;
    const ratio = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const drawing = canvas.getContext("2d")!;
    drawing.scale(ratio, ratio);
    drawing.strokeStyle = drawing.fillStyle = MARKS[this.app.state.themeName];
    drawing.globalAlpha = 0.55;
    drawing.lineWidth = 0.8;
    const together = this.app.shownMaps === TOGETHER;
    if (view.places === old && !together) return;
    const to = view.places === old ? now : view.places;
    for (const row of this.rowsWithArrows()) {
      const place = ({ x, y, z }: typeof old) => view.project(x[row]!, y[row]!, z ? z[row]! : 0);
      drawArrow(drawing, place(old), place(to));
    }
  }
}

function drawArrow(drawing: CanvasRenderingContext2D, [x1, y1]: [number, number], [x2, y2]: [number, number]): void {
  const length = Math.hypot(x2 - x1, y2 - y1);
  if (length < SHORTEST) return;
  const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
  const head = Math.min(HEAD, length / 2);
  drawing.beginPath();
  drawing.moveTo(x1, y1);
  drawing.lineTo(x2 - dx * head, y2 - dy * head);
  drawing.stroke();
  drawing.beginPath();
  drawing.moveTo(x2, y2);
  drawing.lineTo(x2 - head * (dx + 0.45 * dy), y2 - head * (dy - 0.45 * dx));
  drawing.lineTo(x2 - head * (dx - 0.45 * dy), y2 - head * (dy + 0.45 * dx));
  drawing.fill();
}

function codesOf(data: MapData, name: string): Codes {
  return (data.column(name) as ClassColumn).codes;
}

/** Returns rows in an order that has nothing to do with their numbers, always the same. */
function scattered(rows: number[]): number[] {
  const hash = (row: number) => Math.imul(row + 1, 0x9e3779b1) >>> 0;
  return [...rows].sort((a, b) => hash(a) - hash(b));
}

(window.vicinalExtensions ??= []).push(async (app) => {
  const { meta, section } = documentSource();
  if (!meta.diff) return;
  await Promise.all(app.state.data.maps.map(async (map, a) => (map.absent = new Uint8Array((await section(`absent${a}`))!))));
  Object.assign(window, { vicinalDiff: new Versions(app, meta.diff) });
});
