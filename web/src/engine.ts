// Layouts in a Web Worker, so that the page never freezes. The worker is made from the page's own text: a page that was
// opened from a file may not load another one. Its program is layout_worker.ts.
import type { Knn } from "./knn";

export type Method = "UMAP" | "LargeVis" | "DensMAP";

export interface Settings {
  method: Method;
  n_neighbors: number;
  min_dist: number;
  spread: number;
  repulsion_strength: number;
  /** Null chooses by the number of rows, as a fit does. */
  n_epochs: number | null;
  /** A number that stands for one of `seeds`, as in Python. */
  random_state: number;
}

/** What a fit does that the reader does not change. */
export interface Fixed {
  negative_sample_rate: number;
  local_connectivity: number;
  set_op_mix_ratio: number;
  supervision: { far: number; unknown: number };
}

/** Rows of data, from which the worker finds the neighbors; it keeps the table of the last name. */
export interface Rows {
  name: string;
  n: number;
  d: number;
  values: Float32Array;
}

export interface Task {
  from: { knn: Knn } | { rows: Rows };
  /** First places [rows, dimensions], scaled to the box of a start by the worker; null takes that of a fit. */
  start: Float32Array | null;
  dimensions: number;
  settings: Settings;
  fixed: Fixed;
  seed: number;
  /** The class of every row, -1 if it is unknown; null without supervision. */
  labels: Int32Array | null;
}

export interface Progress {
  epoch: number;
  epochs: number;
  /** Places of all rows [rows, dimensions]; rows without neighbors lie around the others. */
  places: Float32Array;
}

export type Told = ({ kind: "moved" } & Progress) | ({ kind: "done"; cancelled: boolean } & Progress) | { kind: "failed"; message: string } | { kind: "ready" };
export type Asked = { kind: "core"; core: ArrayBuffer } | { kind: "run"; task: Task } | { kind: "drawn" } | { kind: "stop" };

export class Engine {
  private worker: Promise<Worker> | null = null;
  private running: Worker | null = null;

  constructor(private readonly program: () => Promise<ArrayBuffer>, private readonly core: () => Promise<ArrayBuffer>) {}

  /** Runs a layout; `moved` draws the places of some epochs, and the worker waits for it before it sends others. */
  async run(task: Task, moved: (progress: Progress) => Promise<void>): Promise<Progress & { cancelled: boolean }> {
    const worker = await (this.worker ??= this.start());
    this.running = worker;
    try {
      return await new Promise((done, fail) => {
        worker.onerror = (event) => fail(new Error(event.message || "the worker has ended"));
        worker.onmessage = ({ data }: MessageEvent<Told>) => {
          if (data.kind === "moved") void moved(data).then(() => this.say(worker, { kind: "drawn" }));
          else if (data.kind === "done") done(data);
          else if (data.kind === "failed") fail(new Error(data.message));
        };
        this.say(worker, { kind: "run", task });
      });
    } catch (error) {
      // a core that has failed, for example without memory, is not used again
      worker.terminate();
      this.worker = null;
      throw error;
    } finally {
      this.running = null;
    }
  }

  /** Ends the present layout after its epoch; the places reached so far are its result. */
  stop(): void {
    if (this.running) this.say(this.running, { kind: "stop" });
  }

  private say(worker: Worker, what: Asked): void {
    worker.postMessage(what);
  }

  private async start(): Promise<Worker> {
    const [program, core] = await Promise.all([this.program(), this.core()]);
    const address = URL.createObjectURL(new Blob([program], { type: "text/javascript" }));
    const worker = new Worker(address);
    await new Promise<void>((ready, fail) => {
      worker.onerror = (event) => fail(new Error(event.message || "this browser starts no worker"));
      worker.onmessage = ({ data }: MessageEvent<Told>) => (data.kind === "ready" ? ready() : fail(new Error("message" in data ? data.message : data.kind)));
      worker.postMessage({ kind: "core", core } satisfies Asked, [core]);
    });
    URL.revokeObjectURL(address);
    return worker;
  }
}
