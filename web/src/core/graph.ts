// Graphs of rows, in compressed sparse rows.

import type { Core, Memory } from "./module";
import type { Neighbors } from "./neighbors";
import { type Checked, defaults } from "./options";

/** The edges of row i are those from `indptr[i]` to `indptr[i + 1]`; both directions of an edge have the same weight. */
export interface Graph {
  n: number;
  indptr: Int32Array;
  indices: Int32Array;
  weights: Float32Array;
}

const TSNE = defaults.tsne;

/** The perplexity of a method that has one; undefined for UMAP's memberships. */
export function perplexityOf(options: Checked, n: number): number | undefined {
  if (options.method === "largevis") return options.perplexity ?? defaults.parameters.largevis.perplexity;
  if (options.method !== "tsne") return undefined;
  return Math.max(1, Math.min(options.perplexity ?? TSNE.perplexity, (n - 1) / TSNE.neighborsPerPerplexity));
}

/** Columns of the neighbor table of n rows, the row itself included. */
export function columnsOf(options: Checked, n: number): number {
  const perplexity = perplexityOf(options, n);
  if (perplexity === undefined) return Math.min(options.nNeighbors, n);
  return Math.min(n, Math.floor(TSNE.neighborsPerPerplexity * perplexity) + 1);
}

/** Builds the symmetric graph of a neighbor table in the module; returns its pointer, to be freed. */
export function makeGraph(core: Core, neighbors: Neighbors, options: Checked): number {
  const { n, k } = neighbors, perplexity = perplexityOf(options, n);
  return core.scope((memory) => {
    const table = [memory.put(neighbors.index), memory.put(neighbors.distance), n, k];
    if (perplexity === undefined) {
      return core.call("graph_fuzzy", ...table, options.localConnectivity, options.setOpMixRatio);
    }
    return core.call("graph_entropic", ...table, perplexity, options.method === "tsne" ? 1 : 0);
  });
}

/** Copies a graph out of the module. */
export function takeGraph(core: Core, pointer: number, n: number): Graph {
  const edges = core.run("graph_edges", pointer);
  return core.scope((memory) => {
    const indptr = memory.room(4 * (n + 1)), indices = memory.room(4 * edges), weights = memory.room(4 * edges);
    core.run("graph_copy", pointer, indptr, indices, weights);
    return {
      n,
      indptr: memory.integers(indptr, n + 1),
      indices: memory.integers(indices, edges),
      weights: memory.floats(weights, edges),
    };
  });
}

/** Copies a graph into the module, and calls `f` with its pointer. */
export function withGraph<T>(core: Core, graph: Graph, f: (pointer: number, memory: Memory) => T): T {
  if (graph.indptr.length !== graph.n + 1 || graph.indices.length !== graph.weights.length) {
    throw new RangeError("indptr, indices and weights of a graph must fit together");
  }
  if (graph.indptr[graph.n] !== graph.indices.length) {
    throw new RangeError(`indptr must end with the number of edges, ${graph.indices.length}`);
  }
  const pointer = core.scope((memory) => {
    const arrays = [graph.indptr, graph.indices, graph.weights].map((array) => memory.put(array));
    return core.call("graph", ...arrays, graph.n);
  });
  try {
    return core.scope((memory) => f(pointer, memory));
  } finally {
    core.run("graph_free", pointer);
  }
}

/** Rows that have no edge. */
export function isolatedRows(graph: Graph): number[] {
  const rows: number[] = [];
  for (let i = 0; i < graph.n; ++i) if (graph.indptr[i] === graph.indptr[i + 1]) rows.push(i);
  return rows;
}
