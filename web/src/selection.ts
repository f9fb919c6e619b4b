// The selected rows: their number, classes, some pictures, and a download of their ids.
import { thumbnail, title } from "./card";
import { byId, count, el, plural } from "./element";
import { heading } from "./legend";
import { tally, type State } from "./state";

const CLASSES = 8;
const PICTURES = 24;

export interface SelectionActions {
  zoom: () => void;
  clear: () => void;
  all: () => void;
  point: (row: number) => void;
}

export function buildSelection(state: State, actions: SelectionActions): void {
  const section = byId("selection");
  const update = () => section.replaceChildren(...(state.selected.length ? chosen(state, actions) : nothing(actions)));
  state.listen("selected", update);
  state.listen("theme", update);
  update();
}

/** Returns the ids of the selected rows, in the order of the data. */
export function selectedIds(state: State): string[] {
  return [...state.selected].sort((a, b) => a - b).map((row) => state.data.ids.at(row));
}

function nothing(actions: SelectionActions): HTMLElement[] {
  const all = el("button", { className: "link", textContent: "Select all shown", id: "select-shown" });
  all.onclick = actions.all;
  const title = heading("Selection");
  title.append(all);
  const hint = el("p", { className: "hint" });
  hint.append("Hold ", el("kbd", { textContent: "Shift" }), " and drag, or press ", el("kbd", { textContent: "L" }), ", to draw around points.");
  return [title, hint];
}

function chosen(state: State, actions: SelectionActions): HTMLElement[] {
  const rows = state.selected;
  const clear = el("button", { className: "link", textContent: "Clear", title: "Clear (Esc)", id: "clear" });
  clear.onclick = actions.clear;
  const top = heading("Selection");
  top.append(clear);
  const share = (100 * rows.length) / state.data.n;
  const size = el("p", { className: "size" }, el("strong", { id: "selected-count", textContent: count(rows.length) }));
  size.append(rows.length === 1 ? " point" : ` points · ${share < 0.1 ? "< 0.1" : share.toFixed(1)} %`);
  const parts = [top, size];
  if (state.names.length) parts.push(breakdown(state, rows));
  if (state.data.image) parts.push(pictures(state, rows, actions));
  parts.push(buttons(state, actions));
  return parts;
}

function breakdown(state: State, rows: number[]): HTMLElement {
  const counts = [...tally(state.data.codes, state.names.length, rows)].map((n, code) => ({ n, code }));
  const present = counts.filter(({ n }) => n > 0).sort((a, b) => b.n - a.n);
  const list = el("ul", { className: "breakdown", id: "breakdown" });
  for (const { n, code } of present.slice(0, CLASSES)) {
    const bar = el("span", { className: "share", style: `width:${(100 * n) / present[0]!.n}%;background:${state.colour(code)}` });
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

function buttons(state: State, actions: SelectionActions): HTMLElement {
  const download = el("button", { className: "primary", textContent: "Download ids", id: "download" });
  download.onclick = () => {
    const url = URL.createObjectURL(new Blob([`${selectedIds(state).join("\n")}\n`], { type: "text/plain" }));
    el("a", { href: url, download: "ids.txt" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
  const zoom = el("button", { textContent: "Zoom to", title: "Zoom to the selection (Z)", id: "zoom-to" });
  zoom.onclick = actions.zoom;
  const copy = el("button", { textContent: "Copy", id: "copy" });
  copy.onclick = async () => {
    await navigator.clipboard.writeText(selectedIds(state).join("\n"));
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 1200);
  };
  return el("div", { className: "actions" }, download, copy, zoom);
}
