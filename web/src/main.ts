// The page: reads its data, then connects map, legend, search, selection, card and keys.
import "./map.css";
import "./panel.css";

import { Card } from "./card";
import { readData, readMeta } from "./data";
import { byId, count, icon } from "./element";
import { bindKeys } from "./keys";
import { buildLegend, show } from "./legend";
import { Feed } from "./live";
import { Names } from "./names";
import { buildSearch } from "./search";
import { buildSelection, selectedIds } from "./selection";
import { State } from "./state";
import { View } from "./view";

async function main(): Promise<void> {
  const meta = readMeta();
  document.documentElement.dataset["theme"] = meta.theme === "dark" || (meta.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches) ? "dark" : "light";
  byId("title").textContent = meta.title;
  byId("count").textContent = meta.n ? `${count(meta.n)} points` : "";
  for (const button of document.querySelectorAll("#tools button")) button.append(icon(button.id));
  const data = await readData(meta);
  const state = new State(data);
  byId("busy-text").textContent = "Drawing";
  const view = new View(byId<HTMLCanvasElement>("map"), data, state.theme);
  const card = new Card(byId("card"), state, view);
  await view.draw();
  const names = new Names(byId("names"), state, view);
  const page = { state, view, card, names };
  connect(page);
  names.place();
  // a live page has nothing to show before its first frame
  byId("busy").hidden = meta.live === null;
  const feed = meta.live && new Feed(page, meta.live);
  Object.assign(window, { vicinalPage: { ...page, feed, selectedIds: () => selectedIds(state) } });
  document.documentElement.dataset["ready"] = "true";
}

export interface Page {
  state: State;
  view: View;
  card: Card;
  names: Names;
}

function connect(page: Page): void {
  const { state, view, card, names } = page;
  const point = (row: number) => {
    view.hover(row);
    card.show(row);
  };
  const select = (rows: number[]) => view.select(rows);
  const zoomToSelection = () => void view.zoomTo(state.selected);
  const tools = bindTools(page);
  view.on({
    over: (row) => card.show(row),
    out: () => card.hide(),
    select: (rows) => {
      state.selected = rows;
      state.changed("selected");
    },
    view: () => {
      card.place();
      names.place();
    },
    lassoEnd: () => tools.lasso(false),
  });
  buildLegend(state);
  buildSearch(state, {
    point,
    select,
    visit: (row) => {
      void view.zoomTo([row]).then(() => point(row));
    },
  });
  buildSelection(state, {
    zoom: zoomToSelection,
    clear: () => select([]),
    all: () => select(state.visibleRows() ?? Array.from({ length: state.data.n }, (_, row) => row)),
    point,
  });
  const showCount = () => {
    const visible = state.visibleCount();
    byId("count").textContent = visible === state.data.n ? `${count(visible)} points` : `${count(visible)} of ${count(state.data.n)} points shown`;
    byId("show-names").hidden = !names.any;
  };
  state.listen("shown", () => {
    void view.filter(state.visibleRows());
    showCount();
  });
  state.listen("rows", showCount);
  state.listen("theme", () => view.setTheme(state.theme));
  bindKeys(page, { ...tools, select, point, zoomToSelection, showAll: () => show(state, () => 1) });
  new ResizeObserver(() => {
    card.place();
    names.place();
  }).observe(byId("stage"));
}

function bindTools({ state, view, names }: Page) {
  let lassoOn = false;
  const lasso = (on: boolean = !lassoOn) => {
    lassoOn = on;
    view.setLasso(on);
    byId("lasso").setAttribute("aria-pressed", String(on));
    byId("map").classList.toggle("lasso", on);
  };
  const showNames = () => byId("show-names").setAttribute("aria-pressed", String(names.toggle()));
  const theme = () => state.setTheme(state.themeName === "dark" ? "light" : "dark");
  const panel = () => {
    const closed = document.body.classList.toggle("closed");
    byId("panel-toggle").setAttribute("aria-expanded", String(!closed));
  };
  byId("zoom-in").onclick = () => void view.zoom(1.6);
  byId("zoom-out").onclick = () => void view.zoom(1 / 1.6);
  byId("fit").onclick = () => void view.fit();
  byId("lasso").onclick = () => lasso();
  byId("show-names").onclick = showNames;
  byId("show-names").hidden = !names.any;
  byId("smaller").onclick = () => view.resizePoints(0.8);
  byId("larger").onclick = () => view.resizePoints(1.25);
  byId("theme").onclick = theme;
  byId("panel-toggle").onclick = panel;
  return { lasso, showNames, theme, panel };
}

void main().catch((error: unknown) => {
  byId("busy").hidden = false;
  byId("busy").classList.add("failed");
  byId("busy-text").textContent = `This page cannot be shown here: ${error instanceof Error ? error.message : String(error)}`;
  throw error;
});
