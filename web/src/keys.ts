// Keyboard control of everything that the pointer can do, and the list of keys.
import type { App } from "./app";
import { el } from "./element";

const STEP = 0.12;

interface Key {
  keys: string[];
  text: string;
  act: (app: App) => void;
  /** Only while the map has the focus. */
  onMap?: boolean;
}

const KEYS: Key[] = [
  { keys: ["?"], text: "Show or hide this list", act: (app) => app.help() },
  { keys: ["/"], text: "Search", act: (app) => app.dom.get("query").focus() },
  { keys: ["+", "="], text: "Zoom in", act: (app) => void app.view.zoom(1.6) },
  { keys: ["-"], text: "Zoom out", act: (app) => void app.view.zoom(1 / 1.6) },
  { keys: ["0"], text: "Show everything", act: (app) => app.fit() },
  { keys: ["ArrowLeft"], text: "Move left", act: (app) => app.pan(-STEP, 0), onMap: true },
  { keys: ["ArrowRight"], text: "Move right", act: (app) => app.pan(STEP, 0), onMap: true },
  { keys: ["ArrowUp"], text: "Move up", act: (app) => app.pan(0, STEP), onMap: true },
  { keys: ["ArrowDown"], text: "Move down", act: (app) => app.pan(0, -STEP), onMap: true },
  { keys: ["Enter"], text: "Inspect the point in the middle", act: (app) => app.inspect(), onMap: true },
  { keys: ["l"], text: "Draw a lasso", act: (app) => app.lasso() },
  { keys: ["z"], text: "Zoom to the selection", act: (app) => app.zoomToSelection() },
  { keys: ["t"], text: "Table of the selection", act: (app) => app.table() },
  { keys: ["b"], text: "Color by the next column", act: (app) => app.nextColumn() },
  { keys: ["a"], text: "Show all classes", act: (app) => app.state.showAll() },
  { keys: ["n"], text: "Names on the map", act: (app) => app.showNames() },
  { keys: ["k"], text: "Neighbors in the data", act: (app) => app.showNearest() },
  { keys: ["c"], text: "Contours of the density", act: (app) => app.showDensity() },
  { keys: ["m"], text: "Next map, or side by side", act: (app) => app.nextMap() },
  { keys: ["["], text: "Smaller points", act: (app) => app.resizePoints(0.8) },
  { keys: ["]"], text: "Larger points", act: (app) => app.resizePoints(1.25) },
  { keys: ["s"], text: "Save a picture", act: (app) => app.savePicture() },
  { keys: ["d"], text: "Dark or light", act: (app) => app.theme() },
  { keys: ["p"], text: "Show or hide the panel", act: (app) => app.panel() },
  { keys: ["Escape"], text: "Clear the selection", act: (app) => app.escape() },
];

export function bindKeys(app: App): void {
  const byKey = new Map(KEYS.flatMap((one) => one.keys.map((key) => [key, one] as const)));
  app.dom.page.tabIndex = -1;
  const listen = (event: KeyboardEvent) => {
    const [target] = event.composedPath() as HTMLElement[];
    const typing = target?.matches?.("input, select, textarea");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || app.dom.page.querySelector("dialog[open]:not(#help-dialog)")) return;
    const key = byKey.get(event.key.length === 1 ? event.key.toLowerCase() : event.key);
    if (!key || (key.onMap && !target?.matches?.(".map"))) return;
    event.preventDefault();
    key.act(app);
  };
  // a widget shares its document with others, so that it listens only while it has the focus
  const scope: Document | HTMLElement = app.dom.root instanceof Document ? app.dom.root : app.dom.page;
  (scope as HTMLElement).addEventListener("keydown", listen);
}

export function keyList(several: boolean, neighbors: boolean): HTMLElement {
  const names: Record<string, string> = { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Escape: "Esc" };
  // it scrolls on a small screen, also by keys
  const list = el("dl", { className: "keys", tabIndex: 0 });
  for (const { keys, text } of KEYS) {
    if ((keys[0] === "m" && !several) || (keys[0] === "k" && !neighbors)) continue;
    const shown = keys.slice(0, 1).map((key) => el("kbd", { textContent: names[key] ?? (key.length === 1 ? key.toUpperCase() : key) }));
    list.append(el("dt", {}, ...shown), el("dd", { textContent: text }));
  }
  for (const [key, text] of [
    ["Shift + drag", "Draw around points"],
    ["Ctrl, Alt", "Add to the selection, remove from it"],
    ["Two fingers", "Zoom and move on a touch screen"],
  ] as const) {
    list.append(el("dt", {}, el("kbd", { textContent: key })), el("dd", { textContent: text }));
  }
  return list;
}
