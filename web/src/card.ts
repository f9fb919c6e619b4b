// The data of one row (picture, id, columns), shown beside the point under the pointer or chosen by a key.
import type { MapData } from "./data";
import { el } from "./element";
import type { State } from "./state";
import type { View } from "./view";

const GAP = 14;

export class Card {
  private row = -1;
  private view: View | null = null;

  constructor(private readonly element: HTMLElement, private readonly state: State) {}

  show(row: number, view: View): void {
    this.row = row;
    this.view = view;
    this.element.replaceChildren(...facts(this.state, row));
    this.element.hidden = false;
    this.place();
  }

  hide(): void {
    this.row = -1;
    this.element.hidden = true;
  }

  /** Places the card beside the point, on the side with room. */
  place(): void {
    if (this.row < 0 || !this.view) return;
    const stage = this.element.parentElement!;
    const [pane, whole] = [this.view.canvas.getBoundingClientRect(), stage.getBoundingClientRect()];
    const [x, y] = this.view.projectRow(this.row);
    const [px, py] = [x + pane.left - whole.left, y + pane.top - whole.top];
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const left = px + GAP + width > stage.clientWidth - 8 ? px - GAP - width : px + GAP;
    const top = Math.min(Math.max(8, py - height / 2), stage.clientHeight - height - 8);
    this.element.style.transform = `translate(${Math.round(Math.max(8, left))}px, ${Math.round(Math.max(8, top))}px)`;
  }
}

function facts(state: State, row: number): HTMLElement[] {
  const { data, paint } = state;
  const texts = el("div", { className: "texts" });
  texts.append(el("div", { className: "id", textContent: title(data, row) }));
  if (paint.column) {
    const swatch = el("span", { className: "swatch", style: `background:${state.colorOf(row)}` });
    const value = paint.classes ? state.names[paint.codes[row]!]! : paint.column.text(row);
    const text = paint.classes ? value : `${paint.column.name} ${value}`;
    texts.append(el("div", { className: "label" }, swatch, el("span", { className: "name", textContent: text })));
  }
  const list = el("dl");
  for (const column of data.columns) {
    const text = column === paint.column ? "" : column.text(row);
    if (text) list.append(el("dt", { textContent: column.name }), el("dd", { textContent: text }));
  }
  if (list.childElementCount) texts.append(list);
  return data.image ? [thumbnail(data, row, 96), texts] : [texts];
}

export function title(data: MapData, row: number): string {
  const id = data.ids.at(row);
  return data.hasIds ? id : `row ${id}`;
}

/** Creates a canvas that is filled when its block of pictures has been decompressed. */
export function thumbnail(data: MapData, row: number, side: number): HTMLCanvasElement {
  const { width, height } = data.meta.images!;
  const scale = side / Math.max(width, height);
  const canvas = el("canvas", { width, height, className: "thumbnail" });
  canvas.style.width = `${Math.round(width * scale)}px`;
  canvas.style.height = `${Math.round(height * scale)}px`;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `picture of ${title(data, row)}`);
  void data.image!(row).then((image) => canvas.getContext("2d")!.putImageData(image, 0, 0));
  return canvas;
}
