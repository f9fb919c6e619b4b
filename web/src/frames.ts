// Decode frames of a moving map; the encoder is src/vicinal/viewer/session.py.
import { inflate, type NewRows, type Places } from "./data";

const HEAD_BYTES = 40;
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
  z: Float32Array | null;
}

export class Decoder {
  private steps = new Uint16Array(0);

  async decode(message: ArrayBuffer): Promise<Frame | NewRows> {
    const head = new DataView(message, 0, HEAD_BYTES);
    const kind = head.getUint8(0);
    if (kind === ROWS) return newRows(message);
    const width = head.getUint8(1);
    const content = await inflate(message.slice(HEAD_BYTES));
    const shared = { run: head.getUint32(4, true), epoch: head.getUint32(8, true), epochs: head.getUint32(12, true), exact: kind === EXACT };
    if (kind === EXACT) {
      const joined = new Float32Array(content);
      const n = joined.length / width;
      const [x, y, z] = [0, 1, 2].map((a) => joined.slice(a * n, (a + 1) * n));
      return { ...shared, x: x!, y: y!, z: width > 2 ? z! : null };
    }
    const steps = new Uint16Array(content);
    const n = steps.length / width;
    if (kind === DELTA) {
      // new rows of this feed start at step 0
      const known = this.steps.length / width;
      for (let a = 0; a < width; a++) {
        for (let row = 0; row < known; row++) steps[a * n + row] = steps[a * n + row]! + this.steps[a * known + row]!;
      }
    }
    this.steps = steps;
    const [x, y, z] = [0, 1, 2].map((a) => {
      const [low, high] = [head.getFloat32(16 + 4 * a, true), head.getFloat32(28 + 4 * a, true)];
      return Float32Array.from({ length: a < width ? n : 0 }, (_, row) => low + (steps[a * n + row]! / 65535) * (high - low));
    });
    return { ...shared, x: x!, y: y!, z: width > 2 ? z! : null };
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

/** Converts positions to the page's square: the longest side of their box becomes 2. */
export function centered(frame: Frame, into: Places): void {
  const axes = ([["x", frame.x], ["y", frame.y], ["z", frame.z]] as const).filter(([, axis]) => axis !== null);
  const ends = axes.map(([, axis]) => axis!.reduce(([low, high], value) => [Math.min(low!, value), Math.max(high!, value)], [Infinity, -Infinity]));
  const longest = Math.max(...ends.map(([low, high]) => high! - low!)) || 1;
  axes.forEach(([name, axis], a) => {
    const [low, high] = ends[a] as [number, number];
    const out = into[name];
    if (out) for (let row = 0; row < axis!.length; row++) out[row] = ((axis![row]! - (low + high) / 2) * 2) / longest;
  });
}
