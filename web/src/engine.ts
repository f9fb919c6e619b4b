// Layouts by the compiled core in a Web Worker, so that the page never freezes. The worker is made from the page's own
// text, because a page that was opened from a file may not load another one.
import { type RemoteMap, VicinalWorker } from "./core/client";
import type { Method as CoreMethod, Metric, Table } from "./core/options";
import type { FitOptions, Rows } from "./core";
import type { Knn } from "./knn";
import { supervised } from "./supervised";

export type Method = "UMAP" | "DensMAP" | "LargeVis" | "TSNE";

/** Parameters as in Python. */
export interface Settings {
  method: Method;
  n_neighbors: number;
  min_dist: number;
  spread: number;
  repulsion_strength: number;
  /** Null chooses by the number of rows, as a fit does. */
  n_epochs: number | null;
  random_state: number;
}

/** What a layout takes from the fit. */
export interface Fixed {
  negative_sample_rate: number;
  local_connectivity: number;
  set_op_mix_ratio: number;
  supervision: { far: number; unknown: number };
}

export interface Reached {
  epoch: number;
  epochs: number;
  /** Places of all rows [rows, dimensions]; rows without neighbors lie around the others. */
  places: Float32Array;
}

/** Draws places that were reached, while the layout goes on. */
export type Draw = (reached: Reached) => Promise<void>;

export class Engine {
  private worker: Promise<VicinalWorker> | null = null;
  private stopping = new AbortController();

  constructor(private readonly program: () => Promise<ArrayBuffer>, private readonly core: () => Promise<ArrayBuffer>) {}

  /** Lays out the rows of a neighbor table from the places of `start`; labels of -1 are unknown. */
  run(knn: Knn, start: Float32Array, settings: Settings, fixed: Fixed, labels: Int32Array | null, draw: Draw): Promise<Reached> {
    return this.guarded(async (worker) => {
      const options = optionsOf(settings, fixed, knn.k, start.length / knn.n);
      const neighbors = { ...knn, share: 1 };
      const plain = await worker.graph(neighbors, options);
      const weakened = labels && (settings.method === "UMAP" || settings.method === "DensMAP") ? { n: plain.n, ...supervised(plain, labels, fixed.supervision) } : plain;
      // t-SNE takes given places as they are, the others scale them to the box of a start
      const first = settings.method === "TSNE" ? start : await worker.start(weakened, { ...options, init: start });
      const layout = await worker.layout(weakened, first, options, neighbors);
      const frames = new Frames(draw);
      const { epoch, embedding } = await layout.run({ lookAt: true, signal: this.stopping.signal, onProgress: (one) => frames.show(one) });
      await frames.idle;
      await layout.free();
      return { epoch, epochs: layout.nEpochs, places: embedding };
    });
  }

  /** Fits rows; null if it was stopped. */
  fit(rows: Rows, settings: Settings, fixed: Fixed, draw: Draw): Promise<Reached | null> {
    return this.guarded(async (worker) => {
      const frames = new Frames(draw);
      let epochs = 0;
      let map: RemoteMap;
      try {
        map = await worker.fit(rows, optionsOf(settings, fixed, settings.n_neighbors, 2), {
          lookAt: true,
          signal: this.stopping.signal,
          onProgress: (one) => {
            epochs = one.nEpochs;
            frames.show(one);
          },
        });
      } catch (error) {
        if (error instanceof Error && error.name === "AbortError") return null;
        throw error;
      } finally {
        await frames.idle;
      }
      await map.free();
      return { epoch: epochs, epochs, places: map.embedding };
    });
  }

  /** Places new rows in a map of known ones, which stay. */
  place(known: Table, fresh: Table, metric: Metric, knn: Knn, places: Float32Array, settings: Settings, fixed: Fixed): Promise<Float32Array> {
    return this.guarded(async (worker) => {
      const options = { ...optionsOf(settings, fixed, knn.k, places.length / knn.n), metric };
      const map = await worker.adopt(known, { ...knn, share: 1 }, places, options);
      try {
        return await map.transform(fresh);
      } finally {
        await map.free();
      }
    });
  }

  /** Ends the present layout after its epoch. */
  stop(): void {
    this.stopping.abort();
  }

  private async guarded<T>(work: (worker: VicinalWorker) => Promise<T>): Promise<T> {
    this.stopping = new AbortController();
    const worker = await (this.worker ??= startWorker(this.program, this.core));
    try {
      return await work(worker);
    } catch (error) {
      // a core that has failed, for example without memory, is not used again
      worker.terminate();
      this.worker = null;
      throw error;
    }
  }
}

/** Starts the core in a worker, from the text of its program and the bytes of the module. */
export async function startWorker(program: () => Promise<ArrayBuffer>, core: () => Promise<ArrayBuffer>): Promise<VicinalWorker> {
  const [text, bytes] = await Promise.all([program(), core()]);
  const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
  try {
    return await VicinalWorker.start(new Worker(address), bytes);
  } finally {
    URL.revokeObjectURL(address);
  }
}

const METHODS: Record<Method, CoreMethod> = { UMAP: "umap", DensMAP: "densmap", LargeVis: "largevis", TSNE: "tsne" };

/** Returns the options of the core for a table of k columns. */
function optionsOf(settings: Settings, fixed: Fixed, k: number, dimensions: number): FitOptions {
  const entropic = settings.method === "LargeVis" || settings.method === "TSNE";
  return {
    method: METHODS[settings.method],
    nComponents: dimensions,
    nNeighbors: k,
    ...(entropic && { perplexity: Math.max(1, (k - 1) / 3) }),
    minDist: settings.min_dist,
    spread: settings.spread,
    repulsionStrength: settings.repulsion_strength,
    ...(settings.n_epochs !== null && { nEpochs: settings.n_epochs }),
    negativeSampleRate: fixed.negative_sample_rate,
    localConnectivity: fixed.local_connectivity,
    setOpMixRatio: fixed.set_op_mix_ratio,
    randomState: settings.random_state,
  };
}

/** Draws the newest frame when the one before has been drawn; those between them are dropped. */
class Frames {
  /** Resolves when nothing is being drawn. */
  idle = Promise.resolve();
  private next: Reached | null = null;

  constructor(private readonly draw: Draw) {}

  show({ epoch, nEpochs, embedding }: { epoch: number; nEpochs: number; embedding?: Float32Array }): void {
    if (!embedding) return;
    const waits = this.next !== null;
    this.next = { epoch, epochs: nEpochs, places: embedding };
    if (waits) return;
    this.idle = this.idle.then(() => {
      const newest = this.next!;
      this.next = null;
      return this.draw(newest);
    });
  }
}
