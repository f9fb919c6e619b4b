// A fit from rows to a map, and the places of new rows.

import { columnsOf, type Graph, isolatedRows, makeGraph, perplexityOf, takeGraph, withGraph } from "./graph";
import { Layout, pushesOf, settingsOf } from "./layout";
import { Core, seedOf, type Source } from "./module";
import { Index, type Neighbors, unrelatedDistance, within } from "./neighbors";
import { type Checked, checkOptions, checkRows, defaults, type FitOptions, type LayoutOptions, type Rows, type Table } from "./options";
import { learningRates, placementOf } from "./schedule";

/** Stages of a fit, in this order. */
export type Stage = "neighbors" | "graph" | "start" | "layout";

/** Called before each stage and after epochs; a true return value stops the layout and keeps the map. */
export type OnProgress = (stage: Stage, epoch: number, nEpochs: number, embedding: () => Float32Array) => unknown;

/** A fit that waits for its layout: exactly one of both functions is to be called. */
export interface FitSteps {
  layout: Layout;
  finish: () => FittedMap;
  abandon: () => void;
}

/** The core, ready to work in this thread. */
export class Vicinal {
  private constructor(private readonly core: Core) {}

  /** Compiles the module. In a browser `source` is e.g. `fetch("core.wasm")`. */
  static async load(source: Source): Promise<Vicinal> {
    return new Vicinal(await Core.load(source));
  }

  /** Maps rows. Options are checked before any work. */
  fit(rows: Rows, options: FitOptions = {}, onProgress?: OnProgress): FittedMap {
    const steps = this.steps(rows, options, onProgress);
    try {
      run(steps.layout, onProgress);
      return steps.finish();
    } catch (error) {
      steps.abandon();
      throw error;
    }
  }

  /** Does all of a fit but its layout, which the caller steps. */
  steps(rows: Rows, options: FitOptions = {}, onProgress?: OnProgress): FitSteps {
    const checked = checkOptions(options), table = checkRows(rows);
    if (table.n < 2) throw new RangeError(`a fit needs at least 2 rows, got ${table.n}`);
    if (table.columns < 1) throw new RangeError("rows must have at least one column");
    const given = givenStart(checked, table.n);
    const tell = (stage: Stage) => onProgress?.(stage, 0, 0, () => new Float32Array(0));
    tell("neighbors");
    const index = new Index(this.core, table, checked.metric, seedOf(this.core, checked));
    try {
      const found = index.search(columnsOf(checked, table.n));
      tell("graph");
      const limit = checked.disconnectionDistance ?? unrelatedDistance(checked.metric, table);
      const neighbors = within(found, limit), graph = this.graph(neighbors, options);
      tell("start");
      const layout = new Layout(this.core, graph, given ?? this.start(graph, options, table), checked, neighbors);
      return {
        layout,
        finish: () => {
          const embedding = layout.embedding();
          layout.free();
          return new FittedMap(this.core, index, new KnownRows(this.core, table), checked, neighbors, graph, embedding, limit);
        },
        abandon: () => {
          layout.free();
          index.free();
        },
      };
    } catch (error) {
      index.free();
      throw error;
    }
  }

  /** The nearest rows of every row, the row itself first. */
  neighbors(rows: Rows, options: FitOptions = {}): Neighbors {
    const checked = checkOptions(options), table = checkRows(rows);
    const index = new Index(this.core, table, checked.metric, seedOf(this.core, checked));
    try {
      return within(index.search(columnsOf(checked, table.n)), checked.disconnectionDistance ?? unrelatedDistance(checked.metric, table));
    } finally {
      index.free();
    }
  }

  /** The symmetric graph of a neighbor table: memberships of UMAP, or probabilities of LargeVis and t-SNE. */
  graph(neighbors: Neighbors, options: FitOptions = {}): Graph {
    const pointer = makeGraph(this.core, neighbors, checkOptions(options));
    try {
      return takeGraph(this.core, pointer, neighbors.n);
    } finally {
      this.core.run("graph_free", pointer);
    }
  }

  /**
   * First places [n][nComponents]: eigenvectors of the graph, or random ones. The components of a disconnected graph are
   * put side by side, by the principal components of their means if there are rows. Places that are given as `init` are
   * scaled to the box of a start.
   */
  start(graph: Graph, options: FitOptions = {}, rows?: Rows): Float32Array {
    const checked = checkOptions(options), dim = checked.nComponents, size = graph.n * dim;
    const given = givenStart(checked, graph.n);
    if (given) return given;
    const table = rows === undefined ? undefined : checkRows(rows);
    const places = withGraph(this.core, graph, (edges, memory) => {
      const out = memory.room(4 * size), seed = seedOf(this.core, checked);
      if (checked.init === "random") this.core.call("start_random", graph.n, dim, seed, out);
      else {
        const data = table === undefined ? 0 : memory.put(table.data);
        this.core.call("start_spectral", edges, data, table?.columns ?? 0, dim, seed, out);
      }
      return memory.floats(out, size);
    });
    return checked.method === "tsne" ? narrowed(places, dim) : places;
  }

  /** A map that was made before: of rows with their neighbors and places; `transform` places new rows in it. */
  adopt(rows: Rows, neighbors: Neighbors, embedding: Float32Array, options: FitOptions = {}): FittedMap {
    const checked = checkOptions(options), table = checkRows(rows);
    if (neighbors.n !== table.n || embedding.length !== table.n * checked.nComponents) {
      throw new RangeError(`neighbors and embedding must be those of ${table.n} rows`);
    }
    const graph = this.graph(neighbors, options), limit = checked.disconnectionDistance ?? unrelatedDistance(checked.metric, table);
    const index = new Index(this.core, table, checked.metric, seedOf(this.core, checked));
    return new FittedMap(this.core, index, new KnownRows(this.core, table), checked, neighbors, graph, embedding, limit);
  }

  /** A layout of a graph in steps. densMAP needs the `neighbors` of the graph. */
  layout(graph: Graph, start: Float32Array, options: LayoutOptions = {}, neighbors?: Neighbors): Layout {
    return new Layout(this.core, graph, start, checkOptions(options), neighbors);
  }

  /** Digests of fixed data by name, which are the same on every machine (docs/guides/determinism.md). */
  golden(): Record<string, string> {
    return this.core.golden();
  }

  /** Bytes of the module's memory. It does not shrink. */
  get memoryBytes(): number {
    return this.core.bytes;
  }
}

/** A finished map. */
export class FittedMap {
  readonly n: number;
  readonly nComponents: number;
  /** The places of the rows, [n][nComponents]. Equal rows share one place. */
  readonly embedding: Float32Array;

  /** @internal */
  constructor(
    private readonly core: Core,
    private readonly index: Index,
    private readonly rows: KnownRows,
    private readonly options: Checked,
    /** The nearest rows of every row. */
    readonly neighbors: Neighbors,
    readonly graph: Graph,
    laidOut: Float32Array,
    private readonly limit: number,
  ) {
    this.n = rows.table.n;
    this.nComponents = options.nComponents;
    this.embedding = rows.shared(laidOut, this.nComponents);
  }

  /** Rows without neighbors, which are drawn around the map: their position carries no information. */
  get isolated(): number[] {
    return isolatedRows(this.graph);
  }

  /**
   * Places new rows in the map, which stays as it is. The place of a row depends on that row alone; a row of the fit
   * has its own place.
   */
  transform(rows: Rows): Float32Array {
    if (this.options.method === "tsne" || this.options.method === "densmap") {
      throw new TypeError(`transform of ${this.options.method} is not available here; the Python package has it`);
    }
    const table = checkRows(rows, "rows", this.rows.table.columns), dim = this.nComponents;
    const keys = hashes(this.core, table), known = Array.from(keys, (key, i) => this.rows.find(table, i, key));
    const fresh = known.flatMap((row, i) => (row < 0 ? [i] : []));
    const out = new Float32Array(table.n * dim);
    known.forEach((row, i) => {
      if (row >= 0) out.set(this.embedding.subarray(row * dim, (row + 1) * dim), i * dim);
    });
    if (fresh.length) {
      const placed = this.place(taken(table, fresh), BigUint64Array.from(fresh, (i) => keys[i]!));
      fresh.forEach((row, i) => out.set(placed.subarray(i * dim, (i + 1) * dim), row * dim));
    }
    return out;
  }

  /** Releases the memory of the search index; the map can still be read, but not transform. */
  free(): void {
    this.index.free();
  }

  private place(rows: Table, keys: BigUint64Array): Float32Array {
    const { core, options } = this, dim = this.nComponents, schedule = placementOf(options, this.n);
    const k = columnsOf(options, this.n), perplexity = perplexityOf(options, this.n);
    return withGraph(core, this.graph, (edges, memory) => {
      const found = within(this.index.query(rows, k, edges, this.neighbors.share), this.limit);
      if (found.index.some((row, e) => e % k === 0 && row < 0)) {
        throw new RangeError("a new row has no neighbor within the disconnection distance");
      }
      const table = [memory.put(found.index), memory.put(found.distance), rows.n, k];
      const to = perplexity === undefined
        ? core.call("graph_to_known", ...table, options.localConnectivity, this.n)
        : core.call("graph_entropic_to_known", ...table, perplexity, 1, this.n);
      try {
        const still = { ...options, updateNegatives: false }; // the points of the map do not move
        const settings = settingsOf(core, schedule, still, defaults.layout.pullsBipartite, 1, options.transformSeed);
        const rates = learningRates(schedule, 0, schedule.nEpochs), out = memory.room(4 * rows.n * dim);
        const arrays = [memory.put(keys), memory.put(settings), memory.put(rates)];
        const uniform = options.method === "umap" && this.isolated.length === 0;
        const pushes = uniform ? 0 : pushesOf(core, edges, this.n, options, memory);
        core.call("place", to, memory.put(this.embedding), dim, ...arrays, rates.length, pushes, out);
        return memory.floats(out, rows.n * dim);
      } finally {
        core.run("graph_free", to);
      }
    });
  }
}

/** The rows of a fit by their content. */
class KnownRows {
  private readonly keys: BigUint64Array;
  private readonly byKey = new Map<bigint, number[]>();

  constructor(
    core: Core,
    readonly table: Table,
  ) {
    this.keys = hashes(core, table);
    this.keys.forEach((key, i) => {
      const rows = this.byKey.get(key);
      if (rows) rows.push(i);
      else this.byKey.set(key, [i]);
    });
  }

  /** The first row of the fit with the content of a row of `table`, or -1. */
  find(table: Table, row: number, key: bigint): number {
    const { columns, data } = this.table;
    const same = (i: number) => {
      for (let c = 0; c < columns; ++c) if (data[i * columns + c] !== table.data[row * columns + c]) return false;
      return true;
    };
    return this.byKey.get(key)?.find(same) ?? -1;
  }

  /** Gives every row the place of the first row that equals it. */
  shared(places: Float32Array, dim: number): Float32Array {
    if (this.byKey.size === this.table.n) return places;
    const out = places.slice();
    this.keys.forEach((key, i) => {
      const first = this.find(this.table, i, key);
      if (first !== i) out.set(places.subarray(first * dim, (first + 1) * dim), i * dim);
    });
    return out;
  }
}

function run(layout: Layout, onProgress: OnProgress | undefined): void {
  if (!onProgress) {
    layout.step(layout.nEpochs);
    return;
  }
  const tell = () => onProgress("layout", layout.epoch, layout.nEpochs, () => layout.embedding());
  let stopped = Boolean(tell());
  while (!stopped && layout.epoch < layout.nEpochs) {
    layout.step();
    stopped = Boolean(tell());
  }
}

function hashes(core: Core, table: Table): BigUint64Array {
  return core.scope((memory) => {
    const out = memory.room(8 * table.n);
    core.call("hash_rows", memory.put(table.data), table.n, table.columns, out);
    return new BigUint64Array(core.buffer, out, table.n).slice();
  });
}

function taken({ data, columns }: Table, rows: number[]): Table {
  const out = new Float32Array(rows.length * columns);
  rows.forEach((row, i) => out.set(data.subarray(row * columns, (row + 1) * columns), i * columns));
  return { data: out, n: rows.length, columns };
}

/** A start that is given as an array, scaled to the usual box by one factor for all axes; undefined if it is a name. */
function givenStart(checked: Checked, n: number): Float32Array | undefined {
  if (typeof checked.init === "string") return undefined;
  const dim = checked.nComponents;
  const places = checked.init instanceof Float32Array ? checked.init : checkRows(checked.init, "init", dim).data;
  if (places.length !== n * dim) throw new RangeError(`init must have ${n} * ${dim} numbers, got ${places.length}`);
  const bad = places.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) throw new RangeError(`init contains ${places[bad]}, first in row ${Math.floor(bad / dim)}`);
  return checked.method === "tsne" ? narrowed(places, dim) : boxed(places, n, dim);
}

function boxed(places: Float32Array, n: number, dim: number): Float32Array {
  const { leastExtent, spacing } = defaults.layout, out = new Float32Array(places.length);
  const extent = Math.max(leastExtent, spacing * (dim <= 2 ? Math.sqrt(n) : Math.pow(n, 1 / dim)));
  const axes = Array.from({ length: dim }, (_, c) => {
    let low = Infinity, high = -Infinity;
    for (let e = c; e < places.length; e += dim) {
      low = Math.min(low, places[e]!);
      high = Math.max(high, places[e]!);
    }
    return { low, width: high - low };
  });
  const widest = Math.max(...axes.map(({ width }) => width));
  axes.forEach(({ low, width }, c) => {
    const wide = extent * (widest > 0 ? width / widest : 1);
    for (let e = c; e < places.length; e += dim) out[e] = width > 0 ? (wide * (places[e]! - low)) / width : wide / 2;
  });
  return out;
}

/** Places around the middle, so narrow that all rows repel each other: the start of t-SNE. */
function narrowed(places: Float32Array, dim: number): Float32Array {
  const n = places.length / dim, out = Float64Array.from(places);
  let widest = 0;
  for (let c = 0; c < dim; ++c) {
    let sum = 0, squares = 0;
    for (let e = c; e < out.length; e += dim) sum += out[e]!;
    for (let e = c; e < out.length; e += dim) out[e] = out[e]! - sum / n;
    for (let e = c; e < out.length; e += dim) squares += out[e]! * out[e]!;
    widest = Math.max(widest, Math.sqrt(squares / n));
  }
  return Float32Array.from(out, (value) => value * (widest > 0 ? defaults.tsne.narrow / widest : 1));
}
