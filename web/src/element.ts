// Creates DOM elements without a framework.

type Child = Node | string;

export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  properties: Partial<Omit<HTMLElementTagNameMap[K], "style">> & { style?: string } = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  const { style, ...rest } = properties;
  Object.assign(element, rest);
  if (style) element.style.cssText = style;
  element.append(...children);
  return element;
}

export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

const NUMBER = new Intl.NumberFormat("en");

export function count(n: number): string {
  return NUMBER.format(n);
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** Formats a number with few digits, as for an axis. */
export function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}

const LINES: Record<string, string> = {
  "zoom-in": "M8 3v10M3 8h10",
  "zoom-out": "M3 8h10",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  lasso: "M8 2.5c3.3 0 5.8 1.7 5.8 4s-2.5 4-5.8 4-5.8-1.7-5.8-4 2.5-4 5.8-4zM5 10c-.9.5-1 2 .2 2.2 1.3.2 1.6 1.3.6 2",
  "show-names": "M3 4.5V3h10v1.5M8 3v10M6 13h4",
  smaller: "M8 6.6a1.4 1.4 0 1 0 0 2.8 1.4 1.4 0 1 0 0-2.8",
  larger: "M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 1 0 0-9",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 1 0 0-11M8 2.5v11M8 5l3.5 1.5M8 8h5.4M8 11l3.5-1.2",
  "panel-toggle": "M2.5 3h11v10h-11zM9.8 3v10",
  search: "M7 2.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 1 0 0-8.4M10.2 10.2l3.3 3.3",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3l8 5-8 5z",
};

export function icon(name: string): SVGSVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", LINES[name]!);
  svg.append(path);
  return svg;
}
