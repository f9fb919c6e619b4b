// The legend: what colors the points, classes to show and hide, or the scale of values.
import { count, type Dom, el, full, plural, shortest } from "./element";
import { canBeClasses, canBeLog, canBeScale, type Scale, type ScaleKind, valuesOf } from "./paint";
import type { LegendOrder, Mode, State } from "./state";

const PLAIN = "";

export function buildLegend(dom: Dom, state: State): void {
  let listed = "";
  let update = () => {};
  const draw = () => {
    // the list is rebuilt only if it has changed: the pointer may be on it
    const { column, scale } = state.paint;
    const known = JSON.stringify([column?.name, state.names, scale, state.paint.classes && state.order(), state.data.columns.map((one) => [one.name, one.kind])]);
    if (known !== listed) update = listing(dom, state);
    listed = known;
    update();
  };
  for (const event of ["rows", "shown", "theme", "paint"] as const) state.listen(event, draw);
  draw();
}

/** Fills the section and returns a function that updates it. */
function listing(dom: Dom, state: State): () => void {
  const section = dom.get("legend");
  const able = state.data.columns.filter((one) => one.kind !== "texts");
  section.replaceChildren();
  section.hidden = able.length === 0;
  if (section.hidden) return () => {};
  section.append(chooser(state, able.map(({ name }) => name)));
  if (state.paint.scale) {
    const limits = range(state);
    section.append(scaleBar(state, state.paint.scale), limits.block);
    return limits.update;
  }
  if (!state.paint.classes) return () => {};
  const all = el("button", { className: "link", textContent: "Show all", title: "Show all points (A)", id: "show-all" });
  all.onclick = () => state.showAll();
  const list = el("ul", { className: "classes" });
  const order = state.order();
  for (const code of order) list.append(row(state, state.names[code]!, code));
  const title = heading(plural(order.length - Number(state.paint.classes.missing > 0), "class", "classes"));
  if (order.length > 2) title.append(sorter(state));
  title.append(all);
  section.append(title, list);
  return () => {
    all.disabled = !state.filtered;
    const colors = state.paint.colors(state.themeName);
    [...list.children].forEach((item, at) => {
      const code = order[at]!;
      item.querySelector(".class")!.setAttribute("aria-pressed", String(state.shown[code] === 1));
      item.querySelector(".n")!.textContent = count(state.counts[code]!);
      (item.querySelector(".swatch") as HTMLElement).style.background = colors[code]!;
    });
  };
}

export function heading(text: string, note = ""): HTMLElement {
  return el("h2", {}, el("span", { className: "name", textContent: text, title: text }), el("small", { textContent: note }));
}

/** Creates the controls that choose a column and how it colors the points. */
function chooser(state: State, names: string[]): HTMLElement {
  const chosen = state.paint.column;
  const select = el("select", { id: "color-by" });
  select.setAttribute("aria-label", "Color by");
  select.append(el("option", { value: PLAIN, textContent: "nothing", selected: !chosen }));
  for (const name of names) select.append(el("option", { value: name, textContent: name, selected: name === chosen?.name }));
  select.onchange = () => state.colorBy(select.value === PLAIN ? null : select.value);
  const line = el("div", { className: "chooser" }, el("label", { htmlFor: "color-by", textContent: "Color by" }), select);
  if (!chosen) return line;
  const kinds: [string, string, () => void, boolean][] = [];
  const as = (mode: Mode, kind?: ScaleKind) => () => state.colorBy(chosen.name, mode, kind);
  if (canBeScale(chosen)) {
    kinds.push(["linear", "Linear", as("scale", "linear"), state.mode === "scale" && state.scaleKind === "linear"]);
    kinds.push(["quantile", "Quantiles", as("scale", "quantile"), state.mode === "scale" && state.scaleKind === "quantile"]);
    if (canBeLog(chosen)) kinds.push(["log", "Log", as("scale", "log"), state.mode === "scale" && state.scaleKind === "log"]);
  }
  if (canBeClasses(chosen)) kinds.push(["classes", "Classes", as("classes"), state.mode === "classes"]);
  const block = el("div", {}, line);
  if (kinds.length > 1) {
    const group = el("div", { className: "kinds" });
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", "Scale of the colors");
    for (const [id, text, act, on] of kinds) {
      const button = el("button", { textContent: text, id: `as-${id}`, onclick: act });
      button.setAttribute("aria-pressed", String(on));
      group.append(button);
    }
    block.append(group);
  }
  return block;
}

const ORDERS: [LegendOrder, string][] = [["name", "by name"], ["size", "by size"], ["data", "as in data"]];

/** Creates the choice of the order of the classes. */
function sorter(state: State): HTMLElement {
  const select = el("select", { id: "legend-order", className: "order" });
  select.setAttribute("aria-label", "Order of the classes");
  for (const [value, textContent] of ORDERS) select.append(el("option", { value, textContent, selected: value === state.legendOrder }));
  select.onchange = () => state.orderBy(select.value as LegendOrder);
  return select;
}

/** Creates two fields for the smallest and the largest value to show. */
function range(state: State): { block: HTMLElement; update: () => void } {
  const { column } = state.paint;
  const values = valuesOf(column!);
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const round = (value: number) => (values instanceof Float32Array ? shortest(value) : value);
  const fields = [low, high].map((end, a) => {
    const input = el("input", { type: "number", step: "any", id: a ? "range-high" : "range-low", placeholder: full(rounded(round(end))), title: full(round(end)) });
    input.setAttribute("aria-label", `${a ? "Largest" : "Smallest"} ${column!.name} to show`);
    return input;
  }) as [HTMLInputElement, HTMLInputElement];
  const apply = () => {
    const [from, to] = fields.map((input, a) => (input.value === "" ? [-Infinity, Infinity][a]! : input.valueAsNumber)) as [number, number];
    state.showRange(column!.name, from === -Infinity && to === Infinity ? null : [from, to]);
  };
  for (const input of fields) input.onchange = apply;
  const block = el("div", { className: "range" }, "Show", fields[0], "to", fields[1]);
  const update = () => {
    const shown = state.ranges.find(([name]) => name === column!.name);
    fields.forEach((input, a) => {
      const end = shown?.[a ? 2 : 1] as number | undefined;
      input.value = end === undefined || !Number.isFinite(end) ? "" : String(end);
    });
  };
  return { block, update };
}

/** Rounds a number with a fraction to four digits, so that it fits the field; whole numbers stay. */
function rounded(value: number): number {
  return Number.isInteger(value) || !Number.isFinite(value) ? value : Number(value.toPrecision(Math.max(4, Math.ceil(Math.log10(Math.abs(value) + 1)))));
}

/** Keeps the list of the filters of all columns; a click on one removes it. */
export function buildFilters(dom: Dom, state: State): void {
  const section = dom.get("filters");
  const draw = () => {
    const hidden = state.hidden.map(([name, classes]) => [name, plural(classes.length, "class", "classes") + " hidden"] as const);
    const limits = state.ranges.map(([name, low, high]) => [name, between(low, high)] as const);
    section.hidden = hidden.length + limits.length === 0;
    const chips = [...hidden, ...limits].map(([name, what]) => {
      const chip = el("button", { className: "chip", title: `Show all of ${name}`, onclick: () => state.clearFilter(name) }, el("strong", { textContent: name }), ` ${what} `);
      chip.append(el("span", { textContent: "×" }));
      chip.lastElementChild!.setAttribute("aria-hidden", "true");
      return el("li", {}, chip);
    });
    section.replaceChildren(heading("Filters", `${count(state.visibleCount())} of ${count(state.data.n)} points`), el("ul", { className: "chips" }, ...chips));
  };
  for (const event of ["shown", "rows"] as const) state.listen(event, draw);
  draw();
}

function between(low: number, high: number): string {
  if (low === -Infinity) return `≤ ${full(high)}`;
  return high === Infinity ? `≥ ${full(low)}` : `${full(low)} to ${full(high)}`;
}

function row(state: State, name: string, code: number): HTMLElement {
  const toggle = el(
    "button",
    { className: "class", title: name },
    el("span", { className: "swatch" }),
    el("span", { className: "name", textContent: name }),
    el("span", { className: "n" }),
  );
  toggle.onclick = () => state.show((other) => (other === code ? 1 - state.shown[code]! : state.shown[other]!));
  const only = el("button", { className: "only", textContent: "only", title: `Show only ${name}` });
  only.setAttribute("aria-label", `Show only ${name}`);
  only.onclick = () => {
    const alone = state.shown[code] === 1 && state.shown.reduce((sum, flag) => sum + flag, 0) === 1;
    state.show((other) => Number(alone || other === code));
  };
  return el("li", {}, toggle, only);
}

function scaleBar(state: State, scale: Scale): HTMLElement {
  const colors = state.paint.colors(state.themeName);
  const steps = colors.slice(0, 256).filter((_, a) => a % 15 === 0);
  const bar = el("div", { className: "bar", style: `background:linear-gradient(90deg,${steps.join(",")})` });
  const ticks = el("div", { className: "ticks" });
  for (const { at, text } of scale.ticks) {
    const edge = at < 0.08 ? " first" : at > 0.92 ? " last" : "";
    ticks.append(el("span", { textContent: text, className: `tick${edge}`, style: `left:${(100 * at).toFixed(2)}%` }));
  }
  const block = el("div", { className: "scale" }, bar, ticks);
  const beyond = scale.below + scale.above;
  if (beyond) block.append(el("p", { className: "hint", id: "clipped", textContent: `${plural(beyond, "point")} beyond the ends of the scale` }));
  if (scale.missing) {
    const swatch = el("span", { className: "swatch", style: `background:${colors[256]!}` });
    block.append(el("p", { className: "missing", id: "missing" }, swatch, el("span", { className: "name", textContent: "missing" }), el("span", { className: "n", textContent: count(scale.missing) })));
  }
  return block;
}
