// Search in ids, texts and classes: matches are highlighted while typing, listed, and can be selected.
import { thumbnail, title } from "./card";
import { type Dom, el, icon, plural } from "./element";
import type { State } from "./state";

const LISTED = 50;
const DELAY_MS = 120;

export interface SearchActions {
  point: (row: number) => void;
  visit: (row: number) => void;
}

export function buildSearch(dom: Dom, state: State, actions: SearchActions): void {
  const input = dom.get<HTMLInputElement>("query");
  const found = dom.get("found");
  dom.page.querySelector(".search .glyph")!.append(icon("search"));
  let timer = 0;
  let matches: number[] = [];
  const update = () => {
    const word = input.value.trim().toLowerCase();
    matches = word ? search(state, word) : [];
    state.found = matches;
    state.changed("found");
    found.hidden = !word;
    found.replaceChildren(...(word ? results(state, matches, actions, () => select()) : []));
  };
  const select = () => {
    const query = input.value.trim();
    const rows = matches;
    state.found = [];
    state.changed("found");
    state.select(rows, query);
  };
  input.oninput = () => {
    clearTimeout(timer);
    timer = window.setTimeout(update, DELAY_MS);
  };
  input.onkeydown = (event) => {
    if (event.key === "Enter") {
      clearTimeout(timer);
      update();
      if (matches.length) select();
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      found.querySelector<HTMLElement>("ul button")?.focus();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      input.value = "";
      update();
      input.blur();
    }
  };
  found.onkeydown = (event) => {
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key] as
      | "nextElementSibling"
      | "previousElementSibling"
      | undefined;
    if (!step) return;
    event.preventDefault();
    const item = (event.target as HTMLElement).closest("li")?.[step];
    if (item) item.querySelector("button")!.focus();
    else if (event.key === "ArrowUp") input.focus();
  };
  state.listen("shown", () => input.value && update());
}

/** Returns the shown rows whose id, texts or classes contain the word. */
export function search(state: State, word: string): number[] {
  const { data } = state;
  const mask = new Uint8Array(data.n);
  data.ids.mark(word, mask);
  for (const column of data.columns) column.mark(word, mask);
  const rows: number[] = [];
  for (let row = 0; row < data.n; row++) if (mask[row] && state.visible(row)) rows.push(row);
  return rows;
}

function results(state: State, rows: number[], actions: SearchActions, select: () => void): HTMLElement[] {
  const { data } = state;
  const summary = el("p", { className: "summary" }, el("span", { textContent: rows.length ? plural(rows.length, "match", "matches") : "No match" }));
  if (rows.length === 0) return [summary];
  summary.append(el("button", { className: "link", textContent: "Select all", id: "select-matches", onclick: select }));
  const list = el("ul", { className: "results" });
  const noted = data.columns.find((one) => one.kind === "texts") ?? data.columns.find((one) => one.kind === "classes");
  for (const row of rows.slice(0, LISTED)) {
    const button = el("button", {});
    button.append(data.image ? thumbnail(data, row, 20) : el("span", { className: "swatch", style: `background:${state.colorOf(row)}` }));
    button.append(el("span", { className: "name", textContent: title(data, row) }), el("small", { textContent: noted?.text(row) ?? "" }));
    button.onclick = () => actions.visit(row);
    button.onfocus = button.onmouseenter = () => actions.point(row);
    list.append(el("li", {}, button));
  }
  const parts: HTMLElement[] = [summary, list];
  if (rows.length > LISTED) parts.push(el("p", { className: "hint", textContent: `The first ${LISTED} are listed.` }));
  return parts;
}
