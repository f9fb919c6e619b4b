// The data of one row (picture, id, class, texts), shown beside the point under the pointer or chosen by a key.
import type { MapData } from "./data";
import { el, short } from "./element";
import type { State } from "./state";
import type { View } from "./view";

const GAP = 14;

export class Card {
  private row = -1;

  constructor(private readonly element: HTMLElement, private readonly state: State, private readonly view: View) {}

  show(row: number): void {
    this.row = row;
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
    if (this.row < 0) return;
    const { x, y } = this.state.data;
    const [px, py] = this.view.project(x[this.row]!, y[this.row]!);
    const stage = this.element.parentElement!;
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const left = px + GAP + width > stage.clientWidth - 8 ? px - GAP - width : px + GAP;
    const top = Math.min(Math.max(8, py - height / 2), stage.clientHeight - height - 8);
    this.element.style.transform = `translate(${Math.round(Math.max(8, left))}px, ${Math.round(top)}px)`;
  }
}

function facts(state: State, row: number): HTMLElement[] {
  const { data } = state;
  const parts: HTMLElement[] = [];
  if (data.image) parts.push(thumbnail(data, row, 96));
  const texts = el("div", { className: "texts" });
  texts.append(el("div", { className: "id", textContent: title(data, row) }));
  if (data.codes) {
    const code = data.codes[row]!;
    const swatch = el("span", { className: "swatch", style: `background:${state.colour(code)}` });
    texts.append(el("div", { className: "label" }, swatch, el("span", { className: "name", textContent: state.names[code]! })));
  } else if (data.values) {
    texts.append(el("div", { className: "label", textContent: `${data.meta.label || "value"} ${valueText(data, row)}` }));
  }
  if (data.fields.length) {
    const list = el("dl");
    for (const { name, texts: column } of data.fields) {
      list.append(el("dt", { textContent: name }), el("dd", { textContent: column.at(row) }));
    }
    texts.append(list);
  }
  return [...parts, texts];
}

export function title(data: MapData, row: number): string {
  const id = data.ids.at(row);
  return data.meta.fields.length || !/^\d+$/.test(id) ? id : `row ${id}`;
}

/** Formats a value; numbers scaled to 0..1 are converted back to the original scale. */
function valueText(data: MapData, row: number): string {
  const { low, high } = data.meta.values!;
  return short(low + data.values![row]! * (high - low));
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
