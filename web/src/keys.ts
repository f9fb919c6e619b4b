// Keyboard control of everything that the pointer can do.
import { byId } from "./element";
import type { Page } from "./main";

export interface KeyActions {
  lasso: (on?: boolean) => void;
  showNames: () => void;
  theme: () => void;
  panel: () => void;
  select: (rows: number[]) => void;
  point: (row: number) => void;
  zoomToSelection: () => void;
  showAll: () => void;
}

const STEP = 0.12;

export function bindKeys(page: Page, actions: KeyActions): void {
  const { state, view, card } = page;
  const canvas = byId<HTMLCanvasElement>("map");
  const anywhere: Record<string, () => void> = {
    "/": () => byId<HTMLInputElement>("query").focus(),
    "+": () => void view.zoom(1.6),
    "=": () => void view.zoom(1.6),
    "-": () => void view.zoom(1 / 1.6),
    "0": () => void view.fit(),
    "[": () => view.resizePoints(0.8),
    "]": () => view.resizePoints(1.25),
    a: actions.showAll,
    d: actions.theme,
    l: () => actions.lasso(),
    n: actions.showNames,
    p: actions.panel,
    z: () => state.selected.length && actions.zoomToSelection(),
    Escape: () => {
      card.hide();
      actions.lasso(false);
      actions.select([]);
    },
  };
  const onMap: Record<string, () => void> = {
    ArrowLeft: () => void view.pan(-STEP, 0),
    ArrowRight: () => void view.pan(STEP, 0),
    ArrowUp: () => void view.pan(0, STEP),
    ArrowDown: () => void view.pan(0, -STEP),
    Enter: () => {
      const row = view.nearest(canvas.clientWidth / 2, canvas.clientHeight / 2, (one) => state.visible(one));
      if (row >= 0) actions.point(row);
    },
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = anywhere[event.key] ?? (event.target === canvas ? onMap[event.key] : undefined);
    if (!action) return;
    event.preventDefault();
    action();
  });
}
