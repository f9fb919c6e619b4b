// The selected rows as a table, in a dialog: page by page, sorted by a click on a column, copied and downloaded.
import { thumbnail, title } from "./card";
import { ValueColumn } from "./columns";
import type { MapData } from "./data";
import { count, type Dom, download, el, plural, shortest } from "./element";
import type { State } from "./state";

const LISTED = 100;

export function openTable(dom: Dom, state: State, rows: number[], point: (row: number) => void): void {
  const dialog = dom.get<HTMLDialogElement>("table-dialog");
  const { data } = state;
  const body = el("tbody");
  let [sortedBy, direction, begin] = [-1, 1, 0];
  const headings = ["id", ...data.columns.map(({ name }) => name)];
  const head = el("tr");
  if (data.image) head.append(el("th", { scope: "col", className: "picture", textContent: "picture" }));
  const skipped = head.childElementCount;
  const scroll = el("div", { className: "scroll", tabIndex: 0 }, el("table", {}, el("thead", {}, head), body));
  const shown = el("span", { id: "table-page" });
  const back = el("button", { textContent: "‹", id: "table-back", title: "Previous rows" });
  const next = el("button", { textContent: "›", id: "table-next", title: "Next rows" });
  const turn = (to: number) => {
    begin = to;
    fill();
    scroll.scrollTop = 0;
  };
  back.onclick = () => turn(begin - LISTED);
  next.onclick = () => turn(begin + LISTED);
  const fill = () => {
    body.replaceChildren(...ordered(data, rows, sortedBy, direction).slice(begin, begin + LISTED).map((row) => line(data, row, point)));
    shown.textContent = `${count(begin + 1)} to ${count(Math.min(rows.length, begin + LISTED))} of ${count(rows.length)}`;
    [back.disabled, next.disabled] = [begin === 0, begin + LISTED >= rows.length];
    [...head.children].slice(skipped).forEach((cell, a) => cell.setAttribute("aria-sort", a !== sortedBy + 1 ? "none" : direction > 0 ? "ascending" : "descending"));
  };
  headings.forEach((name, a) => {
    const button = el("button", { textContent: name, title: `Sort by ${name}` });
    button.onclick = () => {
      direction = sortedBy === a - 1 ? -direction : 1;
      sortedBy = a - 1;
      turn(0);
    };
    const cell = el("th", { scope: "col", className: data.columns[a - 1] instanceof ValueColumn ? "number" : "" }, button);
    head.append(cell);
  });
  const copy = el("button", { textContent: "Copy", id: "copy-table" });
  copy.onclick = async () => {
    await navigator.clipboard.writeText(asText(data, rows, "\t"));
    copy.textContent = "Copied";
  };
  const save = el("button", { className: "primary", textContent: "Download CSV", id: "download-table" });
  save.onclick = () => download("rows.csv", new Blob([asText(data, rows, ",")], { type: "text/csv" }));
  const pages = el("span", { className: "pages", hidden: rows.length <= LISTED }, back, shown, next);
  const close = el("button", { textContent: "Close", autofocus: true, onclick: () => dialog.close() });
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Selected rows");
  dialog.replaceChildren(el("header", {}, el("h2", { textContent: "Selected rows" }), el("small", { textContent: plural(rows.length, "row") })), scroll, el("div", { className: "actions" }, pages, save, copy, close));
  fill();
  if (!dialog.open) dialog.showModal();
}

function line(data: MapData, row: number, point: (row: number) => void): HTMLElement {
  const cells = data.columns.map((column) => el("td", { textContent: column.text(row), className: column instanceof ValueColumn ? "number" : "" }));
  const picture = data.image ? [el("td", { className: "picture" }, thumbnail(data, row, 28))] : [];
  const item = el("tr", {}, ...picture, el("th", { scope: "row", textContent: title(data, row) }), ...cells);
  item.onmouseenter = () => point(row);
  return item;
}

function ordered(data: MapData, rows: number[], by: number, direction: number): number[] {
  if (by < -1 || (by === -1 && direction === 1)) return rows;
  const column = data.columns[by];
  if (column instanceof ValueColumn) {
    const { values } = column;
    // missing numbers come last in both directions
    return [...rows].sort((a, b) => Number(Number.isNaN(values[a]!)) - Number(Number.isNaN(values[b]!)) || direction * (values[a]! - values[b]!));
  }
  const text = (row: number) => (column ? column.text(row) : data.ids.at(row));
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  return [...rows].sort((a, b) => direction * compare(text(a), text(b)));
}

/** Returns a text that no spreadsheet takes for a formula: it then starts with an apostrophe. Numbers stay. */
function inert(text: string): string {
  return /^[=+\-@\t\r\n]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
}

/** Returns rows with all columns as text; missing entries are empty. */
export function asText(data: MapData, rows: number[], separator: string): string {
  const quoted = (cell: string) => {
    const text = inert(cell);
    return /["\n\r]/.test(text) || text.includes(separator) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const head = ["id", ...data.columns.map(({ name }) => name), "x", "y"];
  const lines = rows.map((row) => {
    const cells = data.columns.map((column) => (column instanceof ValueColumn ? (Number.isNaN(column.values[row]!) ? "" : String(column.number(row))) : column.text(row)));
    return [data.ids.at(row), ...cells, ...original(data, row)].map(quoted).join(separator);
  });
  return `${[head.map(quoted).join(separator), ...lines].join("\n")}\n`;
}

/** Returns the position of a row in the coordinates of its own map. */
function original(data: MapData, row: number): string[] {
  if (data.exact) return [data.exact.x, data.exact.y].map((axis) => String(shortest(axis[row]!)));
  const box = data.meta.maps[0]!.box;
  const width = box.length / 2;
  const extents = Array.from({ length: width }, (_, a) => box[width + a]! - box[a]!);
  const longest = Math.max(...extents) || 1;
  return [data.x, data.y].map((axis, a) => String(Number(((axis[row]! * longest) / 2 + (box[a]! + box[width + a]!) / 2).toPrecision(7))));
}
