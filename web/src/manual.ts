// The manual's page with sliders: the compiled core lays out a small data set again whenever a slider moves. The script
// also runs the page with the survey's algorithms.
import { showAlgorithms } from "./algorithms";
import { fromBase64, inflate } from "./data";
import { Engine, type Fixed, type Method, type Reached, type Settings } from "./engine";
import { turnOnto } from "./turning";

/** What both pages load: the core, its worker, and the data sets; written by docs/extensions/site_data.py. */
export interface Given {
  core: string;
  worker: string;
  fixed: Fixed;
  sets: Record<string, { n: number; d: number; rows: string; colors: Record<"light" | "dark", string[]>; codes: number[] }>;
}

const POINT = 2.6;

class SliderMap {
  /** Places of the last frame [rows, 2], turned onto those of the map before. */
  places: Float32Array = new Float32Array(0);
  epoch = 0;
  done = false;
  runs = 0;
  private before: Float32Array | null = null;
  private readonly engine: Engine;
  private readonly canvas: HTMLCanvasElement;
  private readonly status: HTMLElement;
  private wanted = false;
  private busy = false;

  constructor(private readonly root: HTMLElement, private readonly given: Given) {
    const packed = (text: string) => async () => inflate(fromBase64(text));
    this.engine = new Engine(packed(given.worker), packed(given.core));
    this.canvas = root.querySelector("canvas")!;
    this.status = root.querySelector(".status")!;
    for (const field of this.fields) field.addEventListener("input", () => this.change(field));
    root.querySelector("button[name=again]")!.addEventListener("click", () => void this.run());
    new ResizeObserver(() => this.paint()).observe(this.canvas);
    new MutationObserver(() => this.paint()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    for (const field of this.fields) this.show(field);
    void this.run();
  }

  private get fields(): (HTMLInputElement | HTMLSelectElement)[] {
    return [...this.root.querySelectorAll<HTMLInputElement | HTMLSelectElement>("input, select")];
  }

  private value(name: string): string {
    return this.root.querySelector<HTMLInputElement>(`[name=${name}]`)!.value;
  }

  private show(field: HTMLInputElement | HTMLSelectElement): void {
    const output = this.root.querySelector(`output[for=${field.id}]`);
    if (output) output.textContent = field.value;
  }

  private change(field: HTMLInputElement | HTMLSelectElement): void {
    this.show(field);
    if (field.name === "data") this.before = null;
    void this.run();
  }

  /** Lays out with the present values; a layout that is still running ends first. */
  async run(): Promise<void> {
    this.wanted = true;
    this.done = false;
    this.engine.stop();
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.wanted) {
        this.wanted = false;
        await this.once();
      }
    } catch (error) {
      this.status.textContent = `This browser cannot run the core: ${error instanceof Error ? error.message : String(error)}`;
    } finally {
      this.busy = false;
    }
  }

  private async once(): Promise<void> {
    const { given } = this;
    const number = (name: string) => Number(this.value(name));
    const set = given.sets[this.value("data")]!;
    const values = new Float32Array(await inflate(fromBase64(set.rows)));
    const settings: Settings = {
      method: this.value("method") as Method,
      n_neighbors: number("n_neighbors"),
      min_dist: number("min_dist"),
      spread: 1,
      repulsion_strength: number("repulsion_strength"),
      n_epochs: null,
      random_state: number("random_state"),
    };
    const goal = this.before;
    const begun = performance.now();
    this.status.textContent = "Finding neighbors";
    const rows = { data: values, n: set.n, columns: set.d };
    const reached = await this.engine.fit(rows, settings, given.fixed, (one) => this.draw(one, goal));
    if (!reached || this.wanted) return;
    await this.draw(reached, goal);
    this.before = this.places.slice();
    this.done = true;
    this.runs++;
    this.status.textContent += ` · ${((performance.now() - begun) / 1000).toFixed(1)} s · ${set.n} rows`;
  }

  private async draw({ epoch, epochs, places }: Reached, goal: Float32Array | null): Promise<void> {
    if (goal?.length === places.length) {
      const axes = (all: Float32Array) => [0, 1].map((a) => Float32Array.from({ length: all.length / 2 }, (_, row) => all[2 * row + a]!));
      const turned = axes(places);
      turnOnto(turned, axes(goal));
      turned.forEach((axis, a) => axis.forEach((at, row) => (places[2 * row + a] = at)));
    }
    this.places = places;
    this.epoch = epoch;
    this.status.textContent = `epoch ${epoch} of ${epochs}`;
    await new Promise((drawn) => requestAnimationFrame(drawn));
    this.paint();
  }

  private paint(): void {
    const { canvas, places, given } = this;
    if (places.length === 0) return;
    const set = given.sets[this.value("data")]!;
    const ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    const context = canvas.getContext("2d")!;
    context.scale(ratio, ratio);
    const colors = set.colors[document.documentElement.dataset["theme"] === "dark" ? "dark" : "light"];
    let [left, right, bottom, top] = [Infinity, -Infinity, Infinity, -Infinity];
    for (let at = 0; at < places.length; at += 2) {
      [left, right] = [Math.min(left, places[at]!), Math.max(right, places[at]!)];
      [bottom, top] = [Math.min(bottom, places[at + 1]!), Math.max(top, places[at + 1]!)];
    }
    const scale = 0.94 * Math.min(width / (right - left || 1), height / (top - bottom || 1));
    set.codes.forEach((code, row) => {
      context.fillStyle = colors[code]!;
      context.beginPath();
      context.arc(width / 2 + scale * (places[2 * row]! - (left + right) / 2), height / 2 - scale * (places[2 * row + 1]! - (bottom + top) / 2), POINT, 0, 2 * Math.PI);
      context.fill();
    });
  }
}

const given = (window as unknown as { sliderData: Given }).sliderData;
for (const root of document.querySelectorAll<HTMLElement>(".slider-map[data-core]")) {
  Object.assign(root, { map: new SliderMap(root, given) });
}
showAlgorithms(given);
