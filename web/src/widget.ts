// The page as a widget of a notebook (anywidget): the same elements in a shadow root, with data and selection from Python.
import mapStyle from "./map.css?inline";
import panelStyle from "./panel.css?inline";

import body from "../public/body.html?raw";
import { type App, mount } from "./app";
import { inflate, type Meta } from "./data";

interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  send(message: object): void;
  on(event: string, listener: (...told: never[]) => void): void;
  off(event: string, listener: (...told: never[]) => void): void;
}

/** Asks Python for the data, which are no part of the widget's state: a saved notebook would hold them twice. */
function sectionsOf(model: Model): Promise<Record<string, DataView>> {
  return new Promise((done) => {
    const hear = ({ type, names }: { type: string; names: string[] }, buffers: DataView[]) => {
      if (type !== "data") return;
      model.off("msg:custom", hear);
      done(Object.fromEntries(names.map((name, a) => [name, buffers[a]!])));
    };
    model.on("msg:custom", hear);
    model.send({ type: "data" });
  });
}

async function render({ model, el: host }: { model: Model; el: HTMLElement }): Promise<() => void> {
  const frame = document.createElement("div");
  frame.style.cssText = `height:${Number(model.get("height"))}px;border:1px solid #8884;border-radius:8px;overflow:hidden`;
  host.append(frame);
  const root = frame.attachShadow({ mode: "open" });
  root.innerHTML = `<style>${mapStyle}${panelStyle}</style>${body}`;
  // Keys of the notebook must not act while the map is used. JupyterLab listens after the map, or before everything else
  // and then looks for an attribute. Keys with Ctrl or Cmd, such as saving, still belong to the notebook.
  const guard = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey) delete frame.dataset["lmSuppressShortcuts"];
    else frame.dataset["lmSuppressShortcuts"] = "true";
  };
  window.addEventListener("keydown", guard, { capture: true });
  frame.addEventListener("keydown", (event) => event.ctrlKey || event.metaKey || event.stopPropagation());
  root.getElementById("busy-text")!.textContent = "Waiting for Python; without a kernel, run the cell again";
  const sections = await sectionsOf(model);
  const section = async (name: string) => {
    const content = sections[name];
    return content ? inflate(new Uint8Array(content.buffer, content.byteOffset, content.byteLength).slice()) : null;
  };
  const app = await mount(root, { meta: JSON.parse(String(model.get("_meta"))) as Meta, section });
  const off = link(app, model);
  frame.dataset["ready"] = "true";
  Object.assign(frame, { vicinalApp: app });
  return () => {
    off();
    window.removeEventListener("keydown", guard, { capture: true });
    frame.remove();
  };
}

/** Keeps selection and colors equal on both sides. */
function link({ state, panes }: App, model: Model): () => void {
  let hearing = false;
  const tell = (name: string, value: unknown) => {
    if (hearing) return;
    model.set(name, value);
    model.save_changes();
  };
  const hear = (act: () => void) => () => {
    hearing = true;
    try {
      act();
    } finally {
      hearing = false;
    }
  };
  const select = () => {
    const rows = model.get("_selected") as number[];
    if (JSON.stringify(rows) !== JSON.stringify(ordered(state.selected))) state.select(rows);
  };
  const color = () => {
    const name = model.get("color_by") as string | null;
    if (name !== (state.paint.column?.name ?? null)) state.colorBy(name);
  };
  const zoom = () => {
    const { rows } = model.get("_zoom") as { rows: number[] };
    for (const { view } of panes) void (rows?.length ? view.zoomTo(rows) : view.fit());
  };
  const heard: [string, () => void][] = [
    ["change:_selected", hear(select)],
    ["change:color_by", hear(color)],
    ["change:_zoom", hear(zoom)],
  ];
  for (const [event, act] of heard) model.on(event, act);
  hear(select)();
  hear(color)();
  state.listen("selected", () => tell("_selected", ordered(state.selected)));
  state.listen("paint", () => tell("color_by", state.paint.column?.name ?? null));
  return () => {
    for (const [event, act] of heard) model.off(event, act);
  };
}

function ordered(rows: number[]): number[] {
  return [...rows].sort((a, b) => a - b);
}

export default { render };
