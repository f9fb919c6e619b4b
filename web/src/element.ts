// Creates and finds DOM elements without a framework.

type Child = Node | string;

/** The document of a page, or the shadow root of a widget. */
export type Root = Document | ShadowRoot;

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

export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number> = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** The elements of one page by id, and the element that contains them. */
export class Dom {
  readonly page: HTMLElement;

  constructor(readonly root: Root) {
    this.page = root.querySelector<HTMLElement>(".vicinal")!;
  }

  get<T extends HTMLElement = HTMLElement>(id: string): T {
    return this.root.getElementById(id) as T;
  }

  all<T extends HTMLElement = HTMLElement>(selector: string): T[] {
    return [...this.page.querySelectorAll<T>(selector)];
  }

  /** Says something to screen readers. */
  say(text: string): void {
    this.get("said").textContent = text;
  }
}

const NUMBER = new Intl.NumberFormat("en");
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export function count(n: number): string {
  return NUMBER.format(n);
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** Formats a number with few digits, as for an axis. */
export function short(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e6 && size < HUGE) return COMPACT.format(value);
  if (size >= HUGE || (size > 0 && size < 1e-3)) return value.toExponential(2).replace("e+", "e").replace(/\.?0+e/, "e");
  if (Number.isInteger(value)) return size < 10_000 ? String(value) : NUMBER.format(value);
  const rounded = Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size + 1)))));
  return Math.abs(rounded) < 10_000 ? String(rounded) : NUMBER.format(rounded);
}

const DECIMALS = new Intl.NumberFormat("en", { maximumFractionDigits: 15 });
// Outside of these limits a number is written with an exponent.
const [TINY, HUGE] = [1e-6, 1e15];

/** Formats a number in full, as people write it: 1,234,567 and not 1.23e6. */
export function full(value: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size < TINY || size >= HUGE)) return String(value);
  return size < 10_000 ? String(value) : DECIMALS.format(value);
}

/** Returns the shortest number that is the same float32. */
export function shortest(value: number): number {
  for (let digits = 6; digits < 9; digits++) {
    const rounded = Number(value.toPrecision(digits));
    if (Math.fround(rounded) === value) return rounded;
  }
  return value;
}

const LINES: Record<string, string> = {
  "zoom-in": "M8 3v10M3 8h10",
  "zoom-out": "M3 8h10",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  lasso: "M8 2.5c3.3 0 5.8 1.7 5.8 4s-2.5 4-5.8 4-5.8-1.7-5.8-4 2.5-4 5.8-4zM5 10c-.9.5-1 2 .2 2.2 1.3.2 1.6 1.3.6 2",
  "show-names": "M3 4.5V3h10v1.5M8 3v10M6 13h4",
  density: "M8 2c4 0 6.2 2.3 6.2 5.4S12 14 8 14s-6.2-3.4-6.2-6.4S4 2 8 2zM8 5.2c2 0 3.2 1 3.2 2.6S10 10.6 8.2 10.6 5 9.4 5 7.9 6.2 5.2 8 5.2z",
  near: "M8 8L3.2 4M8 8l5-3.5M8 8l-2.5 5M8 8l4.5 3.5M8 6.4a1.6 1.6 0 100 3.2 1.6 1.6 0 100-3.2",
  smaller: "M8 6.6a1.4 1.4 0 100 2.8 1.4 1.4 0 100-2.8",
  larger: "M8 3.5a4.5 4.5 0 100 9 4.5 4.5 0 100-9",
  save: "M8 2.5v7M5 7l3 3 3-3M3 11.5v2h10v-2",
  theme: "M8 2.5a5.5 5.5 0 100 11 5.5 5.5 0 100-11M8 2.5v11M8 5l3.5 1.5M8 8h5.4M8 11l3.5-1.2",
  help: "M5.8 6.2a2.2 2.2 0 113.3 1.9c-.8.5-1.1.9-1.1 1.7M8 12.2v.1",
  "panel-toggle": "M2.5 3h11v10h-11zM9.8 3v10",
  search: "M7 2.8a4.2 4.2 0 100 8.4 4.2 4.2 0 100-8.4M10.2 10.2l3.3 3.3",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3l8 5-8 5z",
};

export function icon(name: string): SVGSVGElement {
  return svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true", class: "icon" }, svg("path", { d: LINES[name]! }));
}

/** Offers a file to the reader. */
export function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
