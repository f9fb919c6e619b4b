// Lays the map or the selected rows out again: parameters, progress, and the way back.
import type { App } from "./app";
import type { Source } from "./data";
import { ClassColumn } from "./columns";
import { count, download, el, plural, shortest } from "./element";
import { Engine, type Fixed, type Method, type Reached, type Settings } from "./engine";
import { centered } from "./frames";
import { among, decodeKnn, type Knn, shareEqual } from "./knn";
import { heading } from "./legend";
import { type Content, contentAmong, contentOf, contentWith, show } from "./part";
import { type KnownRows, knownRows, readRows, type RowsMeta } from "./placing";
import { turnOnto } from "./turning";

/** The description of a layout in the page; its encoder is src/vicinal/viewer/relayout.py. */
export interface LayoutMeta extends Fixed, Settings {
  k: number;
  bytes: number;
  dimensions: number;
  /** What is kept of the rows, if readers can place new ones. */
  rows?: RowsMeta;
}

const METHODS: Method[] = ["UMAP", "DensMAP", "LargeVis", "TSNE"];
// A layout of fewer rows says nothing.
const FEWEST_ROWS = 10;
// Names and point sizes are updated at every frame; on larger maps at every eighth, on large ones at the end.
const [SMALL, LARGE, SETTLE_FRAMES] = [5_000, 50_000, 8];

const LARGEST_SEED = 2 ** 32 - 1;
// One thread lays out as many rows by t-SNE in about 10 s.
const MOST_TSNE_ROWS = 2_500;
// t-SNE starts so narrow that all rows repel each other.
const TSNE_WIDTH = 2e-4;

type Axes = Float32Array[];

/** Rows that are shown as a map of their own. */
interface Level {
  name: string;
  /** Numbers of the rows in the whole map, ascending. */
  rows: Int32Array;
  content: Content;
  /** The places before any layout here. */
  before: Axes;
  made: Made | null;
  /** Whether new rows are among them: these have no neighbors in the table. */
  fixed?: boolean;
}

/** A layout that has ended, in its own coordinates. */
export interface Made extends Reached {
  settings: Settings;
  /** The positions from which it began, those of the page. */
  start: Float32Array;
  seconds: number;
}

export class Relayout {
  /** The whole map, and the parts that lead to the rows shown now. */
  readonly levels: Level[];
  running = false;
  /** Frames drawn by the last layout. */
  frames = 0;
  private readonly engine: Engine;
  // what travels is decoded when it is first needed
  private table: Promise<Knn> | null = null;
  private known: Promise<KnownRows> | null = null;
  private readonly crumbs = el("nav", { className: "crumbs", hidden: true });
  private readonly parts = {
    all: el("button", { id: "lay-out", className: "primary" }),
    selection: el("button", { id: "lay-out-selection", className: "primary" }),
    stop: el("button", { id: "stop", textContent: "Stop", hidden: true }),
    undo: el("button", { id: "undo", textContent: "Restore", title: "Show the points where they were", hidden: true }),
    save: el("button", { id: "save-layout", textContent: "Download", title: "Download the positions (CSV)", hidden: true }),
    bar: el("progress", { max: 1, hidden: true }),
    note: el("p", { className: "hint", id: "layout-note" }),
  };

  static async of(page: App, source: Source): Promise<Relayout> {
    const meta = (source.meta as unknown as { layout: LayoutMeta }).layout;
    const [equal, first] = [new Uint32Array((await source.section("equal")) ?? new ArrayBuffer(0)), new Map<number, number>()];
    for (let a = 0; a < equal.length / 2; a++) first.set(equal[a]!, equal[equal.length / 2 + a]!);
    return new Relayout(page, meta, first, source);
  }

  private constructor(private readonly page: App, private readonly meta: LayoutMeta, private readonly first: Map<number, number>, private readonly source: Source) {
    const section = async (name: string) => (await source.section(name))!;
    this.engine = new Engine(() => section("worker"), () => section("core"));
    const content = contentOf(page.state.data);
    const rows = Int32Array.from({ length: content.meta.n }, (_, row) => row);
    this.levels = [{ name: "All points", rows, content, before: copied(this.axes), made: null }];
    this.build();
    page.state.listen("selected", () => this.update());
    this.update();
  }

  private get level(): Level {
    return this.levels.at(-1)!;
  }

  /** Returns the neighbor table of the whole map. */
  private knn(): Promise<Knn> {
    const { k, bytes } = this.meta;
    const decoded = async () => {
      const [numbers, steps] = await Promise.all([this.source.section("table"), this.source.section("distances")]);
      return decodeKnn(this.source.meta.n, k, bytes, numbers!, steps!);
    };
    return (this.table ??= decoded());
  }

  private get axes(): Axes {
    const { x, y, z } = this.page.state.data.maps[0]!;
    return z ? [x, y, z] : [x, y];
  }

  /** Shows the selected rows as a map of their own and lays them out. */
  async laySelectionOut(): Promise<Made | null> {
    const { state, view } = this.page;
    const chosen = Int32Array.from(state.selected).sort();
    if (this.running || this.level.fixed || chosen.length < FEWEST_ROWS) return null;
    const { rows, content } = this.level;
    this.keep();
    const part = contentAmong(content, chosen);
    const name = plural(chosen.length, "point");
    this.page.part = true;
    this.levels.push({ name, rows: chosen.map((row) => rows[row]!), content: part, before: [], made: null });
    show(state, part);
    // the part fills the map
    const { x, y, z } = part.places;
    centered({ run: 0, epoch: 0, epochs: 0, exact: false, x: x.slice(), y: y.slice(), z: z?.slice() ?? null }, state.data.maps[0]!);
    this.level.before = copied(this.axes);
    view.redraw();
    await this.settle();
    return this.layOut();
  }

  /** Lays out the rows that are shown, from where they are. */
  async layOut(): Promise<Made | null> {
    if (this.running || this.level.fixed) return null;
    const { state, dom } = this.page;
    const [settings, goal] = [this.settings(), copied(this.axes)];
    const { rows } = this.level;
    const start = interleaved(goal);
    if (settings.method === "TSNE") start.forEach((at, e) => (start[e] = at * TSNE_WIDTH));
    this.running = true;
    this.frames = 0;
    this.update();
    this.say("Starting", 0);
    const begun = performance.now();
    try {
      if (settings.method === "TSNE" && rows.length > MOST_TSNE_ROWS) throw new Error(`t-SNE adds up all pairs: select at most ${count(MOST_TSNE_ROWS)} points`);
      const knn = among(await this.knn(), rows, settings.n_neighbors);
      const reached = await this.engine.run(knn, start, settings, this.meta, this.labels(), (one) => this.draw(one, goal));
      shareEqual(reached.places, rows, this.first);
      await this.draw(reached, goal);
      const seconds = (performance.now() - begun) / 1000;
      this.level.made = { ...reached, seconds, start, settings };
      state.data.exact = { x: axisOf(reached.places, 0, goal.length), y: axisOf(reached.places, 1, goal.length) };
      // names of clusters stood for areas of the map as it was
      state.data.meta = { ...state.data.meta, clusters: [] };
      this.keep();
      const text = `${plural(reached.epoch, "epoch")} of ${plural(rows.length, "point")} in ${seconds.toFixed(1)} s${reached.epoch < reached.epochs ? ", stopped" : ""}`;
      this.say(text);
      dom.say(text);
    } catch (error) {
      this.say(`The layout has failed: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.running = false;
      this.update();
      await this.settle();
    }
    return this.level.made;
  }

  stop(): void {
    this.engine.stop();
  }

  /** Returns to the rows of an earlier level, selecting those that were laid out from there. */
  async back(to: number): Promise<void> {
    if (this.running || to >= this.levels.length - 1) return;
    this.keep();
    const { rows: left } = this.levels[to + 1]!;
    this.levels.length = to + 1;
    this.page.part = to > 0;
    show(this.page.state, this.level.content);
    this.page.view.redraw();
    const number = new Map(Array.from(this.level.rows, (row, a) => [row, a] as const));
    this.page.state.select(Array.from(left, (row) => number.get(row)!));
    this.say("");
    this.update();
    await this.settle();
  }

  /** Puts the points where they were before any layout of these rows. */
  async undo(): Promise<void> {
    if (this.running) return;
    this.axes.forEach((axis, a) => axis.set(this.level.before[a]!));
    this.level.made = null;
    this.page.state.data.exact = null;
    this.keep();
    this.page.view.moved();
    this.say("");
    this.update();
    await this.settle();
  }

  /** Places rows of a text in the whole map, and shows them among its points; returns their places in the map's units. */
  async place(text: string): Promise<Float32Array | null> {
    const { rows: kept } = this.meta;
    if (this.running || !kept) return null;
    await this.back(0);
    this.running = true;
    this.update();
    this.say("Placing new rows");
    try {
      const fresh = readRows(text, kept.columns, kept.names);
      const { rows, prepare } = await (this.known ??= knownRows(kept, this.source));
      const map = this.level.made?.places ?? this.inUnits();
      const settings = this.level.made?.settings ?? this.meta;
      const knn = among(await this.knn(), this.level.rows, settings.n_neighbors);
      const placed = await this.engine.place(rows, prepare(fresh), kept.metric, knn, map, settings, this.meta);
      await this.showPlaced(map, placed);
      this.say(`${plural(fresh.n, "new row")} placed`);
      return placed;
    } catch (error) {
      this.say(error instanceof Error ? error.message : String(error));
      return null;
    } finally {
      this.running = false;
      this.update();
    }
  }

  /** Shows new rows among the points of the whole map; both are given in the map's units. */
  private async showPlaced(map: Float32Array, placed: Float32Array): Promise<void> {
    const { state, view } = this.page;
    const [goal, d] = [this.axes, this.meta.dimensions];
    const joined = Float32Array.from([...map, ...placed]);
    const axes = goal.map((_, axis) => axisOf(joined, axis, d));
    // the known points stay: what turns their places onto the screen turns the new ones too
    turnOnto(axes, goal);
    goal.forEach((axis, a) => axes[a]!.set(axis));
    const [known, fresh] = [state.data.n, placed.length / d];
    this.keep();
    const content = contentWith(this.level.content, { x: axes[0]!, y: axes[1]!, z: axes[2] ?? null }, fresh, "new row");
    this.page.part = true;
    this.levels.push({ name: plural(fresh, "new row"), rows: new Int32Array(0), content, before: [], made: null, fixed: true });
    show(state, content);
    view.redraw();
    state.select(Array.from({ length: fresh }, (_, row) => known + row));
    await this.settle();
  }

  /** Returns the places of the page in the map's own units. */
  private inUnits(): Float32Array {
    const { box } = this.page.state.data.meta.maps[0]!;
    const d = this.meta.dimensions;
    const longest = Math.max(...this.axes.map((_, a) => box[d + a]! - box[a]!)) || 1;
    return interleaved(this.axes).map((at, e) => (at * longest) / 2 + (box[e % d]! + box[d + (e % d)]!) / 2);
  }

  /** Offers the last layout of these rows as a table: positions, and the start from which Python gets the same ones. */
  save(): void {
    download("layout.csv", new Blob([this.asText()], { type: "text/csv" }));
  }

  asText(): string {
    const { made, rows } = this.level;
    const { dimensions } = this.meta;
    const names = ["x", "y", "z"].slice(0, dimensions);
    const head = ["row", ...names, ...names.map((name) => `start_${name}`)];
    const lines = Array.from(rows, (row, a) => {
      const of = (places: Float32Array) => names.map((_, axis) => shortest(places[a * dimensions + axis]!));
      return [row, ...of(made!.places), ...of(made!.start)].join(",");
    });
    return `${[head.join(","), ...lines].join("\n")}\n`;
  }

  /** Returns the classes of the column that supervises the layout. */
  private labels(): Int32Array | null {
    const column = this.page.state.data.column(this.field("supervised").value);
    if (!(column instanceof ClassColumn)) return null;
    return Int32Array.from(column.codes, (code) => (code < column.names.length ? code : -1));
  }

  private async draw(reached: Reached, goal: Axes): Promise<void> {
    const { state, view } = this.page;
    const d = goal.length;
    const into = state.data.maps[0]!;
    const [x, y] = [axisOf(reached.places, 0, d), axisOf(reached.places, 1, d)];
    centered({ run: 0, epoch: 0, epochs: 0, exact: false, x, y, z: d > 2 ? axisOf(reached.places, 2, d) : null }, into);
    turnOnto(this.axes, goal);
    view.moved();
    this.page.card.place();
    this.say(`Epoch ${count(reached.epoch)} of ${count(reached.epochs)}`, reached.epoch / reached.epochs);
    if (state.data.n <= (this.frames++ % SETTLE_FRAMES ? SMALL : LARGE)) await this.settle(false);
    await new Promise((drawn) => requestAnimationFrame(drawn));
  }

  private async settle(fit = true): Promise<void> {
    const { view, names, panes } = this.page;
    view.settle();
    names.locate();
    panes[0]!.density.outdated();
    if (fit) await view.fit();
  }

  /** Keeps what is shown with its level. */
  private keep(): void {
    this.level.content = contentOf(this.page.state.data);
  }

  private field<T extends HTMLInputElement | HTMLSelectElement>(name: string): T {
    return this.page.dom.get<T>(`layout-${name}`);
  }

  /** Returns the values of the fields; a number outside of its range is replaced by the nearest one inside. */
  private settings(): Settings {
    const number = (name: string) => {
      const field = this.field<HTMLInputElement>(name);
      const [low, high] = [Number(field.min), Number(field.max)];
      const given = Number.isFinite(field.valueAsNumber) ? field.valueAsNumber : Number(field.defaultValue);
      const value = Math.min(high, Math.max(low, given));
      const kept = field.step === "1" ? Math.round(value) : value;
      if (field.value !== "" || field.defaultValue !== "") field.value = String(kept);
      return kept;
    };
    const spread = number("spread");
    const epochs = this.field<HTMLInputElement>("n_epochs").value === "" ? null : number("n_epochs");
    const min_dist = Math.min(number("min_dist"), spread);
    this.field("min_dist").value = String(min_dist);
    return {
      method: this.field("method").value as Method,
      n_neighbors: number("n_neighbors"),
      min_dist,
      spread,
      repulsion_strength: number("repulsion_strength"),
      n_epochs: epochs,
      random_state: number("random_state"),
    };
  }

  private build(): void {
    const { dom, state } = this.page;
    const { parts, meta } = this;
    const number = (name: string, value: number | "", min: number, max: number, step: number | "any", title: string) => {
      const input = el("input", { type: "number", id: `layout-${name}`, defaultValue: String(value), min: String(min), max: String(max), step: String(step), title });
      if (value === "") input.placeholder = "auto";
      return labeled(name, input);
    };
    const choice = (name: string, choices: string[], value: string, title: string) => {
      const select = el("select", { id: `layout-${name}`, title });
      select.append(...choices.map((one) => el("option", { value: one, textContent: one || "nothing", selected: one === value })));
      return labeled(name, select);
    };
    const classes = state.data.columns.filter((one) => one instanceof ClassColumn).map(({ name }) => name);
    const fields = [
      choice("method", METHODS, meta.method, "Which costs and weights"),
      number("n_neighbors", meta.n_neighbors, 2, meta.k, 1, `Neighbors of a row, itself included: at most the ${meta.k} of this page`),
      number("min_dist", meta.min_dist, 0, 10, 0.05, "How close points may lie"),
      number("spread", meta.spread, 0.1, 10, 0.1, "How far clusters spread"),
      number("repulsion_strength", meta.repulsion_strength, 0, 20, 0.1, "Factor on the repulsion"),
      number("n_epochs", meta.n_epochs ?? "", 1, 5000, 1, "Epochs; empty chooses by the number of points"),
      number("random_state", meta.random_state, 0, LARGEST_SEED, 1, "The same number gives the same map"),
    ];
    if (classes.length) fields.push(choice("supervised", ["", ...classes], "", "Points of the same class are drawn together"));
    else fields.push(el("input", { type: "hidden", id: "layout-supervised" }));
    const settings = el("details", { className: "settings" }, el("summary", { textContent: "Parameters" }), el("div", { className: "parameters" }, ...fields));
    parts.all.onclick = () => void this.layOut();
    parts.selection.onclick = () => void this.laySelectionOut();
    parts.stop.onclick = () => this.stop();
    parts.undo.onclick = () => void this.undo();
    parts.save.onclick = () => this.save();
    const section = dom.get("live");
    section.hidden = false;
    const { bar, note, all, selection, stop, undo, save } = parts;
    bar.setAttribute("aria-label", "Progress of the layout");
    section.append(heading("Layout"), el("div", { className: "actions" }, selection, all, stop, undo, save), el("div", { className: "stage" }, bar, note), settings);
    if (meta.rows) section.append(this.offer(meta.rows));
    this.crumbs.setAttribute("aria-label", "Parts of the map");
    dom.get("count").after(this.crumbs);
  }

  /** Creates the fields for new rows: text, or a file that is chosen or dropped. */
  private offer({ columns, names }: RowsMeta): HTMLElement {
    const text = el("textarea", { id: "new-rows", rows: 3, spellcheck: false, placeholder: names ? names.join(",") : `rows of ${columns} numbers` });
    text.setAttribute("aria-label", "New rows, one per line");
    const read = async (file: File | undefined) => {
      if (file) text.value = await file.text();
      if (file) await this.place(text.value);
    };
    const file = el("input", { type: "file", accept: ".csv,.tsv,.txt", id: "new-rows-file" });
    file.setAttribute("aria-label", "File of new rows");
    file.onchange = () => void read(file.files?.[0]);
    text.ondragover = (event) => event.preventDefault();
    text.ondrop = (event) => {
      event.preventDefault();
      void read(event.dataTransfer?.files[0]);
    };
    const button = el("button", { id: "place", textContent: "Place", onclick: () => void this.place(text.value) });
    const hint = el("p", { className: "hint", textContent: names ? "Paste or drop a CSV with these columns." : `Paste or drop a CSV of ${columns} columns.` });
    return el("details", { className: "settings placing" }, el("summary", { textContent: "Place new rows" }), hint, text, el("div", { className: "actions" }, button, file));
  }

  private say(text: string, share: number | null = null): void {
    const { bar, note } = this.parts;
    bar.hidden = share === null;
    bar.value = share ?? 0;
    note.textContent = text;
  }

  private update(): void {
    const { parts, levels, level, running } = this;
    const { selected, data } = this.page.state;
    const part = selected.length >= FEWEST_ROWS && selected.length < data.n;
    parts.selection.hidden = running || !part || level.fixed === true;
    parts.selection.textContent = `Lay out ${count(selected.length)} selected`;
    parts.all.hidden = running || level.fixed === true;
    parts.all.textContent = part ? "Lay out all" : "Lay out again";
    parts.all.classList.toggle("primary", !part);
    parts.stop.hidden = !running;
    parts.undo.hidden = parts.save.hidden = running || !level.made;
    this.crumbs.hidden = levels.length < 2;
    this.crumbs.replaceChildren(
      ...levels.flatMap(({ name }, a) => {
        if (a === levels.length - 1) {
          const here = el("span", { textContent: name });
          here.setAttribute("aria-current", "page");
          return [here];
        }
        return [el("button", { className: "link", textContent: name, disabled: running, onclick: () => void this.back(a) }), el("span", { textContent: "›", ariaHidden: "true" })];
      }),
    );
  }
}

function labeled(name: string, field: HTMLElement): HTMLElement {
  return el("label", {}, el("span", { textContent: name === "supervised" ? "supervised by" : name.replaceAll("_", " ") }), field);
}

function copied(axes: Axes): Axes {
  return axes.map((axis) => axis.slice());
}

/** Returns one coordinate of all rows. */
function axisOf(places: Float32Array, axis: number, dimensions: number): Float32Array {
  return Float32Array.from({ length: places.length / dimensions }, (_, row) => places[row * dimensions + axis]!);
}

/** Returns coordinates row by row. */
function interleaved(axes: Axes): Float32Array {
  return Float32Array.from({ length: axes.length * axes[0]!.length }, (_, at) => axes[at % axes.length]![Math.floor(at / axes.length)]!);
}
