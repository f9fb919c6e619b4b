// How points are colored: by the classes or the values of a column, or all alike. A paint gives every row the number of
// its color; the colors themselves depend on the theme.
import { ClassColumn, type Codes, type Column, MOST_AS_CLASSES, type Numbers, ValueColumn } from "./columns";
import type { Palette } from "./data";
import { full, short } from "./element";

export type ThemeName = "light" | "dark";
export type ScaleKind = "linear" | "quantile" | "log";

/** Classes that rows belong to, with the last code for rows without one. */
export interface Classes {
  names: string[];
  codes: Codes;
  missing: number;
}

export interface Tick {
  at: number;
  text: string;
}

/** A color scale: where a value lies on it, from 0 to 1, and its ticks. */
export interface Scale {
  kind: ScaleKind;
  ticks: Tick[];
  /** Numbers of rows whose values lie beyond the ends, which have the colors of the ends. */
  below: number;
  above: number;
  missing: number;
}

export interface Paint {
  column: Column | null;
  codes: Codes;
  classes: Classes | null;
  scale: Scale | null;
  colors: (theme: ThemeName) => string[];
}

const STEPS = 256;
const MISSING = STEPS;
// Fraction of the values at each end that a clipped scale does not distinguish, if that makes it half as long.
const CLIPPED = 0.005;
const SAMPLE = 200_000;

export function plainPaint(n: number, palette: Palette): Paint {
  return { column: null, codes: new Uint8Array(n), classes: null, scale: null, colors: () => [palette.plain] };
}

export function canBeClasses(column: Column): boolean {
  return column instanceof ClassColumn || (column instanceof ValueColumn && distinct(column.values) !== null);
}

export function canBeScale(column: Column): boolean {
  return column instanceof ValueColumn || (column instanceof ClassColumn && column.numbers !== null);
}

export function canBeLog(column: Column): boolean {
  return canBeScale(column) && valuesOf(column).every((value) => Number.isNaN(value) || value > 0);
}

export function classPaint(column: Column, palette: Palette): Paint {
  const classes = column instanceof ClassColumn ? { names: column.names, codes: column.codes, missing: column.missing } : numbered(column as ValueColumn);
  const own = column instanceof ClassColumn ? column.colors : [];
  const colors = (theme: ThemeName) => {
    const known = classes.names.map((_, code) => own[code] ?? palette[theme][code % palette[theme].length]!);
    return classes.missing ? [...known, palette.missing[theme]] : known;
  };
  return { column, codes: classes.codes, classes, scale: null, colors };
}

export function scalePaint(column: Column, kind: ScaleKind, palette: Palette): Paint {
  const values = valuesOf(column);
  const { place, ticks, low, high } = scaled(values, kind);
  const codes = new Uint16Array(values.length);
  const scale: Scale = { kind, ticks, below: 0, above: 0, missing: 0 };
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!;
    if (Number.isNaN(value)) {
      codes[row] = MISSING;
      scale.missing++;
      continue;
    }
    if (value < low) scale.below++;
    else if (value > high) scale.above++;
    codes[row] = Math.round(Math.min(1, Math.max(0, place(value))) * (STEPS - 1));
  }
  const stops = Array.from({ length: STEPS }, (_, a) => between(palette.values, a / (STEPS - 1)));
  return { column, codes, classes: null, scale, colors: (theme) => [...stops, palette.missing[theme]] };
}

/** Returns the values of a column, NaN if missing; classes whose names are numbers have those as values. */
export function valuesOf(column: Column): Numbers {
  if (column instanceof ValueColumn) return column.values;
  if (!(column instanceof ClassColumn)) return new Float32Array(0);
  const numbers = column.numbers ?? new Float64Array(column.names.length).fill(NaN);
  return Float32Array.from(column.codes, (code) => numbers[code] ?? NaN);
}

/** Returns the distinct finite values in order, or null if there are too many to be classes. */
function distinct(values: Numbers): number[] | null {
  const found = new Set<number>();
  for (const value of values) {
    if (Number.isNaN(value)) continue;
    found.add(value);
    if (found.size > MOST_AS_CLASSES) return null;
  }
  return [...found].sort((a, b) => a - b);
}

function numbered(column: ValueColumn): Classes {
  const known = distinct(column.values) ?? [];
  const codeOf = new Map(known.map((value, code) => [value, code]));
  const codes = Uint16Array.from(column.values, (value) => codeOf.get(value) ?? known.length);
  return { names: known.map((value) => full(column.exact(value))), codes, missing: column.missing };
}

interface Scaled {
  place: (value: number) => number;
  ticks: Tick[];
  low: number;
  high: number;
}

function scaled(values: Numbers, kind: ScaleKind): Scaled {
  const sorted = sortedSample(values);
  if (sorted.length === 0) return { place: () => 0.5, ticks: [], low: 0, high: 0 };
  const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))]!;
  if (kind === "quantile") {
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => ({ at: share, text: short(at(share)) }));
    return { place: (value) => rank(sorted, value), ticks, low: sorted[0]!, high: sorted.at(-1)! };
  }
  const change = kind === "log" ? Math.log10 : (value: number) => value;
  let [low, high] = [sorted[0]!, sorted.at(-1)!];
  const inner = [at(CLIPPED), at(1 - CLIPPED)] as const;
  if (change(inner[1]) - change(inner[0]) < 0.5 * (change(high) - change(low)) && inner[1] > inner[0]) [low, high] = inner;
  const extent = change(high) - change(low);
  const place = (value: number) => (extent > 0 ? (change(value) - change(low)) / extent : 0.5);
  const marks = kind === "log" ? logTicks(low, high) : linearTicks(low, high);
  return { place, ticks: marks.map((value) => ({ at: place(value), text: short(value) })), low, high };
}

/** Returns a sorted sample that contains both ends. */
function sortedSample(values: Numbers): Numbers {
  const step = Math.max(1, Math.floor(values.length / SAMPLE));
  const sample: number[] = [];
  let [low, high] = [Infinity, -Infinity];
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!;
    if (Number.isNaN(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
    if (row % step === 0) sample.push(value);
  }
  if (low <= high) sample.push(low, high);
  return Float64Array.from(sample).sort();
}

/** Returns the share of the sorted values below a value; equal values share the middle of their ranks. */
function rank(sorted: Numbers, value: number): number {
  return (bound(sorted, value, false) + bound(sorted, value, true)) / 2 / sorted.length;
}

function bound(sorted: Numbers, value: number, above: boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (above ? sorted[middle]! <= value : sorted[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Returns round numbers within the limits, three to six of them. */
export function linearTicks(low: number, high: number): number[] {
  if (!(high > low)) return [low];
  const power = 10 ** Math.floor(Math.log10((high - low) / 4));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((one) => (high - low) / one <= 5)!;
  const ticks: number[] = [];
  for (let a = Math.ceil(low / step - 1e-9); a * step <= high + 1e-9 * step; a++) ticks.push(Number((a * step).toPrecision(12)));
  return ticks;
}

function logTicks(low: number, high: number): number[] {
  const ticks: number[] = [];
  for (let power = Math.ceil(Math.log10(low)); 10 ** power <= high; power++) ticks.push(Number((10 ** power).toPrecision(12)));
  const step = Math.ceil(ticks.length / 6);
  return ticks.length >= 2 ? ticks.filter((_, a) => a % step === 0) : [low, high];
}

/** Returns the color at a share of the way along the stops. */
export function between(stops: string[], share: number): string {
  const at = share * (stops.length - 1);
  const a = Math.min(stops.length - 2, Math.floor(at));
  const mixed = [1, 3, 5].map((from) => {
    const [one, other] = [stops[a]!, stops[a + 1]!].map((stop) => parseInt(stop.slice(from, from + 2), 16)) as [number, number];
    return Math.round(one + (other - one) * (at - a))
      .toString(16)
      .padStart(2, "0");
  });
  return `#${mixed.join("")}`;
}
