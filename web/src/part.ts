// Shows some rows of a map as a map of their own, and all of them again.
import { ClassColumn, type Codes, type Column, type Numbers, resized, RowNumbers, TextColumn, Texts, ValueColumn } from "./columns";
import type { MapData, Meta, Places } from "./data";
import type { State } from "./state";

/** The content of a map: everything that changes when other rows are shown. */
export interface Content {
  meta: Meta;
  columns: Column[];
  ids: Texts | RowNumbers;
  image: MapData["image"];
  neighbors: MapData["neighbors"];
  exact: MapData["exact"];
  places: Omit<Places, "name">;
}

/** Returns what a map shows now. */
export function contentOf(data: MapData): Content {
  const { meta, columns, ids, image, neighbors, exact } = data;
  const { x, y, z } = data.maps[0]!;
  return { meta, columns, ids, image, neighbors, exact, places: { x, y, z } };
}

/** Returns the content of some rows; the colors of classes stay. */
export function contentAmong(whole: Content, rows: Int32Array): Content {
  const { meta, columns, ids, image, neighbors, places } = whole;
  const number = new Map(Array.from(rows, (row, a) => [row, a] as const));
  const near = neighbors && (async (row: number) => (await neighbors(rows[row]!)).flatMap((other) => number.get(other) ?? []));
  return {
    // names of clusters stand for areas of the whole map
    meta: { ...meta, n: rows.length, clusters: [] },
    columns: columns.map((column) => columnAmong(column, rows)),
    ids: textsAmong((row) => ids.at(row), rows),
    image: image && ((row) => image(rows[row]!)),
    neighbors: near,
    exact: null,
    places: { x: taken(places.x, rows), y: taken(places.y, rows), z: places.z && taken(places.z, rows) },
  };
}

/** Returns a content with new rows after the others: of a class of their own, and without other data. */
export function contentWith(whole: Content, places: Content["places"], fresh: number, name: string): Content {
  const { meta, columns, ids, image } = whole;
  const [known, n] = [meta.n, meta.n + fresh];
  const empty = meta.images && new ImageData(meta.images.width, meta.images.height);
  const texts = (at: (row: number) => string, more: (row: number) => string) =>
    new Texts(Array.from({ length: n }, (_, row) => `${row < known ? at(row) : more(row - known)}\u001e`).join(""), n);
  const longer = columns.map((column) => {
    if (column instanceof TextColumn) return new TextColumn(column.name, texts((row) => column.texts.at(row), () => ""));
    if (column instanceof ValueColumn) {
      const values = resized(column.values, n).fill(NaN, known);
      return new ValueColumn(column.name, values, column.low, column.high, column.missing + fresh);
    }
    // unlabeled rows have the code after the last class, which is now that of the new rows
    const classes = column.names.length;
    const codes = Uint16Array.from({ length: n }, (_, row) => (row >= known ? classes : column.codes[row]! + Number(column.codes[row] === classes)));
    return new ClassColumn(column.name, [...column.names, name], codes, column.missing, column.colors);
  });
  const table = longer.some(({ kind }) => kind === "classes") ? longer : [...longer, new ClassColumn("rows", ["known rows", name], Uint8Array.from({ length: n }, (_, row) => Number(row >= known)), 0, [])];
  return {
    meta: { ...meta, n },
    columns: table,
    ids: texts((row) => ids.at(row), (row) => `${name} ${row + 1}`),
    image: image && (async (row) => (row < known ? image(row) : empty!)),
    neighbors: null,
    exact: null,
    places,
  };
}

function columnAmong(column: Column, rows: Int32Array): Column {
  if (column instanceof ClassColumn) {
    const codes = taken(column.codes, rows);
    return new ClassColumn(column.name, column.names, codes, counted(codes, (code) => code === column.names.length), column.colors);
  }
  if (column instanceof ValueColumn) {
    const values = taken(column.values, rows);
    return new ValueColumn(column.name, values, column.low, column.high, counted(values, Number.isNaN));
  }
  return new TextColumn(column.name, textsAmong((row) => column.texts.at(row), rows));
}

function counted(array: Codes | Numbers, is: (value: number) => boolean): number {
  let sum = 0;
  for (const value of array) if (is(value)) sum++;
  return sum;
}

function textsAmong(at: (row: number) => string, rows: Int32Array): Texts {
  const texts = Array.from(rows, (row) => `${at(row)}\u001e`);
  return new Texts(texts.join(""), rows.length);
}

export function taken<T extends Float32Array | Float64Array | Uint8Array | Uint16Array>(array: T, rows: Int32Array): T {
  const some = new (array.constructor as new (n: number) => T)(rows.length);
  rows.forEach((row, a) => (some[a] = array[row]!));
  return some;
}

/** Shows a content instead of the present one. */
export function show(state: State, { places, meta, ...content }: Content): void {
  const { data } = state;
  state.select([]);
  state.hover(-1);
  Object.assign(data.maps[0]!, places);
  Object.assign(data, content, { meta, n: meta.n });
  state.takeRows();
}
