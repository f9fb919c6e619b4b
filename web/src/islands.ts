// Where names belong on a map: the separate areas that each class occupies, and clusters of a map without classes.
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
const MOST_CELLS = 64;
const FEWEST_CELLS = 10;
const SAMPLE = 300_000;
// An area is named if it has this share of its class, or this share of all rows.
const SHARE_OF_CLASS = 0.08;
const SHARE_OF_ALL = 0.004;
const FEWEST = 6;

/** Returns a spot for each area of each class, the largest first. */
export function islands({ x, y, z }: Places, codes: Codes, names: string[]): Spot[] {
  const n = x.length;
  const step = Math.max(1, Math.floor(n / SAMPLE));
  const cellCount = Math.min(MOST_CELLS, Math.max(FEWEST_CELLS, Math.round(Math.sqrt(n) * 0.9)));
  const cell = (at: number) => Math.min(cellCount - 1, Math.max(0, Math.floor(((at + 1) / 2) * cellCount)));
  const cells = new Map<number, number[]>(names.map((_, code) => [code, []]));
  for (let row = 0; row < n; row += step) cells.get(codes[row]!)?.push(row);
  const spots: Spot[] = [];
  for (const [code, rows] of cells) {
    const least = Math.max(Math.min(FEWEST, rows.length), Math.min(SHARE_OF_CLASS * rows.length, (SHARE_OF_ALL * n) / step));
    const groups = z ? [rows] : connected(rows, cellCount, (row) => cell(y[row]!) * cellCount + cell(x[row]!));
    groups.sort((a, b) => b.length - a.length);
    groups.forEach((group, rank) => {
      if (group.length === 0 || (rank > 0 && group.length < least)) return;
      spots.push({ text: names[code]!, code, ...middle({ name: "", x, y, z }, group), size: group.length * step, level: rank === 0 ? 0 : 1 });
    });
  }
  return spots.sort((a, b) => a.level - b.level || b.size - a.size);
}

export function clusterSpots(clusters: Cluster[], box: number[]): Spot[] {
  const spots = clusters.map(({ name, place, size, level }) => {
    const [x, y] = toSquare(place, box) as [number, number];
    return { text: name, code: -1, x, y, z: 0, size, level, radius: 0.12 / 2 ** level };
  });
  return spots.sort((a, b) => a.level - b.level || b.size - a.size);
}

/** Groups rows whose cells touch; cells with very few rows, the haze between areas, connect nothing. */
function connected(rows: number[], cellCount: number, cellOf: (row: number) => number): number[][] {
  const members = new Map<number, number[]>();
  for (const row of rows) {
    const at = cellOf(row);
    if (members.has(at)) members.get(at)!.push(row);
    else members.set(at, [row]);
  }
  const haze = rows.length / members.size / 4;
  const dense = new Set([...members].filter(([, inside]) => inside.length >= haze).map(([at]) => at));
  const groups: number[][] = [];
  for (const first of dense) {
    dense.delete(first);
    const group: number[] = [];
    const open = [first];
    while (open.length) {
      const at = open.pop()!;
      for (const row of members.get(at)!) group.push(row);
      for (const other of around(at, cellCount)) if (dense.delete(other)) open.push(other);
    }
    groups.push(group);
  }
  return groups;
}

function* around(at: number, cellCount: number): Generator<number> {
  const [cx, cy] = [at % cellCount, Math.floor(at / cellCount)];
  for (let y = cy - 1; y <= cy + 1; y++) {
    for (let x = cx - 1; x <= cx + 1; x++) if (x >= 0 && y >= 0 && x < cellCount && y < cellCount) yield y * cellCount + x;
  }
}

/** Returns the row nearest to the mean of the rows, so that the name lies on its area, and half of the extent. */
function middle({ x, y, z }: Places, rows: number[]): Pick<Spot, "x" | "y" | "z" | "radius"> {
  const mean = [x, y, z].map((axis) => (axis ? rows.reduce((sum, row) => sum + axis[row]!, 0) / rows.length : 0)) as [number, number, number];
  let [best, least, spread] = [rows[0]!, Infinity, 0];
  for (const row of rows) {
    const d2 = (x[row]! - mean[0]) ** 2 + (y[row]! - mean[1]) ** 2 + (z ? (z[row]! - mean[2]) ** 2 : 0);
    spread += d2 / rows.length;
    if (d2 < least) [best, least] = [row, d2];
  }
  return { x: x[best]!, y: y[best]!, z: z ? z[best]! : 0, radius: Math.sqrt(spread) };
}
