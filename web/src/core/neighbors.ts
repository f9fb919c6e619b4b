// The neighbor search: when all pairs are compared, with which effort the approximate search works, and when it is
// repeated. The rules of src/vicinal/neighbors/search.py and index.py, with their numbers.

import { type Core, Memory } from "./module";
import { defaults, type Metric, type Table } from "./options";

const S = defaults.search;

/** The k nearest rows of every row, [n][k], sorted by (distance, index); -1 for none. */
export interface Neighbors {
  n: number;
  k: number;
  index: Int32Array;
  distance: Float32Array;
  /** Of a neighbor's rank that the search saw; for queries. */
  share: number;
}

type Effort = typeof S.options;

/** Rows prepared for searches. */
export class Index {
  private readonly memory: Memory;
  private readonly pointer: number;
  private hasTrees = false;

  constructor(
    private readonly core: Core,
    private readonly rows: Table,
    metric: Metric,
    seed: number,
  ) {
    const largest = rows.data.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    if (largest !== 0 && !(largest >= S.smallestSafe && largest <= S.largestSafe)) {
      throw new RangeError(`rows must have a largest magnitude from ${S.smallestSafe} to ${S.largestSafe}, got ${largest}`);
    }
    this.memory = new Memory(core);
    const data = this.memory.put(rows.data), name = this.memory.text(metric);
    try {
      this.pointer = core.call("index", data, rows.n, rows.columns, name, seed);
    } catch (error) {
      this.memory.release();
      throw error;
    }
  }

  /** The k nearest rows of every row, the row itself first. */
  search(k: number): Neighbors {
    const { n, columns } = this.rows;
    const short = columns <= S.sketchWidth && n * (columns + 16) <= S.exactWork;
    const exact = k < 2 || n <= S.options.leafRows || n <= S.exactRows || short || n <= S.exactRowsPerNeighbor * k;
    if (exact) return this.exact(k);
    this.grow();
    const { found, structured } = this.approximate(k, this.effort(k));
    if (this.recall(found) >= S.goodRecall) return found;
    if (n * n * columns <= S.exactLater) return { ...this.exact(k), share: found.share };
    return structured ? this.approximate(k, { ...S.options, trees: this.trees, ...S.harder }).found : found;
  }

  /** The k nearest rows of new rows; `graph` holds the edges of the rows of the index, in the module. */
  query(rows: Table, k: number, graph: number, share: number): Neighbors {
    const pool = Math.min(k + Math.max(Math.floor(k / 8), 2), this.rows.n);
    if (this.rows.n <= S.exactRows) return this.ask(rows, k, pool, 0, 0, 1);
    this.grow();
    return this.ask(rows, k, pool, graph, S.queryTrees, share);
  }

  free(): void {
    this.core.run("index_free", this.pointer);
    this.memory.release();
  }

  private exact(k: number): Neighbors {
    return this.table(this.rows.n, k, (index, distance) => {
      this.core.call("index_exact", this.pointer, k, index, distance);
      return 1;
    });
  }

  private grow(): void {
    if (this.hasTrees) return;
    this.core.call("index_grow", this.pointer, this.trees, S.options.leafRows);
    this.hasTrees = true;
  }

  /** A tree more per doubling of the rows beyond `forestRows`. */
  private get trees(): number {
    const doublings = 32 - Math.clz32(Math.floor(this.rows.n / S.forestRows));
    return S.options.trees + Math.max(0, doublings - 1);
  }

  private effort(k: number): Effort {
    const spare = Math.min(S.options.spare, Math.max(S.enoughSought - k, S.leastSpare));
    const ends = k <= S.longTable ? {} : S.longTableEnds;
    return { ...S.options, trees: this.trees, spare, ...ends };
  }

  private approximate(k: number, effort: Effort): { found: Neighbors; structured: boolean } {
    let structured = true;
    const spare = Math.max(effort.spare, Math.min(Math.floor(k / 3), S.mostSpare));
    const { trees, leafRows, nodeRows, candidates, rounds, coarse, fine, final, structureless, unorderedBytes } = effort;
    const values = [trees, leafRows, nodeRows, candidates, spare, rounds, coarse, fine, final, structureless, unorderedBytes];
    const found = this.table(this.rows.n, k, (index, distance, memory) => {
      const options = memory.put(Float64Array.from(values)), result = memory.room(16);
      this.core.call("index_approximate", this.pointer, k, options, index, distance, result);
      const [share, has] = memory.doubles(result, 2);
      structured = has !== 0;
      return share!;
    });
    return { found, structured };
  }

  /** The share of the true neighbors of a few rows that a table has. */
  private recall(found: Neighbors): number {
    const { n, columns, data } = this.rows;
    const sample = Array.from({ length: S.recallSample }, (_, i) => Math.floor((i * n) / S.recallSample));
    const rows = new Float32Array(sample.length * columns);
    sample.forEach((row, i) => rows.set(data.subarray(row * columns, (row + 1) * columns), i * columns));
    const k = found.k, nearest = this.ask({ data: rows, n: sample.length, columns }, k, k, 0, 0, 1);
    let hits = 0;
    sample.forEach((row, i) => {
      const last = Math.fround(nearest.distance[(i + 1) * k - 1]! * Math.fround(1.0001));
      for (let c = 1; c < k; ++c) hits += found.distance[row * k + c]! <= last ? 1 : 0;
    });
    return hits / (sample.length * (k - 1));
  }

  private ask(rows: Table, k: number, pool: number, graph: number, trees: number, share: number): Neighbors {
    return this.table(rows.n, k, (index, distance, memory) => {
      const how = memory.put(Float64Array.of(k, pool, trees, share));
      this.core.call("index_query", this.pointer, memory.put(rows.data), rows.n, graph, how, index, distance);
      return 1;
    });
  }

  private table(n: number, k: number, fill: (index: number, distance: number, memory: Memory) => number): Neighbors {
    return this.core.scope((memory) => {
      const index = memory.room(4 * n * k), distance = memory.room(4 * n * k);
      const share = fill(index, distance, memory);
      return { n, k, index: memory.integers(index, n * k), distance: memory.floats(distance, n * k), share };
    });
  }
}

/** The largest distance of a metric, that of rows that share nothing; infinite if there is none. */
export function unrelatedDistance(metric: Metric, rows: Table): number {
  const { unrelated, unrelatedNonNegative } = defaults.metrics[metric];
  const some = unrelatedNonNegative !== null && rows.data.every((value) => value >= 0) ? unrelatedNonNegative : unrelated;
  return some ?? Infinity;
}

/** The table without neighbors at or beyond a distance, up to the rounding error of distances. */
export function within(neighbors: Neighbors, limit: number): Neighbors {
  if (limit === Infinity) return neighbors;
  const index = neighbors.index.slice(), distance = neighbors.distance.slice();
  const least = Math.fround(limit * (1 - S.rounding));
  distance.forEach((value, e) => {
    if (!(value >= least)) return;
    index[e] = -1;
    distance[e] = Infinity;
  });
  return { ...neighbors, index, distance };
}
