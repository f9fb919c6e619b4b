// The nearest neighbors of a point in the data, drawn on demand as lines across the map.
import { svg } from "./element";
import type { State } from "./state";
import type { View } from "./view";

export class Nearest {
  wanted = false;
  /** The row whose neighbors are drawn, and these. */
  row = -1;
  rows: number[] = [];

  constructor(private readonly lines: SVGSVGElement, private readonly state: State, private readonly view: View) {
    for (const event of ["hover", "selected"] as const) state.listen(event, () => void this.find());
    for (const event of ["rows", "shown", "theme"] as const) state.listen(event, () => this.place());
  }

  toggle(): boolean {
    this.wanted = !this.wanted && this.state.data.neighbors !== null;
    void this.find();
    return this.wanted;
  }

  /** Finds the neighbors of the point under the pointer, otherwise of a single selected point. */
  private async find(): Promise<void> {
    const { hovered, selected, data } = this.state;
    const row = !this.wanted ? -1 : hovered >= 0 ? hovered : selected.length === 1 ? selected[0]! : -1;
    if (row === this.row) return;
    this.row = row;
    const rows = row < 0 ? [] : await data.neighbors!(row);
    // another point may be under the pointer by now
    if (row !== this.row) return;
    this.rows = rows;
    this.place();
  }

  place(): void {
    const own = this.row < 0 || this.row >= this.state.data.n ? null : this.view.projectRow(this.row);
    this.lines.replaceChildren(
      ...(own ? this.rows.filter((row) => this.view.shows(row)) : []).flatMap((row) => {
        const [x, y] = this.view.projectRow(row);
        const [x1, y1] = own!;
        return [svg("line", { x1, y1, x2: x, y2: y }), svg("circle", { cx: x, cy: y, r: this.view.pointSize() / 2 + 1.5, fill: this.state.colorOf(row) })];
      }),
    );
  }
}
