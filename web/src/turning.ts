// Turn positions onto earlier ones of the same rows: rotation or reflection, scale and shift with the least squared
// distance (Procrustes analysis), so that people recognize a map that was made again.

type Axes = readonly Float32Array[];

const ROUNDS = 60;
const SETTLED = 1e-12;

/** Moves `axes` in place to the least squared distance from `goal`; nothing is done if either has no extent. */
export function turnOnto(axes: Axes, goal: Axes): void {
  const n = Math.min(axes[0]!.length, goal[0]!.length);
  const [center, aim] = [axes, goal].map((some) => some.map((axis) => mean(axis, n))) as [number[], number[]];
  const product = axes.map((axis, a) => goal.map((other, b) => sum(n, (row) => (axis[row]! - center[a]!) * (other[row]! - aim[b]!))));
  const spread = axes.reduce((total, axis, a) => total + sum(n, (row) => (axis[row]! - center[a]!) ** 2), 0);
  const turn = nearestTurn(product);
  if (!turn || !(spread > 0)) return;
  const scale = product.reduce((total, line, a) => total + line.reduce((inner, value, b) => inner + value * turn[a]![b]!, 0), 0) / spread;
  if (!(scale > 0)) return;
  const before = axes.map((axis) => axis.slice());
  axes.forEach((axis, b) => {
    for (let row = 0; row < axis.length; row++) {
      let at = aim[b]!;
      for (let a = 0; a < axes.length; a++) at += (before[a]![row]! - center[a]!) * turn[a]![b]! * scale;
      axis[row] = at;
    }
  });
}

/** Returns the orthogonal matrix nearest to a square one: the mean of a matrix and its inverse transpose converges to it. */
function nearestTurn(matrix: number[][]): number[][] | null {
  const size = Math.max(...matrix.flat().map(Math.abs));
  let turn = matrix.map((line) => line.map((value) => value / size));
  for (let round = 0; round < ROUNDS; round++) {
    const inverse = inverted(turn);
    if (!inverse) return null;
    const next = turn.map((line, a) => line.map((value, b) => (value + inverse[b]![a]!) / 2));
    const change = Math.max(...next.flatMap((line, a) => line.map((value, b) => Math.abs(value - turn[a]![b]!))));
    turn = next;
    if (change < SETTLED) break;
  }
  return turn;
}

/** Inverts a small matrix by elimination with pivots; null if it has no inverse. */
function inverted(matrix: number[][]): number[][] | null {
  const n = matrix.length;
  const work = matrix.map((line, a) => [...line, ...line.map((_, b) => Number(a === b))]);
  for (let column = 0; column < n; column++) {
    let pivot = column;
    for (let line = column + 1; line < n; line++) if (Math.abs(work[line]![column]!) > Math.abs(work[pivot]![column]!)) pivot = line;
    [work[column], work[pivot]] = [work[pivot]!, work[column]!];
    const by = work[column]![column]!;
    if (!(Math.abs(by) > 1e-9)) return null;
    work[column] = work[column]!.map((value) => value / by);
    for (let line = 0; line < n; line++) {
      if (line === column) continue;
      const factor = work[line]![column]!;
      work[line] = work[line]!.map((value, a) => value - factor * work[column]![a]!);
    }
  }
  return work.map((line) => line.slice(n));
}

function mean(axis: Float32Array, n: number): number {
  return sum(n, (row) => axis[row]!) / n;
}

function sum(n: number, of: (row: number) => number): number {
  let total = 0;
  for (let row = 0; row < n; row++) total += of(row);
  return total;
}
