// Decodes the data of a page: a description in JSON, and one compressed section per column.
// The encoder is src/vicinal/viewer/packing.py.
import { type Column, type ColumnMeta, columnOf, decode, extend, resized, RowNumbers, Texts } from "./columns";

export interface Meta {
  version: number;
  n: number;
  title: string;
  theme: "auto" | "light" | "dark";
  maps: { name: string; box: number[] }[];
  columns: ColumnMeta[];
  color: string | null;
  palette: Palette;
  clusters: Cluster[];
  images: { height: number; width: number; channels: number; block: number } | null;
  neighbors: { k: number; bytes: number } | null;
  live: Live | null;
  diff?: Diff;
}

export interface Palette {
  light: string[];
  dark: string[];
  values: string[];
  missing: { light: string; dark: string };
  plain: string;
}

/** What differs between the two maps of a page, which are versions of one map; src/vicinal/atlas/diff.py writes it. */
export interface Diff {
  /** The columns with the areas of both versions, which have the same names, and with what happened to each row. */
  areas: [string, string];
  change: string;
  /** The value of the last column for rows that have moved far. */
  moved: string;
  facts: [string, string][];
  changes: AreaChange[];
  /** The named areas of each version. */
  names: [Cluster[], Cluster[]];
}

export interface AreaChange {
  name: string;
  kind: string;
  text: string;
  rows: [number, number];
}

/** A named area of the first map, in its own coordinates. */
export interface Cluster {
  name: string;
  place: number[];
  size: number;
  level: number;
}

export interface Live {
  feed: string;
  parameters: Parameter[];
  projects: boolean;
  neighbors: boolean;
  saves: boolean;
}

export type Parameter =
  | { name: string; value: number; low: number; high: number; step: number }
  | { name: string; value: string; choices: string[] };

/** Where the data of a page comes from: elements of the document, or a widget. */
export interface Source {
  meta: Meta;
  /** Returns the decompressed bytes of a section, or null if there is none. */
  section: (name: string) => Promise<ArrayBuffer | null>;
}

/** Positions in a square (cube) of side 2 around the origin, equal scales on all axes. */
export interface Places {
  name: string;
  x: Float32Array;
  y: Float32Array;
  /** Null for a flat map. */
  z: Float32Array | null;
  /** 1 for rows that this map does not have; they are not drawn. */
  absent?: Uint8Array | null;
}

/** The data of new rows, which arrive before their positions; replaces the rows from `begin` on. */
export interface NewRows {
  begin: number;
  meta: Pick<Meta, "n" | "columns" | "color">;
  sections: Record<string, ArrayBuffer>;
}

export class MapData {
  image: ((row: number) => Promise<ImageData>) | null = null;
  /** Returns the nearest rows in the data; null if the page has no neighbors. */
  neighbors: ((row: number) => Promise<number[]>) | null = null;
  /** The positions of a live map that has ended, in its own coordinates. */
  exact: { x: Float32Array; y: Float32Array } | null = null;

  constructor(public meta: Meta, public n: number, readonly maps: Places[], public columns: Column[], public ids: Texts | RowNumbers) {}

  get x(): Float32Array {
    return this.maps[0]!.x;
  }

  get y(): Float32Array {
    return this.maps[0]!.y;
  }

  get hasIds(): boolean {
    return this.ids instanceof Texts;
  }

  column(name: string | null): Column | null {
    return this.columns.find((one) => one.name === name) ?? null;
  }

  /** Adds new rows with their data; their positions are set later. */
  takeRows({ begin, meta, sections }: NewRows): void {
    const { n } = meta;
    this.meta = { ...this.meta, ...meta };
    this.n = n;
    for (const map of this.maps) {
      map.x = resized(map.x, n);
      map.y = resized(map.y, n);
      if (map.z) map.z = resized(map.z, n);
    }
    if (sections["ids"]) {
      if (begin === 0) this.ids = new Texts("", 0);
      (this.ids as Texts).append(decode(sections["ids"]), begin, n);
    }
    if (begin === 0) this.columns = meta.columns.map((one, a) => columnOf(one, sections[`column${a}`]!, n));
    else meta.columns.forEach((one, a) => extend(this.columns[a]!, one, sections[`column${a}`]!, begin, n));
  }
}

/** Returns the source whose data is in the elements of a document. */
export function documentSource(): Source {
  const meta = JSON.parse(document.getElementById("vicinal-meta")!.textContent!) as Meta;
  const section = async (name: string) => {
    const element = document.getElementById(`vicinal-${name}`);
    return element && inflate(fromBase64(element.textContent!));
  };
  return { meta, section };
}

export async function readData({ meta, section }: Source): Promise<MapData> {
  if (meta.version !== 2) throw new Error(`this program reads pages of format 2, not ${meta.version}`);
  const maps = await Promise.all(meta.maps.map(async ({ name, box }, a) => ({ name, ...places(new Uint16Array((await section(`xy${a}`))!), box) })));
  const columns = await Promise.all(meta.columns.map(async (one, a) => columnOf(one, (await section(`column${a}`))!, meta.n)));
  const ids = await section("ids");
  const data = new MapData(meta, meta.n, maps, columns, ids ? new Texts(decode(ids), meta.n) : new RowNumbers());
  if (meta.images) data.image = imageReader(meta.images, section);
  if (meta.neighbors) data.neighbors = neighborReader(meta.neighbors, meta.n, section);
  return data;
}

/** Converts steps of a 16-bit grid over the box to the page's square: the longest side of the box becomes 2. */
export function places(steps: Uint16Array, box: number[]): Omit<Places, "name"> {
  const width = box.length / 2;
  const n = steps.length / width;
  const extents = Array.from({ length: width }, (_, a) => box[width + a]! - box[a]!);
  const longest = Math.max(...extents) || 1;
  const axes = extents.map((extent, a) => {
    const out = new Float32Array(n);
    const step = (2 * extent) / longest / 65535;
    const shift = -extent / longest;
    for (let row = 0; row < n; row++) out[row] = steps[a * n + row]! * step + shift;
    return out;
  });
  return { x: axes[0]!, y: axes[1]!, z: axes[2] ?? null };
}

/** Converts a point of the map's own coordinates to the page's square. */
export function toSquare(place: number[], box: number[]): number[] {
  const width = box.length / 2;
  const longest = Math.max(...place.map((_, a) => box[width + a]! - box[a]!)) || 1;
  return place.map((side, a) => ((side - (box[a]! + box[width + a]!) / 2) * 2) / longest);
}

function imageReader(shape: NonNullable<Meta["images"]>, section: Source["section"]): (row: number) => Promise<ImageData> {
  const blocks = new Map<number, Promise<Uint8Array>>();
  const size = shape.height * shape.width;
  return async (row) => {
    const block = Math.floor(row / shape.block);
    if (!blocks.has(block)) blocks.set(block, section(`images${block}`).then((buffer) => new Uint8Array(buffer!)));
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

/** Reads a table of neighbors, whose numbers are stored byte by byte, when it is first asked for. */
function neighborReader({ k, bytes }: NonNullable<Meta["neighbors"]>, n: number, section: Source["section"]): (row: number) => Promise<number[]> {
  let table: Promise<Uint8Array> | null = null;
  return async (row) => {
    const planes = await (table ??= section("neighbors").then((buffer) => new Uint8Array(buffer!)));
    if (row >= n) return [];
    const numbers = Array.from({ length: k }, (_, a) => {
      let number = 0;
      for (let byte = bytes - 1; byte >= 0; byte--) number = number * 256 + planes[(byte * k + a) * n + row]!;
      return number;
    });
    return [...new Set(numbers)].filter((one) => one !== row);
  };
}

export async function inflate(bytes: BlobPart): Promise<ArrayBuffer> {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const builtIn = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (builtIn) return builtIn.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let a = 0; a < binary.length; a++) bytes[a] = binary.charCodeAt(a);
  return bytes;
}
