// Weakens edges between different classes, as src/vicinal/graph/supervision.py does and with the same bits.

/** A graph in compressed sparse rows, with ascending columns; both directions of an edge have the same weight. */
export interface Edges {
  indptr: Int32Array;
  indices: Int32Array;
  weights: Float32Array;
}

const UNLABELED = -1;

/** Multiplies the edges between two classes by `far`, those of unlabeled rows by `unknown`, and restores the connectivity. */
export function supervised({ indptr, indices, weights }: Edges, labels: Int32Array, { far, unknown }: { far: number; unknown: number }): Edges {
  const n = indptr.length - 1;
  const factors = Float32Array.from(weights);
  for (let row = 0; row < n; row++) {
    for (let e = indptr[row]!; e < indptr[row + 1]!; e++) {
      const [one, other] = [labels[row]!, labels[indices[e]!]!];
      factors[e] = weights[e]! * (one === UNLABELED || other === UNLABELED ? unknown : one === other ? 1 : far);
    }
  }
  return connected({ indptr, indices, weights: factors });
}

/** Scales the strongest edge of every row to 1, then takes the fuzzy union with the transpose. */
function connected({ indptr, indices, weights }: Edges): Edges {
  const n = indptr.length - 1;
  const scaled = Float64Array.from(weights);
  for (let row = 0; row < n; row++) {
    let strongest = 0;
    for (let e = indptr[row]!; e < indptr[row + 1]!; e++) strongest = Math.max(strongest, weights[e]!);
    if (strongest > 0) for (let e = indptr[row]!; e < indptr[row + 1]!; e++) scaled[e] = weights[e]! / strongest;
  }
  const joined = new Float32Array(weights.length);
  // columns ascend, so that the mirrors of the edges to a row come in the order of their heads
  const next = indptr.slice();
  for (let row = 0; row < n; row++) {
    for (let e = indptr[row]!; e < indptr[row + 1]!; e++) {
      const [one, mirrored] = [scaled[e]!, scaled[next[indices[e]!]!++]!];
      joined[e] = one + mirrored - one * mirrored;
    }
  }
  return { indptr, indices, weights: joined };
}
