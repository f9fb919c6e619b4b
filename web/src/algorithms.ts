// The manual's page with the survey's algorithms, line by line. The compiled core runs Algorithm 1 in the page; the states
// of Algorithms 2 and 3 were recorded in Python when the site was built (docs/extensions/algorithm_records.py).
import type { RemoteLayout, VicinalWorker } from "./core/client";
import { checkOptions, type FitOptions } from "./core/options";
import { learningRates, scheduleOf } from "./core/schedule";
import { fromBase64, inflate } from "./data";
import { startWorker } from "./engine";
import type { Given } from "./manual";

/** What Python recorded: the states of an algorithm, and the rows and neighbors that all three have. */
export interface Records {
  rows: number;
  nNeighbors: number;
  states: Record<string, { lines: [number, number]; text: string; places: string; marked: number[] }[]>;
}

interface State {
  /** The lines, from 1, whose effect is shown. */
  lines: [number, number];
  text: string;
  /** Places [rows, 2] of the rows that have one. */
  places: Float32Array;
  marked: Set<number>;
  /** Where the rows were before, if not at the places of the last state. */
  from?: Float32Array;
  /** Pairs of rows with the weight of their edge. */
  edges?: [number, number, number][];
  last?: boolean;
}

/** Gives one state after the other; `whole` asks for whole epochs, without what happens inside them. */
type States = AsyncGenerator<State, void, boolean>;

const EPOCHS = 100, RUN_MS = 60, POINT = 3.4, NONE = new Set<number>();

async function* recorded(records: Records, algorithm: string): States {
  const states = records.states[algorithm]!;
  for (const [at, { lines, text, places, marked }] of states.entries()) {
    yield { lines, text, places: new Float32Array(fromBase64(places).buffer), marked: new Set(marked), last: at + 1 === states.length };
  }
}

async function* live({ core, worker: program, sets }: Given, { rows: n, nNeighbors }: Records): States {
  const columns = sets["digits"]!.d, all = new Float32Array(await inflate(fromBase64(sets["digits"]!.rows)));
  const data = { data: all.slice(0, n * columns), n, columns };
  const options: FitOptions = { nNeighbors, nEpochs: EPOCHS };
  const packed = (text: string) => inflate(fromBase64(text));
  const worker = await startWorker(() => packed(program), () => packed(core));
  const still = (lines: [number, number], text: string, places: Float32Array): State => ({ lines, text, places, marked: NONE });
  try {
    yield still([1, 1], `${n} rows of ${columns} numbers.`, new Float32Array(0));
    const neighbors = await worker.neighbors(data, options);
    const [other, far] = [neighbors.index[1]!, neighbors.distance[1]!];
    yield still([2, 2], `Each row has its ${nNeighbors - 1} nearest others: that of row 1 is row ${other + 1}, at the distance ${far.toFixed(1)}.`, new Float32Array(0));
    const graph = await worker.graph(neighbors, options);
    let places = await worker.start(graph, options, data);
    yield still([3, 3], "The points start from eigenvectors of the graph's Laplacian.", places);
    const edges: [number, number, number][] = [];
    for (let i = 0; i < n; i++) for (let e = graph.indptr[i]!; e < graph.indptr[i + 1]!; e++) if (graph.indices[e]! > i) edges.push([i, graph.indices[e]!, graph.weights[e]!]);
    yield { ...still([4, 4], `The graph has ${edges.length} edges; the stronger a line, the larger its p, from ${Math.min(...graph.weights).toFixed(3)} to ${Math.max(...graph.weights).toFixed(3)}.`, places), edges };
    const layout = await worker.layout(graph, places, options);
    const schedule = scheduleOf(checkOptions(options), n, { total: 0, heaviest: 0, linked: n });
    const eta = (epoch: number) => learningRates(schedule, epoch, epoch + 1)[0]!;
    let whole = yield still([5, 5], `The learning rate is ${eta(0).toFixed(3)}.`, places);
    for (let epoch = 0; epoch < EPOCHS; epoch++) {
      const name = `Epoch ${epoch + 1} of ${EPOCHS}`;
      if (!whole) {
        const pulled = await pulls(worker, graph, places, { ...options, nEpochs: 1, negativeSampleRate: 0, learningRate: eta(epoch) });
        whole = yield still([7, 13], `${name}: where the pulls along edges alone would take the points, ${moved(places, pulled)} on average.`, pulled);
      }
      const before = places;
      places = await stepped(layout);
      whole = yield { ...still([7, 16], `${name}: pulls and pushes moved the points by ${moved(before, places)} on average.`, places), from: before };
      const rate = epoch + 1 < EPOCHS ? eta(epoch + 1).toFixed(3) : "0";
      if (!whole) whole = yield still([18, 18], `The learning rate is now ${rate}.`, places);
    }
    yield { ...still([19, 19], `The map after ${EPOCHS} epochs.`, places), last: true };
  } finally {
    worker.terminate();
  }
}

/** One epoch of a layout without negatives, from given places. */
async function pulls(worker: VicinalWorker, graph: Parameters<VicinalWorker["layout"]>[0], places: Float32Array, options: FitOptions): Promise<Float32Array> {
  const layout = await worker.layout(graph, places, options);
  const reached = await stepped(layout);
  await layout.free();
  return reached;
}

async function stepped(layout: RemoteLayout): Promise<Float32Array> {
  return (await layout.run({ epochs: 1 })).embedding;
}

/** The mean distance between the points of two maps. */
function moved(before: Float32Array, after: Float32Array): string {
  let sum = 0;
  for (let at = 0; at < after.length; at += 2) sum += Math.hypot(after[at]! - before[at]!, after[at + 1]! - before[at + 1]!);
  return (sum / (after.length / 2)).toFixed(2);
}

class Steps {
  /** The state that is shown, and the number of those before it. */
  state: State | null = null;
  count = 0;
  done = false;
  running = false;
  private states: States;
  private earlier: Float32Array = new Float32Array(0);
  private busy = false;
  private readonly canvas: HTMLCanvasElement;
  private readonly status: HTMLElement;
  private readonly hint: string;
  private readonly buttons: Record<"step" | "run" | "again", HTMLButtonElement>;

  constructor(private readonly root: HTMLElement, private readonly given: Given, private readonly records: Records) {
    this.canvas = root.querySelector("canvas")!;
    this.status = root.querySelector(".status")!;
    this.hint = this.status.textContent ?? "";
    const button = (name: string) => root.querySelector<HTMLButtonElement>(`button[name=${name}]`)!;
    this.buttons = { step: button("step"), run: button("run"), again: button("again") };
    this.states = this.begin();
    this.buttons.step.addEventListener("click", () => void this.step(false));
    this.buttons.run.addEventListener("click", () => void (this.running ? (this.running = false) : this.run()));
    this.buttons.again.addEventListener("click", () => void this.again());
    new ResizeObserver(() => this.paint()).observe(this.canvas);
    new MutationObserver(() => this.paint()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  private begin(): States {
    const { algorithm } = this.root.dataset;
    return algorithm === "1" ? live(this.given, this.records) : recorded(this.records, algorithm!);
  }

  /** Shows the next state, if there is one and none is being made. */
  private async step(whole: boolean): Promise<void> {
    if (this.busy || this.done) return;
    this.busy = true;
    try {
      const { value, done } = await this.states.next(whole);
      if (!done) this.show(value);
      if (done || value.last) {
        this.done = true;
        await this.states.return(); // ends the worker
      }
    } catch (error) {
      this.done = true;
      this.status.textContent = `This browser cannot run the core: ${error instanceof Error ? error.message : String(error)}`;
    } finally {
      this.busy = false;
    }
    this.label();
  }

  private async run(): Promise<void> {
    this.running = true;
    this.label();
    while (this.running && !this.done) {
      const waited = new Promise((after) => setTimeout(after, RUN_MS));
      await this.step(true);
      await waited;
    }
    this.running = false;
    this.label();
  }

  private async again(): Promise<void> {
    this.running = false;
    await this.states.return();
    [this.state, this.count, this.done, this.earlier] = [null, 0, false, new Float32Array(0)];
    this.states = this.begin();
    this.status.textContent = this.hint;
    this.highlight();
    this.label();
    this.paint();
  }

  private label(): void {
    const { step, run } = this.buttons;
    run.textContent = this.running ? "Pause" : "Run";
    step.disabled = this.done || this.running;
    run.disabled = this.done;
    // a reader of the screen is told of steps, not of every frame of a run
    this.status.setAttribute("aria-live", this.running ? "off" : "polite");
  }

  private show(state: State): void {
    this.earlier = state.from ?? this.state?.places ?? new Float32Array(0);
    this.state = state;
    this.count++;
    this.status.textContent = state.text;
    this.highlight();
    this.paint();
  }

  private highlight(): void {
    const [first, last] = this.state?.lines ?? [0, 0];
    const every = this.root.querySelectorAll("li"), list = this.root.querySelector("ol")!;
    every.forEach((line, a) => {
      if (a + 1 >= first && a + 1 <= last) line.setAttribute("aria-current", "step");
      else line.removeAttribute("aria-current");
    });
    // on a phone the list scrolls: the line reached is in view, with the first marked ones if there is room
    const [top, end] = first ? [every[first - 1]!, every[last - 1]!] : [every[0]!, every[0]!];
    list.scrollTop = Math.max(top.offsetTop, end.offsetTop + end.offsetHeight - list.clientHeight);
  }

  private paint(): void {
    const { canvas, earlier, given } = this, ratio = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    [canvas.width, canvas.height] = [width * ratio, height * ratio];
    const places = this.state?.places;
    if (!places?.length) return;
    const context = canvas.getContext("2d")!, { codes, colors } = given.sets["digits"]!;
    context.scale(ratio, ratio);
    const theme = document.documentElement.dataset["theme"] === "dark" ? "dark" : "light", ink = getComputedStyle(canvas).color;
    // trails begin where the rows were, so these places are in the frame too
    const shown = [...places, ...earlier.subarray(0, places.length)];
    const axis = (a: number) => shown.filter((_, at) => at % 2 === a);
    const [[left, right], [bottom, top]] = [axis(0), axis(1)].map((all) => [Math.min(...all), Math.max(...all)]) as [[number, number], [number, number]];
    const scale = 0.92 * Math.min(width / (right - left || 1), height / (top - bottom || 1));
    const x = (all: Float32Array, row: number) => width / 2 + scale * (all[2 * row]! - (left + right) / 2);
    const y = (all: Float32Array, row: number) => height / 2 - scale * (all[2 * row + 1]! - (bottom + top) / 2);
    const line = (from: Float32Array, i: number, j: number, opacity: number) => {
      context.globalAlpha = opacity;
      context.beginPath();
      context.moveTo(x(from, i), y(from, i));
      context.lineTo(x(places, j), y(places, j));
      context.stroke();
    };
    context.strokeStyle = ink;
    for (const [i, j, weight] of this.state!.edges ?? []) line(places, i, j, 0.1 + 0.7 * weight);
    for (let row = 0; 2 * row < Math.min(earlier.length, places.length); row++) line(earlier, row, row, 0.4);
    context.globalAlpha = 1;
    for (let row = 0; 2 * row < places.length; row++) {
      context.fillStyle = colors[theme][codes[row]!]!;
      context.beginPath();
      context.arc(x(places, row), y(places, row), POINT, 0, 2 * Math.PI);
      context.fill();
      if (this.state!.marked.has(row)) context.stroke();
    }
  }
}

/** Brings the algorithms of the page to life, if it has any. */
export function showAlgorithms(given: Given): void {
  for (const root of document.querySelectorAll<HTMLElement>(".algorithm-steps")) {
    Object.assign(root, { steps: new Steps(root, given, (window as unknown as { algorithmRecords: Records }).algorithmRecords) });
  }
}
