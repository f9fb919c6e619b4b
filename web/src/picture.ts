// Pictures of the present view with its title and legend: PNG at several resolutions, and SVG whose texts are texts.
import type { App } from "./app";
import { contourColor } from "./density";
import { count, download, el, svg } from "./element";
import type { Placed } from "./names";
import type { Pane } from "./pane";
import { GROUNDS, MARKS } from "./state";

const LEGEND = 210;
const PAD = 20;
const LINE = 20;
const HEAD = 48;
const MOST_ENTRIES = 40;
const MOST_NAME = 24;
const FONT = 'Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", Arial, sans-serif';
// Above this number, points of an SVG are one embedded picture: a file with a shape for each would not open.
const MOST_SHAPES = 40_000;

interface Mark {
  kind: "text" | "disc" | "bar";
  x: number;
  y: number;
  text?: string;
  color?: string;
  bold?: boolean;
  size?: number;
  anchor?: "start" | "middle" | "end";
}

/** Opens the choice of formats. */
export function choosePicture(app: App): void {
  const dialog = app.dom.get<HTMLDialogElement>("picture-dialog");
  const choices: [string, string, () => Promise<void> | void][] = [
    ["PNG, 1×", "png-1", () => savePng(app, 1)],
    ["PNG, 2×", "png-2", () => savePng(app, 2)],
    ["PNG, 4×", "png-4", () => savePng(app, 4)],
    ["SVG", "svg", () => saveSvg(app)],
  ];
  const buttons = choices.map(([text, id, act]) => {
    const button = el("button", { textContent: text, id: `save-${id}` });
    button.onclick = async () => {
      await act();
      dialog.close();
    };
    return button;
  });
  const close = el("button", { textContent: "Close", onclick: () => dialog.close() });
  dialog.replaceChildren(
    el("header", {}, el("h2", { textContent: "Save a picture" })),
    el("p", { className: "hint", textContent: "The present view with its title, names and legend. Texts of an SVG can be edited." }),
    el("div", { className: "actions" }, ...buttons, close),
  );
  dialog.showModal();
}

async function savePng(app: App, ratio: number): Promise<void> {
  const { width, height, panes } = measured(app);
  const canvas = el("canvas", { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  const drawing = canvas.getContext("2d")!;
  drawing.scale(ratio, ratio);
  drawing.fillStyle = GROUNDS[app.state.themeName];
  drawing.fillRect(0, 0, width, height);
  for (const { pane, x, y } of panes) {
    const { eye } = pane.view;
    drawing.drawImage(atResolution(pane, ratio), x, y, eye.width, eye.height);
    if (pane.density.wanted) drawContours(drawing, app, pane, x, y);
    for (const name of pane.names.placed) drawName(drawing, app, name, x, y);
  }
  for (const mark of legend(app, width)) drawMark(drawing, app, mark);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (blob) download(`${fileName(app)}.png`, blob);
}

/** Renders the points of a pane again at a multiple of the size on the screen. */
function atResolution(pane: Pane, ratio: number): HTMLCanvasElement {
  const { canvas, eye } = pane.view;
  const before = [canvas.width, canvas.height] as const;
  [canvas.width, canvas.height] = [Math.round(eye.width * ratio), Math.round(eye.height * ratio)];
  pane.view.paint(ratio, true);
  // the drawing buffer may be cleared once the browser has shown it, so it is copied at once
  const copy = el("canvas", { width: canvas.width, height: canvas.height });
  copy.getContext("2d")!.drawImage(canvas, 0, 0);
  [canvas.width, canvas.height] = before;
  pane.view.paint();
  return copy;
}

function saveSvg(app: App): void {
  const { width, height, panes } = measured(app);
  const { state } = app;
  const picture = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT, "font-size": 12.5 });
  picture.append(svg("title", {}, state.data.meta.title), svg("rect", { width, height, fill: GROUNDS[state.themeName] }));
  panes.forEach(({ pane, x, y }, a) => {
    const { eye } = pane.view;
    const clip = svg("clipPath", { id: `pane${a}` }, svg("rect", { width: eye.width, height: eye.height }));
    const group = svg("g", { transform: `translate(${x} ${y})`, "clip-path": `url(#pane${a})` }, clip);
    group.append(points(app, pane));
    if (pane.density.wanted) {
      for (const lines of pane.density.contours) group.append(svg("path", { d: contourPath(pane, lines), fill: "none", stroke: contourColor(state), "stroke-opacity": 0.6 }));
    }
    for (const name of pane.names.placed) group.append(...nameShapes(app, name));
    picture.append(group);
  });
  for (const mark of legend(app, width)) picture.append(shape(app, mark));
  const text = new XMLSerializer().serializeToString(picture);
  download(`${fileName(app)}.svg`, new Blob([`<?xml version="1.0" encoding="UTF-8"?>\n${text}`], { type: "image/svg+xml" }));
}

function points(app: App, pane: Pane): SVGElement {
  const { state } = app;
  const { eye } = pane.view;
  const seen = eye.projectAll(pane.view.places);
  const radius = pane.view.pointSize() / 2;
  const shown: number[] = [];
  for (let row = 0; row < state.data.n; row++) {
    const [x, y] = [seen[2 * row]!, seen[2 * row + 1]!];
    if (x > -radius && y > -radius && x < eye.width + radius && y < eye.height + radius && pane.view.shows(row)) shown.push(row);
  }
  if (shown.length > MOST_SHAPES) {
    return svg("image", { width: eye.width, height: eye.height, href: atResolution(pane, 2).toDataURL("image/png") });
  }
  const selected = new Set(state.selected);
  const group = svg("g", { "fill-opacity": 0.85 });
  for (const row of shown) {
    const attributes: Record<string, string | number> = { cx: seen[2 * row]!.toFixed(2), cy: seen[2 * row + 1]!.toFixed(2), r: radius.toFixed(2), fill: state.colorOf(row) };
    if (selected.size && !selected.has(row)) attributes["fill-opacity"] = 0.2;
    group.append(svg("circle", attributes));
  }
  return group;
}

function measured(app: App): { width: number; height: number; panes: { pane: Pane; x: number; y: number }[] } {
  const stage = app.dom.get("panes").getBoundingClientRect();
  const panes = app.panes.map((pane) => {
    const { left, top } = pane.element.getBoundingClientRect();
    return { pane, x: left - stage.left, y: top - stage.top + HEAD };
  });
  const entries = legendEntries(app).length;
  const height = Math.max(stage.height + HEAD, HEAD + PAD + entries * LINE + PAD);
  return { width: stage.width + (entries ? LEGEND : 0), height, panes };
}

function legendEntries(app: App): { text: string; color: string; n: number }[] {
  const { state } = app;
  const colors = state.paint.colors(state.themeName);
  if (state.paint.scale) return [...Array.from({ length: 4 }, () => ({ text: "", color: "", n: 0 })), ...(state.paint.scale.missing ? [{ text: "missing", color: colors[256]!, n: state.paint.scale.missing }] : [])];
  const all = state.names.map((text, code) => ({ text, color: colors[code]!, n: state.counts[code]!, shown: state.shown[code] === 1 })).filter(({ shown }) => shown);
  const listed = all.slice(0, MOST_ENTRIES);
  if (all.length > MOST_ENTRIES) listed.push({ text: `and ${count(all.length - MOST_ENTRIES)} more`, color: "", n: 0, shown: true });
  return listed;
}

/** Returns title and legend as marks in the coordinates of the picture. */
function legend(app: App, width: number): Mark[] {
  const { state } = app;
  const marks: Mark[] = [{ kind: "text", x: PAD, y: 31, text: state.data.meta.title, bold: true, size: 18 }];
  const { column, scale } = state.paint;
  if (!column) return marks;
  const left = width - LEGEND + PAD;
  marks.push({ kind: "text", x: left, y: 31, text: cut(column.name), bold: true });
  if (scale) {
    marks.push({ kind: "bar", x: left, y: HEAD });
    for (const { at, text } of scale.ticks) {
      marks.push({ kind: "text", x: left + at * (LEGEND - 2 * PAD), y: HEAD + 26, text, anchor: at < 0.08 ? "start" : at > 0.92 ? "end" : "middle", size: 11 });
    }
  }
  legendEntries(app).forEach(({ text, color, n }, a) => {
    if (!text) return;
    const y = HEAD + 6 + a * LINE;
    if (color) marks.push({ kind: "disc", x: left + 5, y, color });
    marks.push({ kind: "text", x: left + (color ? 18 : 0), y: y + 4.5, text: cut(text) });
    if (n) marks.push({ kind: "text", x: width - PAD, y: y + 4.5, text: count(n), anchor: "end" });
  });
  return marks;
}

function cut(text: string): string {
  return text.length > MOST_NAME ? `${text.slice(0, MOST_NAME - 1)}…` : text;
}

function shape(app: App, { kind, x, y, text, color, bold, size, anchor }: Mark): SVGElement {
  if (kind === "disc") return svg("circle", { cx: x, cy: y, r: 5, fill: color! });
  if (kind === "bar") {
    const colors = app.state.paint.colors(app.state.themeName).slice(0, 256);
    const group = svg("g");
    const step = (LEGEND - 2 * PAD) / 64;
    for (let a = 0; a < 64; a++) group.append(svg("rect", { x: x + a * step, y: y - 2, width: step + 0.5, height: 10, fill: colors[a * 4]! }));
    return group;
  }
  return svg("text", { x, y, fill: MARKS[app.state.themeName], "font-weight": bold ? 600 : 400, "font-size": size ?? 12.5, "text-anchor": anchor ?? "start" }, text!);
}

function drawMark(drawing: CanvasRenderingContext2D, app: App, { kind, x, y, text, color, bold, size, anchor }: Mark): void {
  if (kind === "disc") {
    drawing.fillStyle = color!;
    drawing.beginPath();
    drawing.arc(x, y, 5, 0, 2 * Math.PI);
    drawing.fill();
  } else if (kind === "bar") {
    const colors = app.state.paint.colors(app.state.themeName).slice(0, 256);
    const step = (LEGEND - 2 * PAD) / 256;
    colors.forEach((one, a) => {
      drawing.fillStyle = one;
      drawing.fillRect(x + a * step, y - 2, step + 0.5, 10);
    });
  } else {
    drawing.font = `${bold ? 600 : 400} ${size ?? 12.5}px ${FONT}`;
    drawing.fillStyle = MARKS[app.state.themeName];
    drawing.textAlign = anchor === "end" ? "right" : anchor === "middle" ? "center" : "left";
    drawing.fillText(text!, x, y);
  }
}

function drawName(drawing: CanvasRenderingContext2D, app: App, name: Placed, x: number, y: number): void {
  drawing.font = `600 ${name.level ? 11.5 : 12.5}px ${FONT}`;
  drawing.textAlign = "center";
  drawing.lineJoin = "round";
  if (name.line) {
    drawing.strokeStyle = MARKS[app.state.themeName];
    drawing.lineWidth = 0.8;
    drawing.beginPath();
    drawing.moveTo(x + name.line[0], y + name.line[1]);
    drawing.lineTo(x + name.line[2], y + name.line[3]);
    drawing.stroke();
  }
  const [cx, cy] = [x + (name.left + name.right) / 2, y + (name.top + name.bottom) / 2 + 4.2];
  drawing.strokeStyle = GROUNDS[app.state.themeName];
  drawing.lineWidth = 4;
  drawing.strokeText(name.text, cx, cy);
  drawing.fillStyle = MARKS[app.state.themeName];
  drawing.fillText(name.text, cx, cy);
}

function nameShapes(app: App, name: Placed): SVGElement[] {
  const shapes: SVGElement[] = [];
  const ink = MARKS[app.state.themeName];
  if (name.line) {
    const [x1, y1, x2, y2] = name.line.map((one) => one.toFixed(1)) as [string, string, string, string];
    shapes.push(svg("line", { x1, y1, x2, y2, stroke: ink, "stroke-width": 0.8 }));
  }
  const at = { x: ((name.left + name.right) / 2).toFixed(1), y: ((name.top + name.bottom) / 2 + 4.2).toFixed(1) };
  const look = { fill: ink, stroke: GROUNDS[app.state.themeName], "stroke-width": 3.5, "stroke-linejoin": "round", "paint-order": "stroke", "text-anchor": "middle", "font-weight": 600 };
  shapes.push(svg("text", { ...at, ...look, "font-size": name.level ? 11.5 : 12.5 }, name.text));
  return shapes;
}

function contourPath(pane: Pane, lines: [number, number, number, number][]): string {
  const place = (x: number, y: number) => pane.view.project(x, y).map((one) => one.toFixed(1)).join(" ");
  return lines.map(([x1, y1, x2, y2]) => `M${place(x1, y1)}L${place(x2, y2)}`).join("");
}

function drawContours(drawing: CanvasRenderingContext2D, app: App, pane: Pane, x: number, y: number): void {
  drawing.save();
  drawing.translate(x, y);
  drawing.strokeStyle = contourColor(app.state);
  drawing.globalAlpha = 0.6;
  for (const lines of pane.density.contours) drawing.stroke(new Path2D(contourPath(pane, lines)));
  drawing.restore();
}

function fileName(app: App): string {
  return app.state.data.meta.title.replace(/[^\p{L}\p{N}._ -]+/gu, "").trim().slice(0, 80) || "map";
}

