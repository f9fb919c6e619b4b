// What sets selected rows apart from the others: shares of classes, distributions of numbers, and effect sizes.
import { ClassColumn, type Column, type Numbers, ValueColumn } from "./columns";

/** Numbers of one column: selected rows against the rest. */
export interface NumberDifference {
  column: ValueColumn;
  /** Difference of the means in standard deviations (Cohen's d with the pooled deviation). */
  effect: number;
  mean: number;
  meanOfRest: number;
}

/** One class of one column: its share among selected rows and among the rest. */
export interface ClassDifference {
  column: ClassColumn;
  name: string;
  share: number;
  shareOfRest: number;
  /** Difference of the shares on the arcsine scale (Cohen's h). */
  effect: number;
}

export interface Histogram {
  low: number;
  high: number;
  /** Shares of the rows per bin. */
  selected: number[];
  rest: number[];
}

const BINS = 24;

export function numberDifference(column: ValueColumn, selected: Uint8Array): NumberDifference | null {
  const inside = moments(column.values, selected, 1);
  const outside = moments(column.values, selected, 0);
  if (inside.n === 0 || outside.n === 0) return null;
  const pooled = Math.sqrt((inside.variance * inside.n + outside.variance * outside.n) / (inside.n + outside.n));
  const effect = pooled > 0 ? (inside.mean - outside.mean) / pooled : 0;
  return { column, effect, mean: inside.mean, meanOfRest: outside.mean };
}

/** Returns the class that is enriched most among selected rows. */
export function classDifference(column: ClassColumn, selected: Uint8Array): ClassDifference | null {
  const counts = [new Uint32Array(column.names.length + 1), new Uint32Array(column.names.length + 1)] as const;
  const totals = [0, 0];
  for (let row = 0; row < column.codes.length; row++) {
    const chosen = selected[row] ? 1 : 0;
    counts[chosen][column.codes[row]!]!++;
    totals[chosen]!++;
  }
  if (!totals[0] || !totals[1]) return null;
  let best: ClassDifference | null = null;
  column.names.forEach((name, code) => {
    const [share, shareOfRest] = [counts[1][code]! / totals[1]!, counts[0][code]! / totals[0]!];
    const effect = 2 * Math.asin(Math.sqrt(share)) - 2 * Math.asin(Math.sqrt(shareOfRest));
    if (!best || effect > best.effect) best = { column, name, share, shareOfRest, effect };
  });
  return best;
}

/** Returns the columns that differ most, the largest effect first. */
export function differences(columns: Column[], selected: Uint8Array): (NumberDifference | ClassDifference)[] {
  const found = columns.map((column) => (column instanceof ValueColumn ? numberDifference(column, selected) : column instanceof ClassColumn ? classDifference(column, selected) : null));
  return found.filter((one) => one !== null && Math.abs(one.effect) >= 0.2).sort((a, b) => Math.abs(b!.effect) - Math.abs(a!.effect)) as (NumberDifference | ClassDifference)[];
}

export function histogram({ values, low, high }: ValueColumn, selected: Uint8Array): Histogram {
  const counts = [new Array<number>(BINS).fill(0), new Array<number>(BINS).fill(0)] as const;
  const totals = [0, 0];
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!;
    if (Number.isNaN(value)) continue;
    const bin = high > low ? Math.min(BINS - 1, Math.floor(((value - low) / (high - low)) * BINS)) : 0;
    const chosen = selected[row] ? 1 : 0;
    counts[chosen][bin]!++;
    totals[chosen]!++;
  }
  const shares = (which: 0 | 1) => counts[which].map((n) => (totals[which] ? n / totals[which]! : 0));
  return { low, high, selected: shares(1), rest: shares(0) };
}

function moments(values: Numbers, selected: Uint8Array, flag: number): { n: number; mean: number; variance: number } {
  let [n, mean, squares] = [0, 0, 0];
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!;
    if (Number.isNaN(value) || selected[row] !== flag) continue;
    n++;
    const off = value - mean;
    mean += off / n;
    squares += off * (value - mean);
  }
  return { n, mean, variance: n ? squares / n : 0 };
}
