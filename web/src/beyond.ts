// Marks at the edge of the canvas for points far outside, which the first view leaves out.
import { el, plural } from "./element";
import type { View } from "./view";

// Points in the same sector of directions share a mark.
const SECTORS = 12;
const INSET = 26;
// Height of the toolbar, which covers the lower edge.
const TOOLS = 76;
// Marks are shown as long as the view is at least this wide, relative to the first one: closer, most points are outside.
const WIDE = 0.6;

export class Beyond {
  constructor(private readonly layer: HTMLElement, private readonly view: View) {}

  place(): void {
    const { outliers, eye, overview } = this.view;
    const sectors = new Map<number, { row: number; angle: number }[]>();
    for (const row of eye.distance < WIDE * overview ? [] : outliers) {
      const [x, y] = this.view.projectRow(row);
      if (x >= 0 && y >= 0 && x <= eye.width && y <= eye.height) continue;
      const angle = Math.atan2(y - eye.height / 2, x - eye.width / 2);
      const sector = Math.round((angle / 2 / Math.PI) * SECTORS + SECTORS) % SECTORS;
      sectors.set(sector, [...(sectors.get(sector) ?? []), { row, angle }]);
    }
    this.layer.replaceChildren(...[...sectors.values()].map((inside) => this.mark(inside)));
  }

  private mark(inside: { row: number; angle: number }[]): HTMLElement {
    const { width, height } = this.view.eye;
    const angle = inside[Math.floor(inside.length / 2)]!.angle;
    const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
    const reach = Math.min((width / 2 - INSET) / Math.max(1e-6, Math.abs(cos)), (height / 2 - (sin > 0 ? TOOLS : INSET)) / Math.max(1e-6, Math.abs(sin)));
    const text = `${plural(inside.length, "point")} far outside`;
    const arrow = el("span", { textContent: "→", style: `transform:rotate(${((angle * 180) / Math.PI).toFixed(0)}deg)` });
    const mark = el("button", { title: `Show ${text}`, onclick: () => void this.view.zoomTo(inside.map(({ row }) => row)) }, arrow, String(inside.length));
    mark.setAttribute("aria-label", `Show ${text}`);
    mark.style.left = `${Math.round(width / 2 + cos * reach)}px`;
    mark.style.top = `${Math.round(height / 2 + sin * reach)}px`;
    return mark;
  }
}
