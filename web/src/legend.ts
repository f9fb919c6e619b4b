// The legend: classes to show and hide, or the scale of values.
import { byId, count, el, short } from "./element";
import type { State } from "./state";

export function buildLegend(state: State): void {
  let listed = "";
  let update = () => {};
  const draw = () => {
    // the list is rebuilt only if it has changed: the pointer may be on it
    const known = JSON.stringify([state.names, state.data.meta.values]);
    if (known !== listed) update = listing(state);
    listed = known;
    update();
  };
  for (const event of ["rows", "shown", "theme"] as const) state.listen(event, draw);
  draw();
}

/** Fills the section and returns a function that updates it. */
function listing(state: State): () => void {
  const section = byId("legend");
  const { meta } = state.data;
  section.replaceChildren();
  section.hidden = !meta.values && state.names.length === 0;
  if (meta.values) {
    section.append(heading(meta.label || "Value"), scale(meta.palette.values, meta.values));
    return () => {};
  }
  if (section.hidden) return () => {};
  const all = el("button", { className: "link", textContent: "Show all", title: "Show all classes (A)", id: "show-all" });
  all.onclick = () => show(state, () => 1);
  const list = el("ul", { className: "classes" });
  state.names.forEach((name, code) => list.append(row(state, name, code)));
  const title = heading(meta.label || "Classes", count(meta.categories.length));
  title.append(all);
  section.append(title, list);
  return () => {
    all.disabled = state.shown.every((flag) => flag === 1);
    [...list.children].forEach((item, code) => {
      item.querySelector(".class")!.setAttribute("aria-pressed", String(state.shown[code] === 1));
      item.querySelector(".n")!.textContent = count(state.counts[code]!);
      (item.querySelector(".swatch") as HTMLElement).style.background = state.colour(code);
    });
  };
}

export function show(state: State, flag: (code: number) => number): void {
  state.shown.forEach((_, code) => (state.shown[code] = flag(code)));
  state.changed("shown");
}

export function heading(text: string, note = ""): HTMLElement {
  return el("h2", {}, el("span", { className: "name", textContent: text, title: text }), el("small", { textContent: note }));
}

function row(state: State, name: string, code: number): HTMLElement {
  const toggle = el(
    "button",
    { className: "class", title: name },
    el("span", { className: "swatch" }),
    el("span", { className: "name", textContent: name }),
    el("span", { className: "n" }),
  );
  toggle.onclick = () => {
    state.shown[code] = 1 - state.shown[code]!;
    state.changed("shown");
  };
  const only = el("button", { className: "only", textContent: "only", title: `Show only ${name}` });
  only.setAttribute("aria-label", `Show only ${name}`);
  only.onclick = () => {
    const alone = state.shown[code] === 1 && state.shown.reduce((sum, flag) => sum + flag, 0) === 1;
    show(state, (other) => Number(alone || other === code));
  };
  return el("li", {}, toggle, only);
}

function scale(colours: string[], { low, high }: { low: number; high: number }): HTMLElement {
  const steps = colours.filter((_, a) => a % 16 === 0 || a === colours.length - 1).join(",");
  return el(
    "div",
    { className: "scale" },
    el("div", { className: "bar", style: `background:linear-gradient(90deg,${steps})` }),
    el("div", { className: "ends" }, el("span", { textContent: short(low) }), el("span", { textContent: short((low + high) / 2) }), el("span", { textContent: short(high) })),
  );
}
