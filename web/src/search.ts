// Search in ids, texts and class names: a list of matches, which can also be selected.
import { thumbnail, title } from "./card";
import { byId, el, icon, plural } from "./element";
import type { State } from "./state";

const LISTED = 50;
const DELAY_MS = 120;

export interface SearchActions {
  point: (row: number) => void;
  visit: (row: number) => void;
  select: (rows: number[]) => void;
}

export function buildSearch(state: State, actions: SearchActions): void {
  const input = byId<HTMLInputElement>("query");
  const found = byId("found");
  document.querySelector(".search .glyph")!.append(icon("search"));
  let timer = 0;
  let matches: number[] = [];
  const update = () => {
    const word = input.value.trim().toLowerCase();
    matches = word ? search(state, word) : [];
    found.hidden = !word;
    found.replaceChildren(...(word ? results(state, matches, actions) : []));
  };
  input.oninput = () => {
    clearTimeout(timer);
    timer = window.setTimeout(update, DELAY_MS);
  };
  input.onkeydown = (event) => {
    if (event.key === "Enter") {
      clearTimeout(timer);
      update();
      if (matches.length) actions.select(matches);
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      found.querySelector<HTMLElement>("ul button")?.focus();
    } else if (event.key === "Escape") {
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

/** Returns the shown rows whose id, texts or class contain the word. */
function search(state: State, word: string): number[] {
  const { data } = state;
  const mask = new Uint8Array(data.n);
  data.ids.mark(word, mask);
  for (const { texts } of data.fields) texts.mark(word, mask);
  const classes = state.names.map((name) => Number(name.toLowerCase().includes(word)));
  const rows: number[] = [];
  for (let row = 0; row < data.n; row++) {
    const matched = mask[row] || (data.codes !== null && classes[data.codes[row]!]);
    if (matched && state.visible(row)) rows.push(row);
  }
  return rows;
}

function results(state: State, rows: number[], actions: SearchActions): HTMLElement[] {
  const { data } = state;
  const summary = el("p", { className: "summary" }, el("span", { textContent: rows.length ? plural(rows.length, "match", "matches") : "No match" }));
  if (rows.length === 0) return [summary];
  const all = el("button", { className: "link", textContent: "Select all", id: "select-matches" });
  all.onclick = () => actions.select(rows);
  summary.append(all);
  const list = el("ul", { className: "results" });
  for (const row of rows.slice(0, LISTED)) {
    const button = el("button", {});
    if (data.image) button.append(thumbnail(data, row, 20));
    else if (data.codes) button.append(el("span", { className: "swatch", style: `background:${state.colour(data.codes[row]!)}` }));
    button.append(el("span", { className: "name", textContent: title(data, row) }));
    const note = data.fields[0]?.texts.at(row) ?? (data.codes ? state.names[data.codes[row]!]! : "");
    button.append(el("small", { textContent: note }));
    button.onclick = () => actions.visit(row);
    button.onfocus = button.onmouseenter = () => actions.point(row);
    list.append(el("li", {}, button));
  }
  const parts: HTMLElement[] = [summary, list];
  if (rows.length > LISTED) parts.push(el("p", { className: "hint", textContent: `The first ${LISTED} are listed.` }));
  return parts;
}
