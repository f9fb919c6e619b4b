// Pointer, wheel and touch: drag, pinch, lasso, hover, click and tap.
import type { View } from "./view";

export interface GestureActions {
  hover: (row: number) => void;
  /** A click or tap on a row, or on nothing (-1). */
  pick: (row: number, how: Combination) => void;
  /** A closed polygon in canvas coordinates. */
  lasso: (polygon: [number, number][], how: Combination) => void;
  /** The polygon while it is drawn; empty at its end. */
  drawing: (polygon: [number, number][]) => void;
  moved: () => void;
}

export type Combination = "replace" | "add" | "remove";

const REACH = { mouse: 9, touch: 22 };
// A pointer that moves less than this is a click, in pixels.
const STILL = 5;
const STEP = 3;
const DOUBLE_TAP_MS = 300;

export class Gestures {
  /** Whether a drag draws a lasso. */
  lasso = false;
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private polygon: [number, number][] | null = null;
  private start: { x: number; y: number } | null = null;
  private dragged = false;
  private lastTap = { at: 0, x: 0, y: 0 };

  constructor(private readonly view: View, private readonly actions: GestureActions) {
    const { canvas } = view;
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.cancel(event));
    // a finger leaves when it is lifted, and the card of a tapped point stays
    canvas.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && this.pointers.size === 0 && actions.hover(-1));
    canvas.addEventListener("contextmenu", (event) => view.eye.deep && event.preventDefault());
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  private at(event: MouseEvent): { x: number; y: number } {
    const { left, top } = this.view.canvas.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  private down(event: PointerEvent): void {
    const at = this.at(event);
    this.view.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, at);
    if (this.pointers.size > 1) {
      // a second finger ends a lasso and starts a pinch
      this.polygon = null;
      this.actions.drawing([]);
      this.dragged = true;
      return;
    }
    this.start = at;
    this.dragged = false;
    this.polygon = this.lasso || event.shiftKey ? [[at.x, at.y]] : null;
  }

  private move(event: PointerEvent): void {
    const at = this.at(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") this.actions.hover(this.view.nearest(at.x, at.y, REACH.mouse));
      return;
    }
    if (this.pointers.size > 1) return this.pinch(event.pointerId, at);
    if (!this.dragged && Math.hypot(at.x - this.start!.x, at.y - this.start!.y) < STILL) return;
    this.dragged = true;
    this.pointers.set(event.pointerId, at);
    if (this.polygon) {
      const [x, y] = this.polygon.at(-1)!;
      if (Math.hypot(at.x - x, at.y - y) < STEP) return;
      this.polygon.push([at.x, at.y]);
      this.actions.drawing(this.polygon);
      return;
    }
    const [dx, dy] = [at.x - before.x, at.y - before.y];
    const turn = this.view.eye.deep && event.button !== 2 && !(event.buttons & 2) && !event.ctrlKey;
    if (turn) this.view.eye.orbit(dx / 160, dy / 160);
    else this.view.eye.pan(dx, dy);
    this.view.moves();
    this.actions.moved();
  }

  private pinch(moved: number, at: { x: number; y: number }): void {
    const before = [...this.pointers.values()];
    this.pointers.set(moved, at);
    const after = [...this.pointers.values()];
    const [one, other] = [spread(before), spread(after)];
    this.view.eye.pan(other.x - one.x, other.y - one.y);
    if (one.size > 0) this.view.eye.zoom(other.size / one.size, other.x, other.y);
    this.view.moves();
    this.actions.moved();
  }

  private up(event: PointerEvent): void {
    const at = this.at(event);
    const alone = this.pointers.size === 1;
    this.pointers.delete(event.pointerId);
    if (!alone) return;
    const how: Combination = event.altKey ? "remove" : event.ctrlKey || event.metaKey ? "add" : "replace";
    const polygon = this.polygon;
    this.polygon = null;
    if (polygon && this.dragged) {
      this.actions.drawing([]);
      if (polygon.length > 2) this.actions.lasso(polygon, how);
      return;
    }
    if (this.dragged) return;
    const touch = event.pointerType === "touch";
    if (touch && this.isDoubleTap(at)) {
      this.view.eye.zoom(2, at.x, at.y);
      this.view.moves();
      return;
    }
    this.actions.pick(this.view.nearest(at.x, at.y, touch ? REACH.touch : REACH.mouse), how);
  }

  private isDoubleTap(at: { x: number; y: number }): boolean {
    const now = performance.now();
    const double = now - this.lastTap.at < DOUBLE_TAP_MS && Math.hypot(at.x - this.lastTap.x, at.y - this.lastTap.y) < 30;
    this.lastTap = { at: double ? 0 : now, ...at };
    return double;
  }

  private cancel(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
    this.polygon = null;
    this.actions.drawing([]);
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const { x, y } = this.at(event);
    const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    // the gesture of a touchpad arrives as a wheel with Ctrl and small steps
    const speed = event.ctrlKey ? 0.01 : 0.0015;
    this.view.eye.zoom(Math.exp(-event.deltaY * lines * speed), x, y);
    this.view.moves();
    this.actions.moved();
  }
}

function spread(fingers: { x: number; y: number }[]): { x: number; y: number; size: number } {
  const [a, b] = fingers as [{ x: number; y: number }, { x: number; y: number }];
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, size: Math.hypot(a.x - b.x, a.y - b.y) };
}
