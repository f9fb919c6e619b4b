// Decode frames of a moving map; the encoder is src/vicinal/viewer/frame_encoding.py.
import type { NewRows } from "./data";

const HEAD_BYTES = 32;
const DELTA = 1;
const EXACT = 2;
const ROWS = 3;

export interface Frame {
  run: number;
  epoch: number;
  epochs: number;
  exact: boolean;
  x: Float32Array;
  y: Float32Array;
}

export class Decoder {
  private steps = new Uint16Array(0);

  async decode(message: ArrayBuffer): Promise<Frame | NewRows> {
    const head = new DataView(message, 0, HEAD_BYTES);
    const kind = head.getUint8(0);
    if (kind === ROWS) return newRows(message);
    const content = await inflate(message.slice(HEAD_BYTES));
    const shared = { run: head.getUint32(4, true), epoch: head.getUint32(8, true), epochs: head.getUint32(12, true), exact: kind === EXACT };
    if (kind === EXACT) {
      const places = new Float32Array(content);
      return { ...shared, x: places.slice(0, places.length / 2), y: places.slice(places.length / 2) };
    }
    const steps = new Uint16Array(content);
    const n = steps.length / 2;
    if (kind === DELTA) {
      // new rows of this feed start at step 0
      const known = this.steps.length / 2;
      for (let row = 0; row < known; row++) {
        steps[row] = steps[row]! + this.steps[row]!;
        steps[n + row] = steps[n + row]! + this.steps[known + row]!;
      }
    }
    this.steps = steps;
    const [left, bottom, right, top] = [16, 20, 24, 28].map((at) => head.getFloat32(at, true)) as [number, number, number, number];
    const axis = (from: number, low: number, high: number) => Float32Array.from({ length: n }, (_, row) => low + (steps[from + row]! / 65535) * (high - low));
    return { ...shared, x: axis(0, left, right), y: axis(n, bottom, top) };
  }
}

async function newRows(message: ArrayBuffer): Promise<NewRows> {
  const length = new DataView(message).getUint32(HEAD_BYTES, true);
  let at = HEAD_BYTES + 4 + length;
  const { begin, meta, sections: lengths } = JSON.parse(new TextDecoder().decode(new Uint8Array(message, HEAD_BYTES + 4, length))) as Omit<NewRows, "sections"> & {
    sections: Record<string, number>;
  };
  const sections: NewRows["sections"] = {};
  for (const [name, size] of Object.entries(lengths)) {
    sections[name] = await inflate(message.slice(at, at + size));
    at += size;
  }
  return { begin, meta, sections };
}

async function inflate(bytes: ArrayBuffer): Promise<ArrayBuffer> {
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}

/** Converts positions to the page's square: the longer side of their box becomes 2. */
export function centred(x: Float32Array, y: Float32Array, intoX: Float32Array, intoY: Float32Array): void {
  const ends = [x, y].map((axis) => axis.reduce(([low, high], value) => [Math.min(low!, value), Math.max(high!, value)], [Infinity, -Infinity]));
  const longest = Math.max(...ends.map(([low, high]) => high! - low!)) || 1;
  for (const [axis, into, [low, high]] of [
    [x, intoX, ends[0]!],
    [y, intoY, ends[1]!],
  ] as const) {
    for (let row = 0; row < axis.length; row++) into[row] = ((axis[row]! - (low! + high!) / 2) * 2) / longest;
  }
}
