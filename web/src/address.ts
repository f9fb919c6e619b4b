// The view in the address of the page: camera, colors, filters, selected rows, theme and map.
// A camera move replaces the present entry of the history; other changes add one, so that *back* returns to them.
import type { App } from "./app";
import type { ScaleKind } from "./paint";
import { search } from "./search";
import type { LegendOrder, Mode } from "./state";

const DELAY_MS = 250;
// A longer list of rows is left out of the address: some programs cut longer links.
const LONGEST_ROWS = 4000;
const ORDERS: LegendOrder[] = ["name", "size", "data"];

export function bindAddress(app: App): void {
  const { state } = app;
  let [timer, restoring] = [0, false];
  let written = discrete(app);
  const write = () => {
    if (restoring || app.part) return;
    const text = `#${described(app)}`;
    const now = discrete(app);
    try {
      if (now === written) history.replaceState(null, "", text);
      else history.pushState(null, "", text);
    } catch {
      // a browser may refuse to change the address of a file
    }
    written = now;
  };
  const later = () => {
    clearTimeout(timer);
    timer = window.setTimeout(write, DELAY_MS);
  };
  const restore = async () => {
    restoring = true;
    clearTimeout(timer);
    await apply(app, new URLSearchParams(location.hash.slice(1)));
    written = discrete(app);
    restoring = false;
  };
  addEventListener("popstate", () => void (app.part || restore()));
  if (location.hash.length > 1) void restore();
  app.view.onView(later);
  for (const event of ["paint", "selected", "shown", "theme"] as const) state.listen(event, write);
  app.onMaps(write);
}

/** Describes everything but the camera. */
function discrete(app: App): string {
  const { state } = app;
  const { column } = state.paint;
  const parts = new URLSearchParams();
  if ((column?.name ?? null) !== state.data.meta.color) parts.set("color", column?.name ?? "");
  if (column && state.mode) parts.set("as", state.mode === "scale" ? state.scaleKind : state.mode);
  if (state.query) parts.set("find", state.query);
  else if (state.selected.length) parts.set("rows", rowsText(state.selected) ?? "");
  if (state.ranges.length) parts.set("range", JSON.stringify(state.ranges.map((one) => one.map((end) => (Number.isFinite(end) || typeof end === "string" ? end : null)))));
  if (state.legendOrder !== "name") parts.set("order", state.legendOrder);
  if (state.hidden.length) parts.set("hide", JSON.stringify(state.hidden));
  if (app.shownMaps !== app.firstMaps) parts.set("map", app.shownMaps);
  if (app.themeChanged) parts.set("theme", state.themeName);
  return parts.toString();
}

function described(app: App): string {
  const { eye } = app.view;
  const camera = [...eye.center, eye.distance, ...(eye.deep ? eye.rotation : [])].map((one) => Number(one.toPrecision(5)));
  return [discrete(app), `at=${camera.join(",")}`].filter(Boolean).join("&");
}

async function apply(app: App, parts: URLSearchParams): Promise<void> {
  const { state } = app;
  const as = parts.get("as");
  const column = parts.has("color") ? parts.get("color") || null : state.data.meta.color;
  const mode: Mode | undefined = as === null ? undefined : as === "classes" ? "classes" : "scale";
  state.colorBy(column, mode, mode === "scale" ? (as as ScaleKind) : "linear");
  state.legendOrder = ORDERS.find((one) => one === parts.get("order")) ?? "name";
  state.hide(hiddenOf(parts.get("hide")), rangesOf(parts.get("range")));
  const query = parts.get("find") ?? "";
  state.select(query ? search(state, query.toLowerCase()) : rowsOf(parts.get("rows") ?? "", state.data.n), query);
  if (parts.has("theme")) state.setTheme(parts.get("theme") === "dark" ? "dark" : "light");
  await app.showMaps(parts.get("map") ?? app.firstMaps);
  const numbers = (parts.get("at") ?? "").split(",").map(Number);
  const [x, y, distance, ...turned] = numbers;
  if (numbers.length >= 3 && numbers.every(Number.isFinite) && distance! > 0) {
    app.view.eye.rotation = turned;
    await app.view.look([x!, y!], distance!, false);
  } else await app.view.fit(false);
}

function hiddenOf(text: string | null): [string, string[]][] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is [string, string[]] => Array.isArray(one) && typeof one[0] === "string" && Array.isArray(one[1])) : [];
  } catch {
    return [];
  }
}

function rangesOf(text: string | null): [string, number, number][] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    const ranges = Array.isArray(found) ? found.filter((one) => Array.isArray(one) && typeof one[0] === "string") : [];
    return ranges.map(([name, low, high]) => [name, typeof low === "number" ? low : -Infinity, typeof high === "number" ? high : Infinity]);
  } catch {
    return [];
  }
}

/** Writes rows as runs, each relative to the end of the one before, in base 36; null if the text would be too long. */
export function rowsText(rows: number[]): string | null {
  const sorted = [...rows].sort((a, b) => a - b);
  let [text, end] = ["", 0];
  for (let a = 0; a < sorted.length; ) {
    const begin = sorted[a]!;
    let length = 1;
    while (sorted[a + length] === begin + length) length++;
    text += `${text && "."}${(begin - end).toString(36)}${length > 1 ? `-${length.toString(36)}` : ""}`;
    if (text.length > LONGEST_ROWS) return null;
    end = begin + length;
    a += length;
  }
  return text;
}

/** Reads rows from the text of an address, without those that the map does not have. */
export function rowsOf(text: string, n: number): number[] {
  const rows: number[] = [];
  let end = 0;
  for (const run of text ? text.split(".") : []) {
    const [skip, length] = run.split("-").map((part) => parseInt(part, 36)) as [number, number | undefined];
    const begin = end + skip;
    end = begin + (length ?? 1);
    if (!(skip >= 0 && end > begin)) return rows;
    for (let row = begin; row < Math.min(end, n); row++) rows.push(row);
  }
  return rows;
}
