// The neighbor table of a page, and the tables of some of its rows. The encoder is src/vicinal/viewer/relayout.py.

/** The nearest rows of every row, the row itself first; a missing neighbor is -1 at an infinite distance. */
export interface Knn {
  n: number;
  k: number;
  index: Int32Array;
  distance: Float32Array;
}

/** Decodes row numbers that are stored byte by byte, and distances as differences of their bits. */
export function decodeKnn(n: number, k: number, bytes: number, numbers: ArrayBuffer, steps: ArrayBuffer): Knn {
  const [planes, parts, others] = [new Uint8Array(numbers), new Uint8Array(steps), k - 1];
  const [index, bits] = [new Int32Array(n * k), new Uint32Array(n * k)];
  for (let row = 0; row < n; row++) index[row * k] = row;
  for (let a = 0; a < others; a++) {
    for (let row = 0; row < n; row++) {
      const at = row * k + a + 1;
      let [number, step] = [0, 0];
      for (let byte = 0; byte < bytes; byte++) number += planes[(byte * others + a) * n + row]! << (8 * byte);
      for (let byte = 0; byte < 4; byte++) step |= parts[(byte * others + a) * n + row]! << (8 * byte);
      index[at] = number === row ? -1 : number;
      // the sum of the steps wraps as unsigned numbers do
      bits[at] = a === 0 ? step >>> 0 : (bits[at - 1]! + step) >>> 0;
    }
  }
  return { n, k, index, distance: new Float32Array(bits.buffer) };
}

/** Returns the table of some rows, ascending, among themselves with at most `k` columns: missing neighbors come last. */
export function among(table: Knn, rows: Int32Array, k: number): Knn {
  const width = Math.min(k, table.k, rows.length);
  const number = new Int32Array(table.n).fill(-1);
  rows.forEach((row, a) => (number[row] = a));
  const index = new Int32Array(rows.length * width).fill(-1);
  const distance = new Float32Array(rows.length * width).fill(Infinity);
  rows.forEach((row, a) => {
    let filled = 0;
    for (let at = row * table.k; at < (row + 1) * table.k && filled < width; at++) {
      const other = table.index[at]!;
      if (other < 0 || number[other]! < 0) continue;
      index[a * width + filled] = number[other]!;
      distance[a * width + filled++] = table.distance[at]!;
    }
  });
  return { n: rows.length, k: width, index, distance };
}

/** Gives equal rows the place of the first of them; `first` names an earlier row that a row of the whole map equals. */
export function shareEqual(places: Float32Array, rows: Int32Array, first: Map<number, number>): void {
  const d = places.length / rows.length;
  const leaders = new Map<number, number>();
  rows.forEach((row, at) => {
    const group = first.get(row) ?? row;
    const leader = leaders.get(group);
    if (leader === undefined) leaders.set(group, at);
    else places.copyWithin(at * d, leader * d, (leader + 1) * d);
  });
}
