// Where names belong on a map: the areas that a class dominates, and clusters of a map without classes.
// src/vicinal/plot/names.py finds the same areas for figures.
import { box, mainBox } from "./camera";
import type { Codes } from "./columns";
import { type Cluster, type Places, toSquare } from "./data";

export interface Spot {
  text: string;
  /** The class that the name belongs to, or -1. */
  code: number;
  x: number;
  y: number;
  z: number;
  size: number;
  /** 0 for the main area of a class or a coarse cluster; finer ones have higher levels. */
  level: number;
  /** Half of the extent of the area. */
  radius: number;
}

// Cells along each side of the map: fewer if there are few points, whose gaps would divide an area.
const CELLS = { flat: { fewest: 10, most: 64 }, deep: { fewest: 6, most: 20 } };
// A class may name a cell where it is the majority, or this many times as frequent as overall and among the two largest.
const ENRICHED = 3;
// An area is named if it has this share of its class, or this share of all rows.
const SHARE_OF_CLASS = 0.08;
const SHARE_OF_ALL = 0.004;
const FEWEST = 6;
// A class of at least this share is named in any case: where it is most frequent.
const LARGE = 0.01;
// A name stands at one of this many rows of its area, judged by the classes of the rows nearest to it.
const CANDIDATES = 32;
const NEAR = 100;
// The areas of larger maps are found from an even sample.
const SAMPLE = 200_000;

/** Returns a spot for each area that a class dominates among the shown rows, the largest area of every class first. */
export function islands(places: Places, codes: Codes, names: string[], shown: (row: number) => boolean = () => true): Spot[] {
  const all: number[] = [];
  for (let row = 0; row < places.x.length; row++) if (shown(row)) all.push(row);
  const step = Math.max(1, Math.ceil(all.length / SAMPLE));
  const sample = step === 1 ? all : all.filter((_, a) => a % step === 0);
  const n = sample.length;
  const grid = new Grid(places, codes, names.length, all, sample);
  const rows = names.map((): number[] => []);
  for (const row of sample) rows[codes[row]!]?.push(row);
  const spots: Spot[] = [];
  rows.forEach((own, code) => {
    if (own.length === 0) return;
    const overall = own.length / n;
    const least = Math.max(Math.min(FEWEST, own.length), Math.min(SHARE_OF_CLASS * own.length, SHARE_OF_ALL * n));
    const groups = grid.connected(own, (cell) => grid.names(cell, code, overall)).filter((group) => group.length >= least);
    groups.sort((a, b) => b.length - a.length);
    const anchors = groups.map((group) => ({ group, ...grid.anchor(group, code, overall) }));
    // areas whose middle belongs to another class are left out, unless a large class would have no name
    const kept = anchors.filter(({ typical }) => typical);
    if (kept.length === 0 && overall >= LARGE) {
      const group = grid.purest(own, code);
      kept.push({ group, ...grid.anchor(group, code, overall) });
    }
    kept.forEach(({ group, row }, rank) => {
      const at = { x: places.x[row]!, y: places.y[row]!, z: places.z ? places.z[row]! : 0 };
      spots.push({ text: names[code]!, code, ...at, radius: extent(places, group), size: group.length * step, level: rank === 0 ? 0 : 1 });
    });
  });
  return spots.sort((a, b) => a.level - b.level || b.size - a.size);
}

export function clusterSpots(clusters: Cluster[], box: number[]): Spot[] {
  const spots = clusters.map(({ name, place, size, level }) => {
    const [x, y, z] = toSquare(place, box) as [number, number, number | undefined];
    return { text: name, code: -1, x, y, z: z ?? 0, size, level, radius: 0.12 / 2 ** level };
  });
  return spots.sort((a, b) => a.level - b.level || b.size - a.size);
}

/** Counts of the classes in the cells of a grid over the map, averaged over neighboring cells. */
class Grid {
  private readonly side: number;
  private readonly deep: boolean;
  private readonly cells: Uint32Array;
  private readonly counts: Float32Array;
  private readonly totals: Float32Array;
  private readonly second: Float32Array;
  /** The shown rows, cell by cell, and where those of each cell begin. */
  private readonly members: Uint32Array;
  private readonly begins: Uint32Array;

  constructor(private readonly places: Places, private readonly codes: Codes, private readonly classes: number, all: number[], sample: number[]) {
    const { x, y, z } = places;
    // far outliers belong to the cells at the border
    const around = mainBox(places) ?? box(places);
    const half = Math.max(around.width, around.height) / 2;
    this.deep = z !== null;
    const { fewest, most } = this.deep ? CELLS.deep : CELLS.flat;
    this.side = Math.min(most, Math.max(fewest, Math.round(this.deep ? Math.cbrt(x.length) : Math.sqrt(x.length) * 0.9)));
    const along = (at: number, middle: number) => Math.min(this.side - 1, Math.max(0, Math.floor(((at - middle + half) / 2 / half) * this.side)));
    const size = this.side ** (this.deep ? 3 : 2);
    this.cells = new Uint32Array(x.length);
    for (const row of all) this.cells[row] = ((z ? along(z[row]!, 0) : 0) * this.side + along(y[row]!, around.y)) * this.side + along(x[row]!, around.x);
    let counts: Float32Array = new Float32Array(size * (classes + 1));
    for (const row of sample) counts[this.cells[row]! * (classes + 1) + Math.min(classes, codes[row]!)]!++;
    this.begins = new Uint32Array(size + 1);
    for (const row of all) this.begins[this.cells[row]! + 1]!++;
    for (let cell = 0; cell < size; cell++) this.begins[cell + 1]! += this.begins[cell]!;
    const next = this.begins.slice();
    this.members = new Uint32Array(all.length);
    for (const row of all) this.members[next[this.cells[row]!]!++] = row;
    for (let axis = 0; axis < (this.deep ? 3 : 2); axis++) counts = this.summed(counts, this.side ** axis);
    this.counts = counts;
    this.totals = new Float32Array(size);
    this.second = new Float32Array(size);
    for (let cell = 0; cell < size; cell++) {
      let most = 0;
      for (let code = 0; code <= classes; code++) {
        const count = counts[cell * (classes + 1) + code]!;
        this.totals[cell]! += count;
        if (code === classes) continue;
        if (count > most) [this.second[cell], most] = [most, count];
        else if (count > this.second[cell]!) this.second[cell] = count;
      }
    }
  }

  /** Adds to each cell its two neighbors along an axis. */
  private summed(counts: Float32Array, stride: number): Float32Array {
    const width = this.classes + 1;
    const out = counts.slice();
    for (let cell = 0; cell * width < counts.length; cell++) {
      const along = Math.floor(cell / stride) % this.side;
      for (const other of [along > 0 ? cell - stride : -1, along < this.side - 1 ? cell + stride : -1]) {
        if (other >= 0) for (let code = 0; code < width; code++) out[cell * width + code]! += counts[other * width + code]!;
      }
    }
    return out;
  }

  private share(cell: number, code: number): number {
    return this.counts[cell * (this.classes + 1) + code]! / (this.totals[cell]! || 1);
  }

  /** Returns whether a class may name a cell. */
  names(cell: number, code: number, overall: number): boolean {
    const share = this.share(cell, code);
    return share >= 0.5 || (share >= ENRICHED * overall && this.counts[cell * (this.classes + 1) + code]! >= this.second[cell]!);
  }

  /** Groups rows whose cells touch and may be named; cells with very few rows, the haze between areas, connect nothing. */
  connected(rows: number[], named: (cell: number) => boolean): number[][] {
    const members = new Map<number, number[]>();
    for (const row of rows) {
      const cell = this.cells[row]!;
      if (members.has(cell)) members.get(cell)!.push(row);
      else members.set(cell, [row]);
    }
    const haze = rows.length / members.size / 4;
    const open = new Set([...members].filter(([cell, inside]) => inside.length >= haze && named(cell)).map(([cell]) => cell));
    const groups: number[][] = [];
    for (const first of open) {
      open.delete(first);
      const group: number[] = [];
      const next = [first];
      while (next.length) {
        const cell = next.pop()!;
        for (const row of members.get(cell)!) group.push(row);
        for (const other of this.around(cell)) if (open.delete(other)) next.push(other);
      }
      groups.push(group);
    }
    return groups;
  }

  /** Returns the rows in the cells with the largest shares of a class, if they have enough rows of it. */
  purest(rows: number[], code: number): number[] {
    const enough = Math.min(rows.length, FEWEST);
    const cells = [...new Set(rows.map((row) => this.cells[row]!))].filter((cell) => this.counts[cell * (this.classes + 1) + code]! >= enough);
    const best = new Set(cells.sort((a, b) => this.share(b, code) - this.share(a, code)).slice(0, CANDIDATES));
    const found = rows.filter((row) => best.has(this.cells[row]!));
    return found.length ? found : rows;
  }

  /** Returns the row of a group where a name stands: near the middle, among rows of the class; and whether it does. */
  anchor(group: number[], code: number, overall: number): { row: number; typical: boolean } {
    const nearest = middle(this.places, group);
    const step = Math.max(1, group.length / CANDIDATES);
    const spread = Array.from({ length: Math.min(CANDIDATES, group.length) }, (_, a) => group[Math.floor(a * step)]!);
    const tried = [nearest, ...spread].map((row) => ({ row, from: distance2(this.places, row, nearest) }));
    let best = { row: nearest, share: -1, typical: false };
    // the first place that is typical, from the middle on; if there is none, the one with the largest share
    for (const { row } of tried.sort((a, b) => a.from - b.from)) {
      const judged = { row, ...this.local(row, code, overall) };
      if (judged.typical) return judged;
      if (judged.share > best.share) best = judged;
    }
    return best;
  }

  /** Returns the share of a class among the rows nearest to a row, and whether the class may name this place. */
  private local(row: number, code: number, overall: number): { share: number; typical: boolean } {
    const near = this.near(row);
    const from = Float64Array.from(near, (other) => distance2(this.places, row, other));
    const reach = smallest(from.slice(), Math.min(NEAR, near.length) - 1);
    const counts = new Map<number, number>();
    near.forEach((other, a) => from[a]! <= reach && counts.set(this.codes[other]!, (counts.get(this.codes[other]!) ?? 0) + 1));
    const own = counts.get(code) ?? 0;
    const share = own / [...counts.values()].reduce((sum, count) => sum + count, 0);
    const larger = [...counts].filter(([other, count]) => other < this.classes && count > own).length;
    return { share, typical: share >= 0.5 || (share >= ENRICHED * overall && larger < 2) };
  }

  /** Returns the rows in the cells around a row, as far as is needed to have enough of them. */
  private near(row: number): number[] {
    for (let reach = 1; ; reach *= 2) {
      const found: number[] = [];
      for (const cell of this.around(this.cells[row]!, reach)) {
        for (let at = this.begins[cell]!; at < this.begins[cell + 1]!; at++) found.push(this.members[at]!);
      }
      if (found.length >= NEAR || reach >= this.side) return found;
    }
  }

  private *around(cell: number, reach = 1): Generator<number> {
    const { side } = this;
    const [cx, cy, cz] = [cell % side, Math.floor(cell / side) % side, Math.floor(cell / side / side)];
    for (let z = cz - reach; z <= cz + reach; z++) {
      if (z < 0 || z >= (this.deep ? side : 1)) continue;
      for (let y = cy - reach; y <= cy + reach; y++) {
        for (let x = cx - reach; x <= cx + reach; x++) if (x >= 0 && y >= 0 && x < side && y < side) yield (z * side + y) * side + x;
      }
    }
  }
}

/** Returns the row nearest to the mean of the rows, so that a name belongs to a point. */
function middle({ x, y, z }: Places, rows: number[]): number {
  const mean = [x, y, z].map((axis) => (axis ? rows.reduce((sum, row) => sum + axis[row]!, 0) / rows.length : 0)) as [number, number, number];
  let [best, least] = [rows[0]!, Infinity];
  for (const row of rows) {
    const d2 = (x[row]! - mean[0]) ** 2 + (y[row]! - mean[1]) ** 2 + (z ? (z[row]! - mean[2]) ** 2 : 0);
    if (d2 < least) [best, least] = [row, d2];
  }
  return best;
}

/** Returns the value at a rank, counted from 0, and reorders the values. */
function smallest(values: Float64Array, rank: number): number {
  let [low, high] = [0, values.length - 1];
  while (low < high) {
    const pivot = values[(low + high) >> 1]!;
    let [a, b] = [low, high];
    while (a <= b) {
      while (values[a]! < pivot) a++;
      while (values[b]! > pivot) b--;
      if (a > b) break;
      [values[a], values[b]] = [values[b]!, values[a]!];
      a++;
      b--;
    }
    if (rank <= b) high = b;
    else if (rank >= a) low = a;
    else break;
  }
  return values[rank]!;
}

function distance2({ x, y, z }: Places, a: number, b: number): number {
  return (x[a]! - x[b]!) ** 2 + (y[a]! - y[b]!) ** 2 + (z ? (z[a]! - z[b]!) ** 2 : 0);
}

function extent({ x, y, z }: Places, rows: number[]): number {
  const variances = [x, y, z].map((axis) => {
    if (!axis) return 0;
    const mean = rows.reduce((sum, row) => sum + axis[row]!, 0) / rows.length;
    return rows.reduce((sum, row) => sum + (axis[row]! - mean) ** 2, 0) / rows.length;
  });
  return Math.sqrt(variances.reduce((sum, one) => sum + one, 0));
}
