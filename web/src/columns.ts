// Columns of a page: classes, values or texts, one entry per row. Their encoder is src/vicinal/viewer/packing.py.
import { full, shortest } from "./element";

export interface ColumnMeta {
  name: string;
  kind: "classes" | "values" | "texts";
  names?: string[];
  /** Colors of classes, null for a class that has none of its own. */
  colors?: (string | null)[];
  /** Classes: two bytes each. Values: float64. */
  wide?: boolean;
  low?: number;
  high?: number;
  missing?: number;
}

const SEPARATOR = "\u001e";
// Numbers with at most this many distinct values can be shown as classes.
export const MOST_AS_CLASSES = 256;

/** Texts of all rows in one string: needs little memory, and one scan finds a word in any of them. */
export class Texts {
  private joined = "";
  private ends = new Uint32Array(0);
  private folded: string | null = null;

  constructor(joined: string, n: number) {
    this.append(joined, 0, n);
  }

  /** Replaces the texts of the rows from `begin` to `n`. */
  append(joined: string, begin: number, n: number): void {
    let from = begin === 0 ? 0 : this.ends[begin - 1]! + 1;
    this.joined = this.joined.slice(0, from) + joined;
    this.ends = resized(this.ends, n);
    this.folded = null;
    for (let row = begin; row < n; row++) {
      const end = this.joined.indexOf(SEPARATOR, from);
      this.ends[row] = end;
      from = end + 1;
    }
  }

  at(row: number): string {
    return this.joined.slice(row === 0 ? 0 : this.ends[row - 1]! + 1, this.ends[row]);
  }

  /** Marks the rows whose text contains `word`, which is in lower case. */
  mark(word: string, found: Uint8Array): void {
    this.folded ??= fold(this.joined);
    let row = 0;
    for (let at = this.folded.indexOf(word); at >= 0; ) {
      row = this.rowOf(at, row);
      found[row] = 1;
      at = this.folded.indexOf(word, this.ends[row]! + 1);
    }
  }

  private rowOf(at: number, from: number): number {
    let low = from;
    let high = this.ends.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle]! < at) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Row numbers from 0, without a string for each. */
export class RowNumbers {
  at(row: number): string {
    return String(row);
  }

  mark(word: string, found: Uint8Array): void {
    const row = Number(word);
    if (/^\d+$/.test(word) && row < found.length) found[row] = 1;
  }
}

export type Codes = Uint8Array | Uint16Array;
export type Numbers = Float32Array | Float64Array;

export class ClassColumn {
  readonly kind = "classes";

  constructor(
    readonly name: string,
    public names: string[],
    public codes: Codes,
    public missing: number,
    public colors: (string | null)[],
  ) {}

  text(row: number): string {
    return this.names[this.codes[row]!] ?? "";
  }

  /** The number that the name of a class is, if all names are numbers. */
  get numbers(): Float64Array | null {
    const numbers = Float64Array.from(this.names, (name) => (name.trim() === "" ? NaN : Number(name)));
    return numbers.every(Number.isFinite) && numbers.length > 0 ? numbers : null;
  }

  mark(word: string, found: Uint8Array): void {
    const matching = this.names.map((name) => name.toLowerCase().includes(word));
    if (matching.includes(true)) for (let row = 0; row < this.codes.length; row++) if (matching[this.codes[row]!]) found[row] = 1;
  }
}

export class ValueColumn {
  readonly kind = "values";

  constructor(readonly name: string, public values: Numbers, public low: number, public high: number, public missing: number) {}

  text(row: number): string {
    const value = this.number(row);
    return Number.isNaN(value) ? "missing" : full(value);
  }

  number(row: number): number {
    return this.exact(this.values[row]!);
  }

  /** Returns a number as it was before it became a float32, as far as that can be told. */
  exact(value: number): number {
    return this.values instanceof Float32Array ? shortest(value) : value;
  }

  mark(): void {
    // numbers are not searched: every digit would match
  }
}

export class TextColumn {
  readonly kind = "texts";

  constructor(readonly name: string, readonly texts: Texts) {}

  text(row: number): string {
    return this.texts.at(row);
  }

  mark(word: string, found: Uint8Array): void {
    this.texts.mark(word, found);
  }
}

export type Column = ClassColumn | ValueColumn | TextColumn;

export function columnOf(meta: ColumnMeta, content: ArrayBuffer, n: number): Column {
  if (meta.kind === "classes") return new ClassColumn(meta.name, meta.names!, meta.wide ? new Uint16Array(content) : new Uint8Array(content), meta.missing!, meta.colors ?? []);
  if (meta.kind === "values") return new ValueColumn(meta.name, numbersOf(meta, content), meta.low!, meta.high!, meta.missing!);
  return new TextColumn(meta.name, new Texts(decode(content), n));
}

/** Replaces the rows from `begin` on; the kind of a column does not change. */
export function extend(column: Column, meta: ColumnMeta, content: ArrayBuffer, begin: number, n: number): void {
  if (column.kind === "texts") column.texts.append(decode(content), begin, n);
  else if (column.kind === "values") {
    const added = numbersOf(meta, content);
    if (meta.wide) column.values = Float64Array.from(column.values);
    (column.values = resized(column.values, n)).set(added, begin);
    [column.low, column.high, column.missing] = [meta.low!, meta.high!, meta.missing!];
  } else {
    const codes = meta.wide ? new Uint16Array(content) : new Uint8Array(content);
    const longer = meta.wide ? new Uint16Array(n) : new Uint8Array(n);
    longer.set(column.codes.subarray(0, begin));
    longer.set(codes, begin);
    [column.codes, column.names, column.missing, column.colors] = [longer, meta.names!, meta.missing!, meta.colors ?? []];
  }
}

function numbersOf(meta: ColumnMeta, content: ArrayBuffer): Numbers {
  return meta.wide ? new Float64Array(content) : new Float32Array(content);
}

/** Returns a longer or shorter copy. */
export function resized<T extends Float32Array | Float64Array | Uint16Array | Uint32Array>(array: T, n: number): T {
  const copy = new (array.constructor as new (n: number) => T)(n);
  copy.set(array.subarray(0, n));
  return copy;
}

export function decode(buffer: ArrayBuffer): string {
  return new TextDecoder().decode(buffer);
}

/** Converts to lower case of the same length: a few letters become longer and would shift the ends of all rows. */
function fold(text: string): string {
  const folded = text.toLowerCase();
  return folded.length === text.length ? folded : Array.from(text, (c) => (c.toLowerCase().length === c.length ? c.toLowerCase() : c)).join("");
}
