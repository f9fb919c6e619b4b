// Messages between a page and the worker.

import type { Graph } from "./graph";
import type { Stage } from "./map";
import type { Neighbors } from "./neighbors";
import type { FitOptions, LayoutOptions, Rows } from "./options";

export type Request =
  | { does: "load"; source: BufferSource | WebAssembly.Module }
  | { does: "fit"; rows: Rows; options: FitOptions; every: number; lookAt: boolean }
  | { does: "adopt"; rows: Rows; neighbors: Neighbors; embedding: Float32Array; options: FitOptions }
  | { does: "transform"; map: number; rows: Rows }
  | { does: "neighbors"; rows: Rows; options: FitOptions }
  | { does: "graph"; neighbors: Neighbors; options: FitOptions }
  | { does: "start"; graph: Graph; options: FitOptions; rows?: Rows }
  | { does: "layout"; graph: Graph; start: Float32Array; options: LayoutOptions; neighbors?: Neighbors }
  | { does: "run"; layout: number; epochs: number; every: number; lookAt: boolean }
  | { does: "embedding"; layout: number }
  | { does: "cancel"; call: number }
  | { does: "free"; object: number }
  | { does: "golden" };

/** A request with its number, which the answers repeat. */
export type Asked = Request & { call: number };

export interface Progress {
  stage: Stage;
  epoch: number;
  nEpochs: number;
  embedding?: Float32Array;
}

export type Answer =
  | { call: number; result: unknown }
  | { call: number; error: { name: string; message: string } }
  | { call: number; progress: Progress };

export interface FitResult {
  map: number;
  n: number;
  nComponents: number;
  embedding: Float32Array;
  graph: Graph;
  neighbors: Neighbors;
  isolated: number[];
}

export interface LayoutResult {
  layout: number;
  nEpochs: number;
}

export interface RunResult {
  epoch: number;
  finished: boolean;
  embedding: Float32Array;
}
