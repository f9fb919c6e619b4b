// New rows for the map, read from text, and the rows that travel with the page to compare them with. The encoder of these
// is src/vicinal/viewer/new_rows.py.
import type { Metric, Table } from "./core/options";
import type { Source } from "./data";

export interface RowsMeta {
  /** Columns of the data, and of what is kept of it. */
  columns: number;
  kept: number;
  names: string[] | null;
  metric: Metric;
  scale: number;
  components: boolean;
}

/** The rows of the fit as they are compared, and a function that prepares new ones alike. */
export interface KnownRows {
  rows: Table;
  prepare: (rows: Table) => Table;
}

export async function knownRows(meta: RowsMeta, source: Source): Promise<KnownRows> {
  const section = async (name: string) => (await source.section(name))!;
  const stored = new Uint16Array(await section("rows"));
  const data = Float32Array.from(stored, (bits) => fromHalf(bits) * meta.scale);
  const rows = { data, n: data.length / meta.kept, columns: meta.kept };
  const halves = (values: Float64Array | Float32Array) => Float32Array.from(values, (value) => rounded(value / meta.scale) * meta.scale);
  if (!meta.components) return { rows, prepare: (fresh) => ({ ...fresh, data: halves(fresh.data) }) };
  const [mean, axes] = [new Float32Array(await section("mean")), new Float32Array(await section("axes"))];
  const prepare = ({ data: given, n, columns }: Table): Table => {
    const scores = new Float64Array(n * meta.kept);
    for (let row = 0; row < n; row++) {
      for (let c = 0; c < columns; c++) {
        const apart = given[row * columns + c]! - mean[c]!;
        for (let a = 0; a < meta.kept; a++) scores[row * meta.kept + a]! += apart * axes[c * meta.kept + a]!;
      }
    }
    return { data: halves(scores), n, columns: meta.kept };
  };
  return { rows, prepare };
}

/** Returns the number of 16 bits: sign, five bits of exponent, ten of the mantissa. */
function fromHalf(bits: number): number {
  const [sign, exponent, mantissa] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  return sign * (exponent === 0 ? mantissa * 2 ** -24 : (1 + mantissa / 1024) * 2 ** (exponent - 15));
}

/** Rounds to the nearest float16, halves to the even one, as NumPy does; larger numbers become the largest. */
function rounded(value: number): number {
  const size = Math.abs(value);
  if (!(size > 0)) return 0;
  const step = 2 ** Math.max(-24, Math.floor(Math.log2(size)) - 10);
  const whole = size / step;
  const low = Math.floor(whole);
  const up = whole - low > 0.5 || (whole - low === 0.5 && low % 2 === 1);
  return Math.sign(value) * Math.min(65504, (low + Number(up)) * step);
}

/** Reads rows of numbers from text with commas, semicolons, tabs or spaces. Columns are found by name, or by their order. */
export function readRows(text: string, columns: number, names: string[] | null): Table {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  if (lines.length === 0) throw new Error("there are no rows");
  const mark = ["\t", ";", ","].find((one) => lines[0]!.includes(one)) ?? /\s+/;
  const cells = lines.map((line) => line.trim().split(mark).map((cell) => cell.trim().replace(/^"(.*)"$/, "$1")));
  const head = cells[0]!.some((cell) => Number.isNaN(Number(cell)) || cell === "") ? cells.shift()! : null;
  const order = head && names?.every((name) => head.includes(name)) ? names.map((name) => head.indexOf(name)) : null;
  const missing = head && names?.find((name) => !head.includes(name));
  if (missing && head.length !== columns) throw new Error(`there is no column ${missing}`);
  const data = new Float32Array(cells.length * columns);
  cells.forEach((line, row) => {
    const where = `row ${row + 1}`;
    if (!order && line.length !== columns) throw new Error(`${where} has ${line.length} columns, the map ${columns}`);
    for (let c = 0; c < columns; c++) {
      const cell = line[order ? order[c]! : c] ?? "";
      const value = cell === "" ? NaN : Number(cell);
      if (!Number.isFinite(value)) throw new Error(`${where} has "${cell}" where a number should be, in column ${names?.[c] ?? c + 1}`);
      data[row * columns + c] = value;
    }
  });
  return { data, n: cells.length, columns };
}
