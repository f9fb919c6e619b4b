// Decodes the data of a page: `vicinal-meta`, a JSON text, and one section per column, base64 of zlib.
// The encoder is src/vicinal/viewer/packing.py.

export interface Meta {
  version: number;
  n: number;
  title: string;
  theme: "auto" | "light" | "dark";
  box: [number, number, number, number];
  label: string;
  categories: string[];
  unlabelled: boolean;
  palette: { light: string[]; dark: string[]; values: string[] };
  values: { low: number; high: number } | null;
  fields: string[];
  images: { height: number; width: number; channels: number; block: number } | null;
  live: Live | null;
}

export interface Live {
  feed: string;
  parameters: Parameter[];
  projects: boolean;
}

export interface Parameter {
  name: string;
  value: number;
  low: number;
  high: number;
  step: number;
}

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

/** The data of new rows, which arrive before their positions; replaces the rows from `begin` on. */
export interface NewRows {
  begin: number;
  meta: Pick<Meta, "n" | "categories" | "unlabelled" | "palette" | "values" | "fields">;
  sections: Record<string, ArrayBuffer>;
}

export interface MapData {
  meta: Meta;
  n: number;
  /** Positions in a square of side 2 around the origin, equal scales on both axes. */
  x: Float32Array;
  y: Float32Array;
  codes: Uint8Array | Uint16Array | null;
  values: Float32Array | null;
  ids: Texts | RowNumbers;
  fields: { name: string; texts: Texts }[];
  image: ((row: number) => Promise<ImageData>) | null;
}

const SEPARATOR = "\u001e";

/** Converts to lower case of the same length: a few letters become longer and would shift the ends of all rows. */
function fold(text: string): string {
  const folded = text.toLowerCase();
  return folded.length === text.length ? folded : Array.from(text, (c) => (c.toLowerCase().length === c.length ? c.toLowerCase() : c)).join("");
}

export function readMeta(): Meta {
  return JSON.parse(document.getElementById("vicinal-meta")!.textContent!) as Meta;
}

export async function readData(meta: Meta): Promise<MapData> {
  const xy = new Uint16Array(await section("xy"));
  const [x, y] = places(xy, meta.box);
  const codes = await optional("codes");
  const values = await optional("values");
  const ids = await optional("ids");
  const fields = [];
  for (const [a, name] of meta.fields.entries()) {
    fields.push({ name, texts: new Texts(decode(await section(`field${a}`)), meta.n) });
  }
  const wide = meta.categories.length + Number(meta.unlabelled) > 256;
  return {
    meta,
    n: meta.n,
    x,
    y,
    codes: codes && (wide ? new Uint16Array(codes) : new Uint8Array(codes)),
    values: values && new Float32Array(values),
    ids: ids ? new Texts(decode(ids), meta.n) : new RowNumbers(),
    fields,
    image: meta.images && imageReader(meta.images),
  };
}

/** Adds new rows with their data; their positions are set later. */
export function takeRows(data: MapData, { begin, meta, sections }: NewRows): void {
  const { n } = meta;
  const { codes, values, ids } = sections;
  data.meta = { ...data.meta, ...meta };
  data.n = n;
  data.x = resized(data.x, n);
  data.y = resized(data.y, n);
  if (codes) (data.codes = resized((data.codes as Uint16Array | null) ?? new Uint16Array(0), n)).set(new Uint16Array(codes), begin);
  if (values) (data.values = resized(data.values ?? new Float32Array(0), n)).set(new Float32Array(values), begin);
  if (ids) {
    if (begin === 0) data.ids = new Texts("", 0);
    (data.ids as Texts).append(decode(ids), begin, n);
  }
  if (begin === 0) data.fields = meta.fields.map((name) => ({ name, texts: new Texts("", 0) }));
  for (const [a, { texts }] of data.fields.entries()) texts.append(decode(sections[`field${a}`]!), begin, n);
}

/** Returns a longer or shorter copy. */
function resized<T extends Float32Array | Uint16Array | Uint32Array>(array: T, n: number): T {
  const copy = new (array.constructor as new (n: number) => T)(n);
  copy.set(array.subarray(0, n));
  return copy;
}

/** Converts steps of a 16-bit grid over the box to the page's square: the longer side of the box becomes 2. */
export function places(xy: Uint16Array, box: Meta["box"]): [Float32Array, Float32Array] {
  const n = xy.length / 2;
  const [left, bottom, right, top] = box;
  const longest = Math.max(right - left, top - bottom) || 1;
  const axis = (from: number, extent: number) => {
    const out = new Float32Array(n);
    const step = (2 * extent) / longest / 65535;
    const shift = -extent / longest;
    for (let row = 0; row < n; row++) out[row] = xy[from + row]! * step + shift;
    return out;
  };
  return [axis(0, right - left), axis(n, top - bottom)];
}

function imageReader(shape: NonNullable<Meta["images"]>): (row: number) => Promise<ImageData> {
  const blocks = new Map<number, Promise<Uint8Array>>();
  const size = shape.height * shape.width;
  return async (row) => {
    const block = Math.floor(row / shape.block);
    if (!blocks.has(block)) blocks.set(block, section(`images${block}`).then((buffer) => new Uint8Array(buffer)));
    const bytes = await blocks.get(block)!;
    const from = (row % shape.block) * size * shape.channels;
    const image = new ImageData(shape.width, shape.height);
    for (let a = 0; a < size; a++) {
      for (let c = 0; c < 3; c++) {
        image.data[4 * a + c] = bytes[from + a * shape.channels + (shape.channels === 1 ? 0 : c)]!;
      }
      image.data[4 * a + 3] = shape.channels === 4 ? bytes[from + 4 * a + 3]! : 255;
    }
    return image;
  };
}

async function optional(name: string): Promise<ArrayBuffer | null> {
  return document.getElementById(`vicinal-${name}`) ? section(name) : null;
}

async function section(name: string): Promise<ArrayBuffer> {
  const element = document.getElementById(`vicinal-${name}`)!;
  const bytes = fromBase64(element.textContent!);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const builtIn = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (builtIn) return builtIn.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let a = 0; a < binary.length; a++) bytes[a] = binary.charCodeAt(a);
  return bytes;
}

function decode(buffer: ArrayBuffer): string {
  return new TextDecoder().decode(buffer);
}
