// The page's side of a worker: the same calls as in the thread, as promises.

import type { Graph } from "./graph";
import type { Neighbors } from "./neighbors";
import type { FitOptions, LayoutOptions, Rows } from "./options";
import type { Answer, FitResult, LayoutResult, Progress, Request, RunResult } from "./protocol";

/** How a long call reports, and how it is cancelled. */
export interface RunOptions {
  /** Called about every `every` milliseconds, and at the end. */
  onProgress?: (progress: Progress) => void;
  /** Milliseconds between two calls of `onProgress`; default 50. */
  every?: number;
  /** Whether `onProgress` gets the places of the rows; default false. */
  lookAt?: boolean;
  /** A layout that is aborted keeps its epochs and resolves; a fit rejects with an AbortError. */
  signal?: AbortSignal;
}

interface Waiting {
  resolve: (result: never) => void;
  reject: (error: Error) => void;
  onProgress: ((progress: Progress) => void) | undefined;
}

/** The core in a Web Worker, so that the page never waits. */
export class VicinalWorker {
  private calls = 0;
  private readonly waiting = new Map<number, Waiting>();

  private constructor(private readonly worker: Worker) {
    worker.onmessage = ({ data }: MessageEvent<Answer>) => this.hear(data);
    worker.onerror = (event) => this.fail(new Error(event.message || "the worker could not be started"));
  }

  /** Starts a worker that runs worker.js, with the bytes of the module. */
  static async start(worker: Worker, source: BufferSource | WebAssembly.Module): Promise<VicinalWorker> {
    const client = new VicinalWorker(worker);
    await client.ask({ does: "load", source });
    return client;
  }

  async fit(rows: Rows, options: FitOptions = {}, how: RunOptions = {}): Promise<RemoteMap> {
    const { every = 50, lookAt = false } = how;
    return new RemoteMap(this, await this.ask<FitResult>({ does: "fit", rows, options, every, lookAt }, how));
  }

  /** A map that was made before: of rows with their neighbors and places. */
  async adopt(rows: Rows, neighbors: Neighbors, embedding: Float32Array, options: FitOptions = {}): Promise<RemoteMap> {
    return new RemoteMap(this, await this.ask<FitResult>({ does: "adopt", rows, neighbors, embedding, options }));
  }

  neighbors(rows: Rows, options: FitOptions = {}): Promise<Neighbors> {
    return this.ask({ does: "neighbors", rows, options });
  }

  graph(neighbors: Neighbors, options: FitOptions = {}): Promise<Graph> {
    return this.ask({ does: "graph", neighbors, options });
  }

  start(graph: Graph, options: FitOptions = {}, rows?: Rows): Promise<Float32Array> {
    return this.ask(rows === undefined ? { does: "start", graph, options } : { does: "start", graph, options, rows });
  }

  async layout(graph: Graph, start: Float32Array, options: LayoutOptions = {}, neighbors?: Neighbors): Promise<RemoteLayout> {
    const request = { does: "layout" as const, graph, start, options };
    return new RemoteLayout(this, await this.ask<LayoutResult>(neighbors === undefined ? request : { ...request, neighbors }));
  }

  golden(): Promise<Record<string, string>> {
    return this.ask({ does: "golden" });
  }

  /** Ends the worker at once; calls that wait are rejected. */
  terminate(): void {
    this.worker.terminate();
    this.fail(Object.assign(new Error("the worker was terminated"), { name: "AbortError" }));
  }

  ask<Result>(request: Request, how: RunOptions = {}): Promise<Result> {
    const call = ++this.calls;
    return new Promise<Result>((resolve, reject) => {
      this.waiting.set(call, { resolve, reject, onProgress: how.onProgress });
      const cancel = () => this.worker.postMessage({ does: "cancel", call });
      this.worker.postMessage({ ...request, call });
      if (how.signal?.aborted) cancel();
      else how.signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  private hear(answer: Answer): void {
    const waiting = this.waiting.get(answer.call);
    if (!waiting) return;
    if ("progress" in answer) {
      waiting.onProgress?.(answer.progress);
      return;
    }
    this.waiting.delete(answer.call);
    if ("error" in answer) waiting.reject(Object.assign(new Error(answer.error.message), { name: answer.error.name }));
    else waiting.resolve(answer.result as never);
  }

  private fail(error: Error): void {
    for (const { reject } of this.waiting.values()) reject(error);
    this.waiting.clear();
  }
}

/** A map whose search index lives in the worker. */
export class RemoteMap {
  readonly n: number;
  readonly nComponents: number;
  readonly embedding: Float32Array;
  readonly graph: Graph;
  readonly neighbors: Neighbors;
  readonly isolated: number[];
  private readonly map: number;

  constructor(
    private readonly client: VicinalWorker,
    result: FitResult,
  ) {
    ({ n: this.n, nComponents: this.nComponents, embedding: this.embedding } = result);
    ({ graph: this.graph, neighbors: this.neighbors, isolated: this.isolated, map: this.map } = result);
  }

  transform(rows: Rows): Promise<Float32Array> {
    return this.client.ask({ does: "transform", map: this.map, rows });
  }

  async free(): Promise<void> {
    await this.client.ask({ does: "free", object: this.map });
  }
}

/** A layout in the worker. */
export class RemoteLayout {
  readonly nEpochs: number;
  private readonly layout: number;

  constructor(
    private readonly client: VicinalWorker,
    result: LayoutResult,
  ) {
    ({ nEpochs: this.nEpochs, layout: this.layout } = result);
  }

  /** Runs up to `epochs` more epochs, by default all that are left, unless `signal` aborts. */
  run(how: RunOptions & { epochs?: number } = {}): Promise<RunResult> {
    const { epochs = this.nEpochs, every = 50, lookAt = false } = how;
    return this.client.ask({ does: "run", layout: this.layout, epochs, every, lookAt }, how);
  }

  embedding(): Promise<Float32Array> {
    return this.client.ask({ does: "embedding", layout: this.layout });
  }

  async free(): Promise<void> {
    await this.client.ask({ does: "free", object: this.layout });
  }
}
