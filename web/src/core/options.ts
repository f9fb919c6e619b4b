// Options, by the names of the Python estimators in camel case, with the defaults of the Python package.

import numbers from "./defaults.json";

export const defaults = numbers;

export type Method = "umap" | "densmap" | "largevis" | "tsne";
export type Metric = keyof typeof numbers.metrics;

/** Rows of numbers: one array after the other, or an array per row. */
export type Rows = { data: Float32Array; n: number; columns: number } | ArrayLike<ArrayLike<number>>;
export interface Table {
  data: Float32Array;
  n: number;
  columns: number;
}

/** How a graph becomes a map. */
export interface LayoutOptions {
  /** Which cost the map minimizes; t-SNE adds up all pairs, for a few thousand rows. Default "umap". */
  method?: Method;
  /** Dimensions of the map, default 2. */
  nComponents?: number;
  /** Epochs; by default those of the Python package. */
  nEpochs?: number;
  learningRate?: number;
  minDist?: number;
  spread?: number;
  /** Parameters of the kernel 1 / (1 + a d^(2b)), instead of `minDist` and `spread`. */
  a?: number;
  b?: number;
  repulsionStrength?: number;
  negativeSampleRate?: number;
  updateNegatives?: boolean;
  /** densMAP: weight of the radii, share of the epochs, constant added to the variance. */
  densLambda?: number;
  densFrac?: number;
  densVarShift?: number;
  /** Decides everything random, as `random_state` of the Python estimators: a whole number up to 2^32 - 1; default 0. */
  randomState?: number;
  /** The seed of the parts (`seed` of vicinal.Layout), instead of the one that `randomState` stands for. */
  seed?: number;
}

/** How rows become a graph. */
export interface GraphOptions {
  /** Size of the neighborhoods, the row itself included; default 15. */
  nNeighbors?: number;
  metric?: Metric;
  localConnectivity?: number;
  setOpMixRatio?: number;
  /** Rows at least this far apart are no neighbors. */
  disconnectionDistance?: number;
  /** Of LargeVis and t-SNE, instead of `nNeighbors`. */
  perplexity?: number;
}

export interface FitOptions extends LayoutOptions, GraphOptions {
  /** First places: eigenvectors of the graph, random ones, or an array [n][nComponents]. Default "spectral". */
  init?: "spectral" | "random" | Float32Array | ArrayLike<ArrayLike<number>>;
  transformSeed?: number;
}

export type Checked = Required<Omit<FitOptions, Unset>> & Pick<FitOptions, Unset>;
type Unset = "nEpochs" | "a" | "b" | "seed" | "disconnectionDistance" | "perplexity";

const METHODS: Method[] = ["umap", "densmap", "largevis", "tsne"];

/** The range of each number: least, most, and whether it is whole. */
const RANGES: Record<string, [number, number, boolean?]> = {
  nNeighbors: [2, 2 ** 31 - 1, true],
  nComponents: [1, 1000, true],
  nEpochs: [0, 1e7, true],
  learningRate: [Number.MIN_VALUE, 1e6],
  minDist: [0, numbers.layout.largestSpread],
  spread: [numbers.layout.smallestSpread, numbers.layout.largestSpread],
  a: [Number.MIN_VALUE, Number.MAX_VALUE],
  b: [Number.MIN_VALUE, Number.MAX_VALUE],
  repulsionStrength: [0, 1e6],
  negativeSampleRate: [0, 10_000, true],
  densLambda: [0, Number.MAX_VALUE],
  densFrac: [0, 1],
  densVarShift: [0, Number.MAX_VALUE],
  randomState: [0, 2 ** 32 - 1, true],
  seed: [0, Number.MAX_SAFE_INTEGER, true],
  transformSeed: [0, 2 ** 32 - 1, true],
  localConnectivity: [0, Number.MAX_VALUE],
  setOpMixRatio: [0, 1],
  disconnectionDistance: [Number.MIN_VALUE, Number.MAX_VALUE],
  perplexity: [1, 1e6],
};
const OTHERS = ["method", "metric", "init", "updateNegatives"];

/** Checks options and fills in the defaults. Throws a TypeError or RangeError that names the option and its value. */
export function checkOptions(given: FitOptions = {}): Checked {
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined) continue;
    if (!(name in RANGES) && !OTHERS.includes(name)) {
      throw new TypeError(`unknown option ${name}; options are ${[...Object.keys(RANGES), ...OTHERS].sort().join(", ")}`);
    }
    if (name in RANGES) checkNumber(name, value);
  }
  const method = given.method ?? "umap";
  if (!METHODS.includes(method)) throw new TypeError(`method must be one of ${METHODS.join(", ")}, got ${String(method)}`);
  const metric = given.metric ?? "euclidean";
  if (!(metric in numbers.metrics)) {
    throw new TypeError(`metric must be one of ${Object.keys(numbers.metrics).join(", ")}, got ${String(metric)}`);
  }
  if (given.updateNegatives !== undefined && typeof given.updateNegatives !== "boolean") {
    throw new TypeError(`updateNegatives must be true or false, got ${String(given.updateNegatives)}`);
  }
  if ((given.a === undefined) !== (given.b === undefined)) throw new TypeError("a and b must be given together");
  const own = method === "largevis" ? numbers.parameters.largevis : {};
  const known = { ...numbers.parameters.umap, init: "spectral" as const, randomState: 0, ...own };
  const stated = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const checked = { ...known, ...stated, method, metric } as Checked;
  if (typeof checked.init === "string" && !["spectral", "random"].includes(checked.init)) {
    throw new TypeError(`init must be "spectral", "random" or an array, got ${JSON.stringify(checked.init)}`);
  }
  if (checked.minDist > checked.spread) {
    throw new RangeError(`minDist must not exceed spread, got minDist ${checked.minDist}, spread ${checked.spread}`);
  }
  return checked;
}

function checkNumber(name: string, value: unknown): void {
  const [least, most, whole] = RANGES[name]!;
  if (typeof value !== "number" || !(value >= least && value <= most) || (whole && !Number.isInteger(value))) {
    const kind = whole ? "a whole number" : "a number";
    const range = least === Number.MIN_VALUE ? "above 0" : `from ${least} to ${most}`;
    throw new RangeError(`${name} must be ${kind} ${range}, got ${String(value)}`);
  }
}

/** Copies rows into one array. Throws if they differ in length, or if a value is no finite number. */
export function checkRows(rows: Rows, name = "rows", columns?: number): Table {
  const table = "data" in rows ? rows : joined(rows, name);
  if (!(table.data instanceof Float32Array) || table.data.length !== table.n * table.columns) {
    throw new TypeError(`${name} must hold n * columns numbers of a Float32Array`);
  }
  if (columns !== undefined && table.n > 0 && table.columns !== columns) {
    throw new RangeError(`${name} must have ${columns} columns, got ${table.columns}`);
  }
  const bad = table.data.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) {
    const row = Math.floor(bad / table.columns);
    throw new RangeError(`${name} contains ${table.data[bad]}, first in row ${row}, column ${bad % table.columns}`);
  }
  return table;
}

function joined(rows: ArrayLike<ArrayLike<number>>, name: string): Table {
  const n = rows.length, columns = n ? rows[0]!.length : 0;
  const data = new Float32Array(n * columns);
  for (let i = 0; i < n; ++i) {
    const row = rows[i]!;
    if (row.length !== columns) {
      throw new RangeError(`${name} must have ${columns} columns as row 0, row ${i} has ${row.length}`);
    }
    for (let c = 0; c < columns; ++c) {
      if (typeof row[c] !== "number") throw new TypeError(`${name} contains ${String(row[c])}, in row ${i}, column ${c}`);
      data[i * columns + c] = row[c]!;
    }
  }
  return { data, n, columns };
}
