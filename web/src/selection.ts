// The selected rows: how many, what sets them apart, some pictures, a table, and downloads.
import { rowsText } from "./address";
import { thumbnail, title } from "./card";
import { ClassColumn, ValueColumn } from "./columns";
import { count, type Dom, download, el, plural, short, svg } from "./element";
import { heading } from "./legend";
import { tally, type State } from "./state";
import { differences, histogram, type NumberDifference } from "./statistics";
import { asText, openTable } from "./table";

const CLASSES = 8;
const PICTURES = 24;
const DIFFERENCES = 5;
const HISTOGRAMS = 4;

export interface SelectionActions {
  zoom: () => void;
  all: () => void;
  point: (row: number) => void;
}

export function buildSelection(dom: Dom, state: State, actions: SelectionActions): void {
  const section = dom.get("selection");
  const update = () => section.replaceChildren(...(state.selected.length ? chosen(dom, state, actions) : nothing(actions)));
  for (const event of ["selected", "theme", "paint"] as const) state.listen(event, update);
  state.listen("selected", () => dom.say(state.selected.length ? `${plural(state.selected.length, "point")} selected` : ""));
  update();
}

/** Returns the ids of the selected rows, in the order of the data. */
export function selectedIds(state: State): string[] {
  return sorted(state).map((row) => state.data.ids.at(row));
}

function sorted(state: State): number[] {
  return [...state.selected].sort((a, b) => a - b);
}

function nothing(actions: SelectionActions): HTMLElement[] {
  const all = el("button", { className: "link", textContent: "Select all shown", id: "select-shown", onclick: actions.all });
  const title = heading("Selection");
  title.append(all);
  const hint = el("p", { className: "hint" });
  hint.append("Click a point. Hold ", el("kbd", { textContent: "Shift" }), " and drag, or press ", el("kbd", { textContent: "L" }), ", to draw around points.");
  return [title, hint];
}

function chosen(dom: Dom, state: State, actions: SelectionActions): HTMLElement[] {
  const rows = state.selected;
  const clear = el("button", { className: "link", textContent: "Clear", title: "Clear (Esc)", id: "clear", onclick: () => state.select([]) });
  const top = heading("Selection");
  top.append(clear);
  const share = (100 * rows.length) / state.data.n;
  const size = el("p", { className: "size" }, el("strong", { id: "selected-count", textContent: count(rows.length) }));
  size.append(rows.length === 1 ? " point" : ` points · ${share < 0.1 ? "< 0.1" : share.toFixed(1)} %`);
  const parts = [top, size];
  if (state.paint.classes) parts.push(breakdown(state, rows));
  if (rows.length > 1 && rows.length < state.data.n) parts.push(...apart(state, rows));
  if (state.data.image) parts.push(pictures(state, rows, actions));
  if (rows.length === 1 && state.data.neighbors) parts.push(neighbors(state, rows[0]!, actions));
  parts.push(buttons(dom, state, actions));
  if (!state.query && rows.length && rowsText(rows) === null) parts.push(el("p", { className: "hint small", textContent: "This selection is too scattered for a link." }));
  return parts;
}

function breakdown(state: State, rows: number[]): HTMLElement {
  const counts = [...tally(state.paint.codes, state.names.length, rows)].map((n, code) => ({ n, code }));
  const present = counts.filter(({ n }) => n > 0).sort((a, b) => b.n - a.n);
  const list = el("ul", { className: "breakdown", id: "breakdown" });
  for (const { n, code } of present.slice(0, CLASSES)) {
    const bar = el("span", { className: "share", style: `width:${(100 * n) / present[0]!.n}%;background:${state.color(code)}` });
    list.append(
      el("li", { title: state.names[code]! }, el("span", { className: "name", textContent: state.names[code]! }), el("span", { className: "n", textContent: count(n) }), bar),
    );
  }
  const rest = present.slice(CLASSES);
  if (rest.length) {
    const n = rest.reduce((sum, one) => sum + one.n, 0);
    list.append(el("li", { className: "rest", textContent: `${plural(n, "more point")} of ${plural(rest.length, "class", "classes")}` }));
  }
  return list;
}

/** Returns what sets the selected rows apart: columns by effect size, and histograms of numbers against the rest. */
function apart(state: State, rows: number[]): HTMLElement[] {
  const mask = new Uint8Array(state.data.n);
  for (const row of rows) mask[row] = 1;
  const found = differences(state.data.columns.filter((one) => one !== state.paint.column || one instanceof ValueColumn), mask);
  if (found.length === 0) return [];
  const list = el("ul", { className: "apart", id: "apart" });
  for (const one of found.slice(0, DIFFERENCES)) {
    const numeric = one.column instanceof ValueColumn;
    const what = numeric ? one.column.name : `${one.column.name}: ${(one as { name: string }).name}`;
    const number = one as NumberDifference;
    const classes = one as { share: number; shareOfRest: number };
    const note = numeric ? `${short(number.mean)} vs ${short(number.meanOfRest)}` : `${percent(classes.share)} vs ${percent(classes.shareOfRest)}`;
    const item = el("li", {}, el("button", { className: "name", textContent: what, title: `Color by ${one.column.name}`, onclick: () => state.colorBy(one.column.name) }));
    item.append(el("span", { className: "n", textContent: note }));
    if (numeric && list.querySelectorAll("svg").length < HISTOGRAMS) item.append(drawn(state, one.column as ValueColumn, mask));
    list.append(item);
  }
  const kind = found.some(({ column }) => column instanceof ClassColumn) ? "shares" : "means";
  return [el("h3", { textContent: "Differs from the rest in" }), list, el("p", { className: "hint small", textContent: `${kind === "means" ? "Means" : "Means or shares"}: selected vs rest, by effect size.` })];
}

/** Lists the nearest rows in the data of a single selected row. */
function neighbors(state: State, row: number, actions: SelectionActions): HTMLElement {
  const list = el("ul", { className: "results", id: "nearest" });
  const all = el("button", { className: "link", textContent: "Select them", id: "select-nearest" });
  const head = el("h3", { textContent: "Nearest in the data" });
  head.append(all);
  void state.data.neighbors!(row).then((rows) => {
    all.hidden = rows.length === 0;
    all.onclick = () => state.select([row, ...rows]);
    list.replaceChildren(...rows.map((one) => {
      const picture = state.data.image ? thumbnail(state.data, one, 20) : el("span", { className: "swatch", style: `background:${state.colorOf(one)}` });
      const label = state.paint.classes ? state.names[state.paint.codes[one]!]! : "";
      const button = el("button", { onclick: () => state.select([one]) }, picture, el("span", { className: "name", textContent: title(state.data, one) }), el("small", { textContent: label }));
      button.onfocus = button.onmouseenter = () => actions.point(one);
      return el("li", {}, button);
    }));
  });
  return el("div", {}, head, list);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** Draws a histogram: bars for the selected rows, a line for the rest. */
function drawn(state: State, column: ValueColumn, mask: Uint8Array): SVGSVGElement {
  const { selected, rest, low, high } = histogram(column, mask);
  const most = Math.max(...selected, ...rest) || 1;
  const [width, height] = [240, 34];
  const step = width / selected.length;
  const top = (share: number) => height - (share / most) * (height - 2);
  const bars = selected.map((share, a) => svg("rect", { x: (a * step + 0.5).toFixed(1), y: top(share).toFixed(1), width: (step - 1).toFixed(1), height: (height - top(share)).toFixed(1) }));
  const line = rest.map((share, a) => `${a ? "L" : "M"}${(a * step).toFixed(1)} ${top(share).toFixed(1)}h${step.toFixed(1)}`).join("");
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "histogram", role: "img", preserveAspectRatio: "none" });
  picture.setAttribute("aria-label", `${column.name} from ${short(low)} to ${short(high)}: selected rows as bars, the rest as a line`);
  picture.append(...bars, svg("path", { d: line }));
  picture.style.color = state.themeName === "dark" ? "#6db3f2" : "#0b63a5";
  return picture;
}

/** Chooses rows spread evenly over the selection, so that the first class does not fill the sheet. */
function pictures(state: State, rows: number[], actions: SelectionActions): HTMLElement {
  const sheet = el("div", { className: "sheet" });
  const step = Math.max(1, rows.length / PICTURES);
  for (let a = 0; a < Math.min(PICTURES, rows.length); a++) {
    const row = rows[Math.floor(a * step)]!;
    const picture = thumbnail(state.data, row, 26);
    picture.title = title(state.data, row);
    picture.onmouseenter = () => actions.point(row);
    sheet.append(picture);
  }
  return sheet;
}

function buttons(dom: Dom, state: State, actions: SelectionActions): HTMLElement {
  const save = el("button", { className: "primary", textContent: "Download ids", id: "download" });
  save.onclick = () => download("ids.txt", new Blob([`${selectedIds(state).join("\n")}\n`], { type: "text/plain" }));
  const copy = el("button", { textContent: "Copy", id: "copy", title: "Copy the ids" });
  copy.onclick = async () => {
    await navigator.clipboard.writeText(selectedIds(state).join("\n"));
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 1200);
  };
  const zoom = el("button", { textContent: "Zoom", title: "Zoom to the selection (Z)", id: "zoom-to", onclick: actions.zoom });
  const table = el("button", { textContent: "Table", title: "Show the rows in a table (T)", id: "table", onclick: () => openTable(dom, state, sorted(state), actions.point) });
  const rows = el("button", { textContent: "CSV", title: "Download the rows with all columns", id: "download-rows" });
  rows.onclick = () => download("rows.csv", new Blob([asText(state.data, sorted(state), ",")], { type: "text/csv" }));
  return el("div", { className: "actions" }, save, copy, zoom, table, rows);
}
