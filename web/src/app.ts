// The page: connects maps, legend, search, selection, card, tools and keys. It is mounted in a document or in a widget.
import { Card } from "./card";
import { type MapData, readData, type Source } from "./data";
import { count, Dom, icon, type Root } from "./element";
import { bindKeys, keyList } from "./keys";
import { buildFilters, buildLegend } from "./legend";
import { Feed } from "./live";
import { Pane } from "./pane";
import { choosePicture } from "./picture";
import { buildSearch } from "./search";
import { buildSelection } from "./selection";
import { State } from "./state";
import { openTable } from "./table";
import type { View } from "./view";

declare global {
  interface Window {
    vicinalExtensions?: ((app: App) => Promise<void>)[];
  }
}

export const TOGETHER = "together";
// Two maps side by side need this width, in pixels.
const WIDE = 700;

export class App {
  readonly panes: Pane[] = [];
  private readonly spares: Pane[] = [];
  readonly card: Card;
  feed: Feed | null = null;
  themeChanged = false;
  /** Whether some rows are shown as a map of their own: the address names rows of the whole map. */
  part?: boolean;
  private lassoOn = false;
  private namesOn = true;
  /** Shows the tools that the data allow. */
  updateTools: () => void = () => {};
  private readonly mapListeners: (() => void)[] = [];
  /** Is called with each new pane, before it draws. */
  onPane: ((pane: Pane) => void) | null = null;

  constructor(readonly dom: Dom, readonly state: State) {
    this.card = new Card(dom.get("card"), state);
    this.firstMaps = state.data.maps.length > 1 && dom.get("stage").clientWidth >= WIDE ? TOGETHER : "0";
    this.shownMaps = this.firstMaps;
  }

  /** Which maps are shown: the number of one, or all of them together. */
  shownMaps: string;
  readonly firstMaps: string;

  get view(): View {
    return this.panes[0]!.view;
  }

  get names() {
    return this.panes[0]!.names;
  }

  async draw(): Promise<void> {
    // a script before this one may add to the page
    for (const extend of window.vicinalExtensions ?? []) await extend(this);
    this.arrange();
    for (const pane of this.panes) await pane.draw();
    this.connect();
  }

  /** Creates or removes panes so that the maps that should be shown are. */
  private arrange(): void {
    const { maps } = this.state.data;
    const wanted = this.shownMaps === TOGETHER ? maps.map((_, a) => a) : [Number(this.shownMaps)];
    this.dom.get("panes").style.gridTemplateColumns = `repeat(${Math.min(2, wanted.length)}, minmax(0, 1fr))`;
    while (this.panes.length > wanted.length) {
      // browsers limit the number of graphics contexts, so a pane is kept for later
      const spare = this.panes.pop()!;
      spare.element.remove();
      this.spares.push(spare);
    }
    for (const map of wanted.slice(this.panes.length)) {
      const spare = this.spares.pop();
      if (spare) {
        spare.reuse(this.dom, this.state, map);
        this.panes.push(spare);
        continue;
      }
      const pane = new Pane(this.dom, this.state, map, {
        hover: (row, which) => this.hover(row, which.view),
        moved: () => this.card.place(),
        lassoEnd: () => this.lasso(false),
      });
      pane.view.onView(() => this.card.place());
      this.panes.push(pane);
      this.onPane?.(pane);
    }
    for (const { view } of this.panes) view.resize();
    for (const button of this.dom.all("#maps button")) button.setAttribute("aria-pressed", String(button.dataset["map"] === this.shownMaps));
  }

  /** Shows one map, whose points move to their new places, or all maps side by side. */
  async showMaps(which: string): Promise<void> {
    const known = which === TOGETHER || this.state.data.maps[Number(which)] !== undefined;
    if (!known || which === this.shownMaps) return;
    const before = this.panes.length;
    this.shownMaps = which;
    const first = which === TOGETHER ? 0 : Number(which);
    this.arrange();
    await this.panes[0]!.show(this.state, first);
    for (const pane of this.panes.slice(before)) await pane.draw();
    if (before !== this.panes.length) for (const pane of this.panes) await pane.view.fit(false);
    for (const listener of this.mapListeners) listener();
  }

  onMaps(listener: () => void): void {
    this.mapListeners.push(listener);
  }

  nextMap(): void {
    const { length } = this.state.data.maps;
    if (length < 2) return;
    const order = [...Array.from({ length }, (_, a) => String(a)), TOGETHER];
    void this.showMaps(order[(order.indexOf(this.shownMaps) + 1) % order.length]!);
  }

  private hover(row: number, view: View): void {
    this.state.hover(row);
    if (row >= 0) this.card.show(row, view);
    else this.card.hide();
  }

  point(row: number): void {
    this.hover(row, this.view);
  }

  inspect(): void {
    const row = this.view.nearest(this.view.eye.width / 2, this.view.eye.height / 2);
    if (row >= 0) this.point(row);
  }

  private connect(): void {
    const { dom, state } = this;
    buildLegend(dom, state);
    buildFilters(dom, state);
    const point = (row: number) => this.point(row);
    buildSearch(dom, state, { point, visit: (row) => void this.view.zoomTo([row]).then(() => point(row)) });
    buildSelection(dom, state, { zoom: () => this.zoomToSelection(), all: () => state.select(state.visibleRows() ?? Array.from({ length: state.data.n }, (_, row) => row)), point });
    const showCount = () => {
      const visible = state.visibleCount();
      dom.get("count").textContent = visible === state.data.n ? `${count(visible)} points` : `${count(visible)} of ${count(state.data.n)} points shown`;
    };
    const tools = () => {
      dom.get("show-names").hidden = !this.panes.some(({ names }) => names.any);
      dom.get("density").hidden = !this.panes[0]!.density.possible;
      dom.get("near").hidden = state.data.neighbors === null;
    };
    for (const event of ["shown", "rows"] as const) state.listen(event, showCount);
    for (const event of ["paint", "rows"] as const) state.listen(event, tools);
    state.listen("theme", () => (dom.page.dataset["theme"] = state.themeName));
    this.updateTools = tools;
    tools();
    this.bindTools();
    bindKeys(this);
    new ResizeObserver(() => {
      for (const { view } of this.panes) view.resize();
      this.card.place();
    }).observe(dom.get("stage"));
  }

  private bindTools(): void {
    const { dom } = this;
    const on = (id: string, act: () => void) => (dom.get(id).onclick = act);
    on("zoom-in", () => void this.view.zoom(1.6));
    on("zoom-out", () => void this.view.zoom(1 / 1.6));
    on("fit", () => this.fit());
    on("lasso", () => this.lasso());
    on("show-names", () => this.showNames());
    on("density", () => this.showDensity());
    on("near", () => this.showNearest());
    on("smaller", () => this.resizePoints(0.8));
    on("larger", () => this.resizePoints(1.25));
    on("save", () => this.savePicture());
    on("theme", () => this.theme());
    on("help", () => this.help());
    on("panel-toggle", () => this.panel());
    const maps = dom.get("maps");
    maps.hidden = this.state.data.maps.length < 2;
    const choices = [...this.state.data.maps.map(({ name }, a) => [name, String(a)] as const), ["Side by side", TOGETHER] as const];
    for (const [text, which] of choices) {
      const button = document.createElement("button");
      button.textContent = text;
      button.dataset["map"] = which;
      button.setAttribute("aria-pressed", String(which === this.shownMaps));
      button.onclick = () => void this.showMaps(which);
      maps.append(button);
    }
  }

  fit(): void {
    for (const { view } of this.panes) void view.fit();
  }

  pan(across: number, up: number): void {
    this.view.pan(across, up);
  }

  lasso(on: boolean = !this.lassoOn): void {
    this.lassoOn = on;
    this.dom.get("lasso").setAttribute("aria-pressed", String(on));
    for (const { gestures, view } of this.panes) {
      gestures.lasso = on;
      view.canvas.classList.toggle("drawing", on);
    }
  }

  showNames(): void {
    this.namesOn = !this.namesOn;
    for (const { names } of this.panes) names.toggle();
    this.dom.get("show-names").setAttribute("aria-pressed", String(this.namesOn));
  }

  showDensity(): void {
    let on = false;
    for (const { density } of this.panes) on = density.toggle();
    this.dom.get("density").setAttribute("aria-pressed", String(on));
  }

  showNearest(): void {
    let on = false;
    for (const { nearest } of this.panes) on = nearest.toggle();
    this.dom.get("near").setAttribute("aria-pressed", String(on));
  }

  resizePoints(factor: number): void {
    for (const { view } of this.panes) view.resizePoints(factor);
  }

  theme(): void {
    this.themeChanged = true;
    this.state.setTheme(this.state.themeName === "dark" ? "light" : "dark");
  }

  panel(): void {
    const closed = this.dom.page.classList.toggle("closed");
    this.dom.get("panel-toggle").setAttribute("aria-expanded", String(!closed));
  }

  savePicture(): void {
    choosePicture(this);
  }

  help(): void {
    const dialog = this.dom.get<HTMLDialogElement>("help-dialog");
    if (dialog.open) return dialog.close();
    const close = document.createElement("button");
    close.textContent = "Close";
    close.autofocus = true;
    close.onclick = () => dialog.close();
    const title = document.createElement("h2");
    title.textContent = "Keys and gestures";
    dialog.replaceChildren(title, keyList(this.state.data.maps.length > 1, this.state.data.neighbors !== null), close);
    dialog.showModal();
  }

  table(): void {
    if (this.state.selected.length) openTable(this.dom, this.state, [...this.state.selected].sort((a, b) => a - b), (row) => this.point(row));
  }

  nextColumn(): void {
    const names = this.state.data.columns.filter(({ kind }) => kind !== "texts").map(({ name }) => name);
    if (names.length === 0) return;
    const at = names.indexOf(this.state.paint.column?.name ?? "");
    this.state.colorBy(names[(at + 1) % names.length]!);
  }

  zoomToSelection(): void {
    if (this.state.selected.length) for (const { view } of this.panes) void view.zoomTo(this.state.selected);
  }

  escape(): void {
    this.state.hover(-1);
    this.card.hide();
    this.lasso(false);
    this.state.found = [];
    this.state.changed("found");
    this.state.select([]);
  }
}

/** Shows the data of a source in a root that contains the elements of the page. */
export async function mount(root: Root, source: Source): Promise<App> {
  const dom = new Dom(root);
  const { meta } = source;
  const dark = meta.theme === "dark" || (meta.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  dom.page.dataset["theme"] = dark ? "dark" : "light";
  dom.get("title").textContent = meta.title;
  dom.get("count").textContent = meta.n ? `${count(meta.n)} points` : "";
  for (const button of dom.all("#tools button")) button.append(icon(button.id));
  try {
    const data: MapData = await readData(source);
    dom.get("busy-text").textContent = "Drawing";
    const app = new App(dom, new State(data));
    await app.draw();
    // the first frame is requested: the page is ready when it has been drawn, which a hidden page never does
    if (!document.hidden) await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    // a live page has nothing to show before its first frame
    dom.get("busy").hidden = meta.live === null;
    if (meta.live) app.feed = new Feed(app, meta.live);
    return app;
  } catch (error) {
    dom.get("busy").hidden = false;
    dom.get("busy").classList.add("failed");
    dom.get("busy-text").textContent = `This map cannot be shown here: ${error instanceof Error ? error.message : String(error)}.`;
    throw error;
  }
}
