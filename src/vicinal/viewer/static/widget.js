// src/element.ts
function e(e, t = {}, ...n) {
	let r = document.createElement(e), { style: i, ...a } = t;
	return Object.assign(r, a), i && (r.style.cssText = i), r.append(...n), r;
}
function t(e, t = {}, ...n) {
	let r = document.createElementNS("http://www.w3.org/2000/svg", e);
	for (let [e, n] of Object.entries(t)) r.setAttribute(e, String(n));
	return r.append(...n), r;
}
var n = class {
	root;
	page;
	constructor(e) {
		this.root = e, this.page = e.querySelector(".vicinal");
	}
	get(e) {
		return this.root.getElementById(e);
	}
	all(e) {
		return [...this.page.querySelectorAll(e)];
	}
	say(e) {
		this.get("said").textContent = e;
	}
}, r = new Intl.NumberFormat("en"), i = new Intl.NumberFormat("en", {
	notation: "compact",
	maximumSignificantDigits: 3
});
function a(e) {
	return r.format(e);
}
function o(e, t, n = `${t}s`) {
	return `${a(e)} ${e === 1 ? t : n}`;
}
function s(e, t = 3) {
	if (!Number.isFinite(e)) return "–";
	let n = Math.abs(e);
	if (n >= 1e6 && n < u) return i.format(e);
	if (n >= u || n > 0 && n < .001) return e.toExponential(2).replace("e+", "e").replace(/\.?0+e/, "e");
	if (Number.isInteger(e)) return n < 1e4 ? String(e) : r.format(e);
	let a = Number(e.toPrecision(Math.max(t, Math.ceil(Math.log10(n + 1)))));
	return Math.abs(a) < 1e4 ? String(a) : r.format(a);
}
var c = new Intl.NumberFormat("en", { maximumFractionDigits: 15 }), [l, u] = [1e-6, 0x38d7ea4c68000];
function d(e) {
	let t = Math.abs(e);
	return t !== 0 && (t < l || t >= u) || t < 1e4 ? String(e) : c.format(e);
}
function f(e) {
	for (let t = 6; t < 9; t++) {
		let n = Number(e.toPrecision(t));
		if (Math.fround(n) === e) return n;
	}
	return e;
}
var p = {
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
	play: "M5 3l8 5-8 5z"
};
function m(e) {
	return t("svg", {
		viewBox: "0 0 16 16",
		"aria-hidden": "true",
		class: "icon"
	}, t("path", { d: p[e] }));
}
function h(t, n) {
	let r = URL.createObjectURL(n);
	e("a", {
		href: r,
		download: t
	}).click(), setTimeout(() => URL.revokeObjectURL(r), 1e3);
}
// src/card.ts
var g = 14, _ = class {
	element;
	state;
	row = -1;
	view = null;
	constructor(e, t) {
		this.element = e, this.state = t;
	}
	show(e, t) {
		this.row = e, this.view = t, this.element.replaceChildren(...v(this.state, e)), this.element.hidden = !1, this.place();
	}
	hide() {
		this.row = -1, this.element.hidden = !0;
	}
	place() {
		if (this.row < 0 || !this.view) return;
		let e = this.element.parentElement, [t, n] = [this.view.canvas.getBoundingClientRect(), e.getBoundingClientRect()], [r, i] = this.view.projectRow(this.row), [a, o] = [r + t.left - n.left, i + t.top - n.top], { offsetWidth: s, offsetHeight: c } = this.element, l = a + g + s > e.clientWidth - 8 ? a - g - s : a + g, u = Math.min(Math.max(8, o - c / 2), e.clientHeight - c - 8);
		this.element.style.transform = `translate(${Math.round(Math.max(8, l))}px, ${Math.round(Math.max(8, u))}px)`;
	}
};
function v(t, n) {
	let { data: r, paint: i } = t, a = e("div", { className: "texts" });
	if (a.append(e("div", {
		className: "id",
		textContent: y(r, n)
	})), i.column) {
		let r = e("span", {
			className: "swatch",
			style: `background:${t.colorOf(n)}`
		}), o = i.classes ? t.names[i.codes[n]] : i.column.text(n), s = i.classes ? o : `${i.column.name} ${o}`;
		a.append(e("div", { className: "label" }, r, e("span", {
			className: "name",
			textContent: s
		})));
	}
	let o = e("dl");
	for (let t of r.columns) {
		let r = t === i.column ? "" : t.text(n);
		r && o.append(e("dt", { textContent: t.name }), e("dd", { textContent: r }));
	}
	return o.childElementCount && a.append(o), r.image ? [b(r, n, 96), a] : [a];
}
function y(e, t) {
	let n = e.ids.at(t);
	return e.hasIds ? n : `row ${n}`;
}
function b(t, n, r) {
	let { width: i, height: a } = t.meta.images, o = r / Math.max(i, a), s = e("canvas", {
		width: i,
		height: a,
		className: "thumbnail"
	});
	return s.style.width = `${Math.round(i * o)}px`, s.style.height = `${Math.round(a * o)}px`, s.setAttribute("role", "img"), s.setAttribute("aria-label", `picture of ${y(t, n)}`), t.image(n).then((e) => s.getContext("2d").putImageData(e, 0, 0)), s;
}
// src/columns.ts
var x = "", S = class {
	joined = "";
	ends = /* @__PURE__ */ new Uint32Array();
	folded = null;
	constructor(e, t) {
		this.append(e, 0, t);
	}
	append(e, t, n) {
		let r = t === 0 ? 0 : this.ends[t - 1] + 1;
		this.joined = this.joined.slice(0, r) + e, this.ends = D(this.ends, n), this.folded = null;
		for (let e = t; e < n; e++) {
			let t = this.joined.indexOf(x, r);
			this.ends[e] = t, r = t + 1;
		}
	}
	at(e) {
		return this.joined.slice(e === 0 ? 0 : this.ends[e - 1] + 1, this.ends[e]);
	}
	mark(e, t) {
		this.folded ??= re(this.joined);
		let n = 0;
		for (let r = this.folded.indexOf(e); r >= 0;) n = this.rowOf(r, n), t[n] = 1, r = this.folded.indexOf(e, this.ends[n] + 1);
	}
	rowOf(e, t) {
		let n = t, r = this.ends.length - 1;
		for (; n < r;) {
			let t = n + r >> 1;
			this.ends[t] < e ? n = t + 1 : r = t;
		}
		return n;
	}
}, C = class {
	at(e) {
		return String(e);
	}
	mark(e, t) {
		let n = Number(e);
		/^\d+$/.test(e) && n < t.length && (t[n] = 1);
	}
}, w = class {
	name;
	names;
	codes;
	missing;
	colors;
	kind = "classes";
	constructor(e, t, n, r, i) {
		this.name = e, this.names = t, this.codes = n, this.missing = r, this.colors = i;
	}
	text(e) {
		return this.names[this.codes[e]] ?? "";
	}
	get numbers() {
		let e = Float64Array.from(this.names, (e) => e.trim() === "" ? NaN : Number(e));
		return e.every(Number.isFinite) && e.length > 0 ? e : null;
	}
	mark(e, t) {
		let n = this.names.map((t) => t.toLowerCase().includes(e));
		if (n.includes(!0)) for (let e = 0; e < this.codes.length; e++) n[this.codes[e]] && (t[e] = 1);
	}
}, T = class {
	name;
	values;
	low;
	high;
	missing;
	kind = "values";
	constructor(e, t, n, r, i) {
		this.name = e, this.values = t, this.low = n, this.high = r, this.missing = i;
	}
	text(e) {
		let t = this.number(e);
		return Number.isNaN(t) ? "missing" : d(t);
	}
	number(e) {
		return this.exact(this.values[e]);
	}
	exact(e) {
		return this.values instanceof Float32Array ? f(e) : e;
	}
	mark() {}
}, ee = class {
	name;
	texts;
	kind = "texts";
	constructor(e, t) {
		this.name = e, this.texts = t;
	}
	text(e) {
		return this.texts.at(e);
	}
	mark(e, t) {
		this.texts.mark(e, t);
	}
};
function E(e, t, n) {
	return e.kind === "classes" ? new w(e.name, e.names, e.wide ? new Uint16Array(t) : new Uint8Array(t), e.missing, e.colors ?? []) : e.kind === "values" ? new T(e.name, ne(e, t), e.low, e.high, e.missing) : new ee(e.name, new S(O(t), n));
}
function te(e, t, n, r, i) {
	if (e.kind === "texts") e.texts.append(O(n), r, i);
	else if (e.kind === "values") {
		let a = ne(t, n);
		t.wide && (e.values = Float64Array.from(e.values)), (e.values = D(e.values, i)).set(a, r), [e.low, e.high, e.missing] = [
			t.low,
			t.high,
			t.missing
		];
	} else {
		let a = t.wide ? new Uint16Array(n) : new Uint8Array(n), o = t.wide ? new Uint16Array(i) : new Uint8Array(i);
		o.set(e.codes.subarray(0, r)), o.set(a, r), [e.codes, e.names, e.missing, e.colors] = [
			o,
			t.names,
			t.missing,
			t.colors ?? []
		];
	}
}
function ne(e, t) {
	return e.wide ? new Float64Array(t) : new Float32Array(t);
}
function D(e, t) {
	let n = new e.constructor(t);
	return n.set(e.subarray(0, t)), n;
}
function O(e) {
	return new TextDecoder().decode(e);
}
function re(e) {
	let t = e.toLowerCase();
	return t.length === e.length ? t : Array.from(e, (e) => e.toLowerCase().length === e.length ? e.toLowerCase() : e).join("");
}
// src/data.ts
var ie = class {
	meta;
	n;
	maps;
	columns;
	ids;
	image = null;
	neighbors = null;
	exact = null;
	constructor(e, t, n, r, i) {
		this.meta = e, this.n = t, this.maps = n, this.columns = r, this.ids = i;
	}
	get x() {
		return this.maps[0].x;
	}
	get y() {
		return this.maps[0].y;
	}
	get hasIds() {
		return this.ids instanceof S;
	}
	column(e) {
		return this.columns.find((t) => t.name === e) ?? null;
	}
	takeRows({ begin: e, meta: t, sections: n }) {
		let { n: r } = t;
		this.meta = {
			...this.meta,
			...t
		}, this.n = r;
		for (let e of this.maps) e.x = D(e.x, r), e.y = D(e.y, r), e.z &&= D(e.z, r);
		n.ids && (e === 0 && (this.ids = new S("", 0)), this.ids.append(O(n.ids), e, r)), e === 0 ? this.columns = t.columns.map((e, t) => E(e, n[`column${t}`], r)) : t.columns.forEach((t, i) => te(this.columns[i], t, n[`column${i}`], e, r));
	}
};
async function ae({ meta: e, section: t }) {
	if (e.version !== 2) throw Error(`this program reads pages of format 2, not ${e.version}`);
	let n = await Promise.all(e.maps.map(async ({ name: e, box: n }, r) => ({
		name: e,
		...oe(new Uint16Array(await t(`xy${r}`)), n)
	}))), r = await Promise.all(e.columns.map(async (n, r) => E(n, await t(`column${r}`), e.n))), i = await t("ids"), a = new ie(e, e.n, n, r, i ? new S(O(i), e.n) : new C());
	return e.images && (a.image = ce(e.images, t)), e.neighbors && (a.neighbors = le(e.neighbors, e.n, t)), a;
}
function oe(e, t) {
	let n = t.length / 2, r = e.length / n, i = Array.from({ length: n }, (e, r) => t[n + r] - t[r]), a = Math.max(...i) || 1, o = i.map((t, n) => {
		let i = new Float32Array(r), o = 2 * t / a / 65535, s = -t / a;
		for (let t = 0; t < r; t++) i[t] = e[n * r + t] * o + s;
		return i;
	});
	return {
		x: o[0],
		y: o[1],
		z: o[2] ?? null
	};
}
function se(e, t) {
	let n = t.length / 2, r = Math.max(...e.map((e, r) => t[n + r] - t[r])) || 1;
	return e.map((e, i) => (e - (t[i] + t[n + i]) / 2) * 2 / r);
}
function ce(e, t) {
	let n = /* @__PURE__ */ new Map(), r = e.height * e.width;
	return async (i) => {
		let a = Math.floor(i / e.block);
		n.has(a) || n.set(a, t(`images${a}`).then((e) => new Uint8Array(e)));
		let o = await n.get(a), s = i % e.block * r * e.channels, c = new ImageData(e.width, e.height);
		for (let t = 0; t < r; t++) {
			for (let n = 0; n < 3; n++) c.data[4 * t + n] = o[s + t * e.channels + (e.channels === 1 ? 0 : n)];
			c.data[4 * t + 3] = e.channels === 4 ? o[s + 4 * t + 3] : 255;
		}
		return c;
	};
}
function le({ k: e, bytes: t }, n, r) {
	let i = null;
	return async (a) => {
		let o = await (i ??= r("neighbors").then((e) => new Uint8Array(e)));
		if (a >= n) return [];
		let s = Array.from({ length: e }, (r, i) => {
			let s = 0;
			for (let r = t - 1; r >= 0; r--) s = s * 256 + o[(r * e + i) * n + a];
			return s;
		});
		return [...new Set(s)].filter((e) => e !== a);
	};
}
async function k(e) {
	return new Response(new Blob([e]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
}
// src/keys.ts
var ue = .12, de = [
	{
		keys: ["?"],
		text: "Show or hide this list",
		act: (e) => e.help()
	},
	{
		keys: ["/"],
		text: "Search",
		act: (e) => e.dom.get("query").focus()
	},
	{
		keys: ["+", "="],
		text: "Zoom in",
		act: (e) => void e.view.zoom(1.6)
	},
	{
		keys: ["-"],
		text: "Zoom out",
		act: (e) => void e.view.zoom(1 / 1.6)
	},
	{
		keys: ["0"],
		text: "Show everything",
		act: (e) => e.fit()
	},
	{
		keys: ["ArrowLeft"],
		text: "Move left",
		act: (e) => e.pan(-.12, 0),
		onMap: !0
	},
	{
		keys: ["ArrowRight"],
		text: "Move right",
		act: (e) => e.pan(ue, 0),
		onMap: !0
	},
	{
		keys: ["ArrowUp"],
		text: "Move up",
		act: (e) => e.pan(0, ue),
		onMap: !0
	},
	{
		keys: ["ArrowDown"],
		text: "Move down",
		act: (e) => e.pan(0, -.12),
		onMap: !0
	},
	{
		keys: ["Enter"],
		text: "Inspect the point in the middle",
		act: (e) => e.inspect(),
		onMap: !0
	},
	{
		keys: ["l"],
		text: "Draw a lasso",
		act: (e) => e.lasso()
	},
	{
		keys: ["z"],
		text: "Zoom to the selection",
		act: (e) => e.zoomToSelection()
	},
	{
		keys: ["t"],
		text: "Table of the selection",
		act: (e) => e.table()
	},
	{
		keys: ["b"],
		text: "Color by the next column",
		act: (e) => e.nextColumn()
	},
	{
		keys: ["a"],
		text: "Show all classes",
		act: (e) => e.state.showAll()
	},
	{
		keys: ["n"],
		text: "Names on the map",
		act: (e) => e.showNames()
	},
	{
		keys: ["k"],
		text: "Neighbors in the data",
		act: (e) => e.showNearest()
	},
	{
		keys: ["c"],
		text: "Contours of the density",
		act: (e) => e.showDensity()
	},
	{
		keys: ["m"],
		text: "Next map, or side by side",
		act: (e) => e.nextMap()
	},
	{
		keys: ["["],
		text: "Smaller points",
		act: (e) => e.resizePoints(.8)
	},
	{
		keys: ["]"],
		text: "Larger points",
		act: (e) => e.resizePoints(1.25)
	},
	{
		keys: ["s"],
		text: "Save a picture",
		act: (e) => e.savePicture()
	},
	{
		keys: ["d"],
		text: "Dark or light",
		act: (e) => e.theme()
	},
	{
		keys: ["p"],
		text: "Show or hide the panel",
		act: (e) => e.panel()
	},
	{
		keys: ["Escape"],
		text: "Clear the selection",
		act: (e) => e.escape()
	}
];
function fe(e) {
	let t = new Map(de.flatMap((e) => e.keys.map((t) => [t, e])));
	e.dom.page.tabIndex = -1, (e.dom.root instanceof Document ? e.dom.root : e.dom.page).addEventListener("keydown", (n) => {
		let [r] = n.composedPath();
		if (r?.matches?.("input, select, textarea") || n.ctrlKey || n.metaKey || n.altKey || e.dom.page.querySelector("dialog[open]:not(#help-dialog)")) return;
		let i = t.get(n.key.length === 1 ? n.key.toLowerCase() : n.key);
		!i || i.onMap && !r?.matches?.(".map") || (n.preventDefault(), i.act(e));
	});
}
function pe(t, n) {
	let r = {
		ArrowLeft: "←",
		ArrowRight: "→",
		ArrowUp: "↑",
		ArrowDown: "↓",
		Escape: "Esc"
	}, i = e("dl", {
		className: "keys",
		tabIndex: 0
	});
	for (let { keys: a, text: o } of de) {
		if (a[0] === "m" && !t || a[0] === "k" && !n) continue;
		let s = a.slice(0, 1).map((t) => e("kbd", { textContent: r[t] ?? (t.length === 1 ? t.toUpperCase() : t) }));
		i.append(e("dt", {}, ...s), e("dd", { textContent: o }));
	}
	for (let [t, n] of [
		["Shift + drag", "Draw around points"],
		["Ctrl, Alt", "Add to the selection, remove from it"],
		["Two fingers", "Zoom and move on a touch screen"]
	]) i.append(e("dt", {}, e("kbd", { textContent: t })), e("dd", { textContent: n }));
	return i;
}
// src/paint.ts
var me = 256, he = me, ge = .005, _e = 2e5;
function ve(e, t) {
	return {
		column: null,
		codes: new Uint8Array(e),
		classes: null,
		scale: null,
		colors: () => [t.plain]
	};
}
function A(e) {
	return e instanceof w || e instanceof T && xe(e.values) !== null;
}
function j(e) {
	return e instanceof T || e instanceof w && e.numbers !== null;
}
function ye(e) {
	return j(e) && N(e).every((e) => Number.isNaN(e) || e > 0);
}
function M(e, t) {
	let n = e instanceof w ? {
		names: e.names,
		codes: e.codes,
		missing: e.missing
	} : Se(e), r = e instanceof w ? e.colors : [];
	return {
		column: e,
		codes: n.codes,
		classes: n,
		scale: null,
		colors: (e) => {
			let i = n.names.map((n, i) => r[i] ?? t[e][i % t[e].length]);
			return n.missing ? [...i, t.missing[e]] : i;
		}
	};
}
function be(e, t, n) {
	let r = N(e), { place: i, ticks: a, low: o, high: s } = Ce(r, t), c = new Uint16Array(r.length), l = {
		kind: t,
		ticks: a,
		below: 0,
		above: 0,
		missing: 0
	};
	for (let e = 0; e < r.length; e++) {
		let t = r[e];
		Number.isNaN(t) ? (c[e] = he, l.missing++) : (t < o ? l.below++ : t > s && l.above++, c[e] = Math.round(Math.min(1, Math.max(0, i(t))) * 255));
	}
	let u = Array.from({ length: me }, (e, t) => ke(n.values, t / 255));
	return {
		column: e,
		codes: c,
		classes: null,
		scale: l,
		colors: (e) => [...u, n.missing[e]]
	};
}
function N(e) {
	if (e instanceof T) return e.values;
	if (!(e instanceof w)) return /* @__PURE__ */ new Float32Array();
	let t = e.numbers ?? new Float64Array(e.names.length).fill(NaN);
	return Float32Array.from(e.codes, (e) => t[e] ?? NaN);
}
function xe(e) {
	let t = /* @__PURE__ */ new Set();
	for (let n of e) if (!Number.isNaN(n) && (t.add(n), t.size > 256)) return null;
	return [...t].sort((e, t) => e - t);
}
function Se(e) {
	let t = xe(e.values) ?? [], n = new Map(t.map((e, t) => [e, t])), r = Uint16Array.from(e.values, (e) => n.get(e) ?? t.length);
	return {
		names: t.map((t) => d(e.exact(t))),
		codes: r,
		missing: e.missing
	};
}
function Ce(e, t) {
	let n = we(e);
	if (n.length === 0) return {
		place: () => .5,
		ticks: [],
		low: 0,
		high: 0
	};
	let r = (e) => n[Math.round(e * (n.length - 1))];
	if (t === "quantile") return {
		place: (e) => Te(n, e),
		ticks: [
			0,
			.25,
			.5,
			.75,
			1
		].map((e) => ({
			at: e,
			text: s(r(e))
		})),
		low: n[0],
		high: n.at(-1)
	};
	let i = t === "log" ? Math.log10 : (e) => e, [a, o] = [n[0], n.at(-1)], c = [r(ge), r(.995)];
	i(c[1]) - i(c[0]) < .5 * (i(o) - i(a)) && c[1] > c[0] && ([a, o] = c);
	let l = i(o) - i(a), u = (e) => l > 0 ? (i(e) - i(a)) / l : .5;
	return {
		place: u,
		ticks: (t === "log" ? Oe(a, o) : De(a, o)).map((e) => ({
			at: u(e),
			text: s(e)
		})),
		low: a,
		high: o
	};
}
function we(e) {
	let t = Math.max(1, Math.floor(e.length / _e)), n = [], [r, i] = [Infinity, -Infinity];
	for (let a = 0; a < e.length; a++) {
		let o = e[a];
		Number.isNaN(o) || (o < r && (r = o), o > i && (i = o), a % t === 0 && n.push(o));
	}
	return r <= i && n.push(r, i), Float64Array.from(n).sort();
}
function Te(e, t) {
	return (Ee(e, t, !1) + Ee(e, t, !0)) / 2 / e.length;
}
function Ee(e, t, n) {
	let [r, i] = [0, e.length];
	for (; r < i;) {
		let a = r + i >> 1;
		(n ? e[a] <= t : e[a] < t) ? r = a + 1 : i = a;
	}
	return r;
}
function De(e, t) {
	if (!(t > e)) return [e];
	let n = 10 ** Math.floor(Math.log10((t - e) / 4)), r = [
		1,
		2,
		2.5,
		5,
		10
	].map((e) => e * n).find((n) => (t - e) / n <= 5), i = [];
	for (let n = Math.ceil(e / r - 1e-9); n * r <= t + 1e-9 * r; n++) i.push(Number((n * r).toPrecision(12)));
	return i;
}
function Oe(e, t) {
	let n = [];
	for (let r = Math.ceil(Math.log10(e)); 10 ** r <= t; r++) n.push(Number((10 ** r).toPrecision(12)));
	let r = Math.ceil(n.length / 6);
	return n.length >= 2 ? n.filter((e, t) => t % r === 0) : [e, t];
}
function ke(e, t) {
	let n = t * (e.length - 1), r = Math.min(e.length - 2, Math.floor(n));
	return `#${[
		1,
		3,
		5
	].map((t) => {
		let [i, a] = [e[r], e[r + 1]].map((e) => parseInt(e.slice(t, t + 2), 16));
		return Math.round(i + (a - i) * (n - r)).toString(16).padStart(2, "0");
	}).join("")}`;
}
// src/legend.ts
var Ae = "";
function je(e, t) {
	let n = "", r = () => {}, i = () => {
		let { column: i, scale: a } = t.paint, o = JSON.stringify([
			i?.name,
			t.names,
			a,
			t.paint.classes && t.order(),
			t.data.columns.map((e) => [e.name, e.kind])
		]);
		o !== n && (r = Me(e, t)), n = o, r();
	};
	for (let e of [
		"rows",
		"shown",
		"theme",
		"paint"
	]) t.listen(e, i);
	i();
}
function Me(t, n) {
	let r = t.get("legend"), i = n.data.columns.filter((e) => e.kind !== "texts");
	if (r.replaceChildren(), r.hidden = i.length === 0, r.hidden) return () => {};
	if (r.append(Ne(n, i.map(({ name: e }) => e))), n.paint.scale) {
		let e = Ie(n);
		return r.append(Ve(n, n.paint.scale), e.block), e.update;
	}
	if (!n.paint.classes) return () => {};
	let s = e("button", {
		className: "link",
		textContent: "Show all",
		title: "Show all points (A)",
		id: "show-all"
	});
	s.onclick = () => n.showAll();
	let c = e("ul", { className: "classes" }), l = n.order();
	for (let e of l) c.append(Be(n, n.names[e], e));
	let u = P(o(l.length - Number(n.paint.classes.missing > 0), "class", "classes"));
	return l.length > 2 && u.append(Fe(n)), u.append(s), r.append(u, c), () => {
		s.disabled = !n.filtered;
		let e = n.paint.colors(n.themeName);
		[...c.children].forEach((t, r) => {
			let i = l[r];
			t.querySelector(".class").setAttribute("aria-pressed", String(n.shown[i] === 1)), t.querySelector(".n").textContent = a(n.counts[i]), t.querySelector(".swatch").style.background = e[i];
		});
	};
}
function P(t, n = "") {
	return e("h2", {}, e("span", {
		className: "name",
		textContent: t,
		title: t
	}), e("small", { textContent: n }));
}
function Ne(t, n) {
	let r = t.paint.column, i = e("select", { id: "color-by" });
	i.setAttribute("aria-label", "Color by"), i.append(e("option", {
		value: Ae,
		textContent: "nothing",
		selected: !r
	}));
	for (let t of n) i.append(e("option", {
		value: t,
		textContent: t,
		selected: t === r?.name
	}));
	i.onchange = () => t.colorBy(i.value === Ae ? null : i.value);
	let a = e("div", { className: "chooser" }, e("label", {
		htmlFor: "color-by",
		textContent: "Color by"
	}), i);
	if (!r) return a;
	let o = [], s = (e, n) => () => t.colorBy(r.name, e, n);
	j(r) && (o.push([
		"linear",
		"Linear",
		s("scale", "linear"),
		t.mode === "scale" && t.scaleKind === "linear"
	]), o.push([
		"quantile",
		"Quantiles",
		s("scale", "quantile"),
		t.mode === "scale" && t.scaleKind === "quantile"
	]), ye(r) && o.push([
		"log",
		"Log",
		s("scale", "log"),
		t.mode === "scale" && t.scaleKind === "log"
	])), A(r) && o.push([
		"classes",
		"Classes",
		s("classes"),
		t.mode === "classes"
	]);
	let c = e("div", {}, a);
	if (o.length > 1) {
		let t = e("div", { className: "kinds" });
		t.setAttribute("role", "group"), t.setAttribute("aria-label", "Scale of the colors");
		for (let [n, r, i, a] of o) {
			let o = e("button", {
				textContent: r,
				id: `as-${n}`,
				onclick: i
			});
			o.setAttribute("aria-pressed", String(a)), t.append(o);
		}
		c.append(t);
	}
	return c;
}
var Pe = [
	["name", "by name"],
	["size", "by size"],
	["data", "as in data"]
];
function Fe(t) {
	let n = e("select", {
		id: "legend-order",
		className: "order"
	});
	n.setAttribute("aria-label", "Order of the classes");
	for (let [r, i] of Pe) n.append(e("option", {
		value: r,
		textContent: i,
		selected: r === t.legendOrder
	}));
	return n.onchange = () => t.orderBy(n.value), n;
}
function Ie(t) {
	let { column: n } = t.paint, r = N(n), [i, a] = [Infinity, -Infinity];
	for (let e of r) e < i && (i = e), e > a && (a = e);
	let o = (e) => r instanceof Float32Array ? f(e) : e, s = [i, a].map((t, r) => {
		let i = e("input", {
			type: "number",
			step: "any",
			id: r ? "range-high" : "range-low",
			placeholder: d(Le(o(t))),
			title: d(o(t))
		});
		return i.setAttribute("aria-label", `${r ? "Largest" : "Smallest"} ${n.name} to show`), i;
	}), c = () => {
		let [e, r] = s.map((e, t) => e.value === "" ? [-Infinity, Infinity][t] : e.valueAsNumber);
		t.showRange(n.name, e === -Infinity && r === Infinity ? null : [e, r]);
	};
	for (let e of s) e.onchange = c;
	return {
		block: e("div", { className: "range" }, "Show", s[0], "to", s[1]),
		update: () => {
			let e = t.ranges.find(([e]) => e === n.name);
			s.forEach((t, n) => {
				let r = e?.[n ? 2 : 1];
				t.value = r === void 0 || !Number.isFinite(r) ? "" : String(r);
			});
		}
	};
}
function Le(e) {
	return Number.isInteger(e) || !Number.isFinite(e) ? e : Number(e.toPrecision(Math.max(4, Math.ceil(Math.log10(Math.abs(e) + 1)))));
}
function Re(t, n) {
	let r = t.get("filters"), i = () => {
		let t = n.hidden.map(([e, t]) => [e, o(t.length, "class", "classes") + " hidden"]), i = n.ranges.map(([e, t, n]) => [e, ze(t, n)]);
		r.hidden = t.length + i.length === 0;
		let s = [...t, ...i].map(([t, r]) => {
			let i = e("button", {
				className: "chip",
				title: `Show all of ${t}`,
				onclick: () => n.clearFilter(t)
			}, e("strong", { textContent: t }), ` ${r} `);
			return i.append(e("span", { textContent: "×" })), i.lastElementChild.setAttribute("aria-hidden", "true"), e("li", {}, i);
		});
		r.replaceChildren(P("Filters", `${a(n.visibleCount())} of ${a(n.data.n)} points`), e("ul", { className: "chips" }, ...s));
	};
	for (let e of ["shown", "rows"]) n.listen(e, i);
	i();
}
function ze(e, t) {
	return e === -Infinity ? `≤ ${d(t)}` : t === Infinity ? `≥ ${d(e)}` : `${d(e)} to ${d(t)}`;
}
function Be(t, n, r) {
	let i = e("button", {
		className: "class",
		title: n
	}, e("span", { className: "swatch" }), e("span", {
		className: "name",
		textContent: n
	}), e("span", { className: "n" }));
	i.onclick = () => t.show((e) => e === r ? 1 - t.shown[r] : t.shown[e]);
	let a = e("button", {
		className: "only",
		textContent: "only",
		title: `Show only ${n}`
	});
	return a.setAttribute("aria-label", `Show only ${n}`), a.onclick = () => {
		let e = t.shown[r] === 1 && t.shown.reduce((e, t) => e + t, 0) === 1;
		t.show((t) => Number(e || t === r));
	}, e("li", {}, i, a);
}
function Ve(t, n) {
	let r = t.paint.colors(t.themeName), i = e("div", {
		className: "bar",
		style: `background:linear-gradient(90deg,${r.slice(0, 256).filter((e, t) => t % 15 == 0).join(",")})`
	}), s = e("div", { className: "ticks" });
	for (let { at: t, text: r } of n.ticks) {
		let n = t < .08 ? " first" : t > .92 ? " last" : "";
		s.append(e("span", {
			textContent: r,
			className: `tick${n}`,
			style: `left:${(100 * t).toFixed(2)}%`
		}));
	}
	let c = e("div", { className: "scale" }, i, s), l = n.below + n.above;
	if (l && c.append(e("p", {
		className: "hint",
		id: "clipped",
		textContent: `${o(l, "point")} beyond the ends of the scale`
	})), n.missing) {
		let t = e("span", {
			className: "swatch",
			style: `background:${r[256]}`
		});
		c.append(e("p", {
			className: "missing",
			id: "missing"
		}, t, e("span", {
			className: "name",
			textContent: "missing"
		}), e("span", {
			className: "n",
			textContent: a(n.missing)
		})));
	}
	return c;
}
// src/frames.ts
var F = 40, He = 1, Ue = 2, We = 3, Ge = class {
	steps = /* @__PURE__ */ new Uint16Array();
	async decode(e) {
		let t = new DataView(e, 0, F), n = t.getUint8(0);
		if (n === We) return Ke(e);
		let r = t.getUint8(1), i = await k(e.slice(F)), a = {
			run: t.getUint32(4, !0),
			epoch: t.getUint32(8, !0),
			epochs: t.getUint32(12, !0),
			exact: n === Ue
		};
		if (n === Ue) {
			let e = new Float32Array(i), t = e.length / r, [n, o, s] = [
				0,
				1,
				2
			].map((n) => e.slice(n * t, (n + 1) * t));
			return {
				...a,
				x: n,
				y: o,
				z: r > 2 ? s : null
			};
		}
		let o = new Uint16Array(i), s = o.length / r;
		if (n === He) {
			let e = this.steps.length / r;
			for (let t = 0; t < r; t++) for (let n = 0; n < e; n++) o[t * s + n] = o[t * s + n] + this.steps[t * e + n];
		}
		this.steps = o;
		let [c, l, u] = [
			0,
			1,
			2
		].map((e) => {
			let [n, i] = [t.getFloat32(16 + 4 * e, !0), t.getFloat32(28 + 4 * e, !0)];
			return Float32Array.from({ length: e < r ? s : 0 }, (t, r) => n + o[e * s + r] / 65535 * (i - n));
		});
		return {
			...a,
			x: c,
			y: l,
			z: r > 2 ? u : null
		};
	}
};
async function Ke(e) {
	let t = new DataView(e).getUint32(F, !0), n = 44 + t, { begin: r, meta: i, sections: a } = JSON.parse(new TextDecoder().decode(new Uint8Array(e, 44, t))), o = {};
	for (let [t, r] of Object.entries(a)) o[t] = await k(e.slice(n, n + r)), n += r;
	return {
		begin: r,
		meta: i,
		sections: o
	};
}
function qe(e, t) {
	let n = [
		["x", e.x],
		["y", e.y],
		["z", e.z]
	].filter(([, e]) => e !== null), r = n.map(([, e]) => e.reduce(([e, t], n) => [Math.min(e, n), Math.max(t, n)], [Infinity, -Infinity])), i = Math.max(...r.map(([e, t]) => t - e)) || 1;
	n.forEach(([e, n], a) => {
		let [o, s] = r[a], c = t[e];
		if (c) for (let e = 0; e < n.length; e++) c[e] = (n[e] - (o + s) / 2) * 2 / i;
	});
}
// src/turning.ts
var Je = 60, Ye = 1e-12;
function Xe(e, t) {
	let n = Math.min(e[0].length, t[0].length), [r, i] = [e, t].map((e) => e.map((e) => $e(e, n))), a = e.map((e, a) => t.map((t, o) => I(n, (n) => (e[n] - r[a]) * (t[n] - i[o])))), o = e.reduce((e, t, i) => e + I(n, (e) => (t[e] - r[i]) ** 2), 0), s = Ze(a);
	if (!s || !(o > 0)) return;
	let c = a.reduce((e, t, n) => e + t.reduce((e, t, r) => e + t * s[n][r], 0), 0) / o;
	if (!(c > 0)) return;
	let l = e.map((e) => e.slice());
	e.forEach((t, n) => {
		for (let a = 0; a < t.length; a++) {
			let o = i[n];
			for (let t = 0; t < e.length; t++) o += (l[t][a] - r[t]) * s[t][n] * c;
			t[a] = o;
		}
	});
}
function Ze(e) {
	let t = Math.max(...e.flat().map(Math.abs)), n = e.map((e) => e.map((e) => e / t));
	for (let e = 0; e < Je; e++) {
		let e = Qe(n);
		if (!e) return null;
		let t = n.map((t, n) => t.map((t, r) => (t + e[r][n]) / 2)), r = Math.max(...t.flatMap((e, t) => e.map((e, r) => Math.abs(e - n[t][r]))));
		if (n = t, r < Ye) break;
	}
	return n;
}
function Qe(e) {
	let t = e.length, n = e.map((e, t) => [...e, ...e.map((e, n) => Number(t === n))]);
	for (let e = 0; e < t; e++) {
		let r = e;
		for (let i = e + 1; i < t; i++) Math.abs(n[i][e]) > Math.abs(n[r][e]) && (r = i);
		[n[e], n[r]] = [n[r], n[e]];
		let i = n[e][e];
		if (!(Math.abs(i) > 1e-9)) return null;
		n[e] = n[e].map((e) => e / i);
		for (let r = 0; r < t; r++) {
			if (r === e) continue;
			let t = n[r][e];
			n[r] = n[r].map((r, i) => r - t * n[e][i]);
		}
	}
	return n.map((e) => e.slice(t));
}
function $e(e, t) {
	return I(t, (t) => e[t]) / t;
}
function I(e, t) {
	let n = 0;
	for (let r = 0; r < e; r++) n += t(r);
	return n;
}
// src/live.ts
var et = {
	starting: "Starting",
	neighbors: "Finding neighbors",
	graph: "Building the graph",
	initialize: "Initializing",
	layout: "Optimizing the layout",
	train: "Training"
}, tt = 300, nt = 5e3, rt = 5e4, it = 8, at = 3e3, ot = class {
	page;
	live;
	frames = 0;
	exact = null;
	status = {
		state: "waiting",
		stage: "",
		epoch: 0,
		n_epochs: 0,
		message: "",
		growth: null
	};
	socket = null;
	unsaid = [];
	retry = tt;
	touched = !1;
	queue = Promise.resolve();
	run = null;
	before = null;
	questions = /* @__PURE__ */ new Map();
	arrivals = [];
	grown = !1;
	parts = {
		title: e("strong"),
		bar: e("progress", { max: 1 }),
		note: e("p", { className: "hint" }),
		facts: e("dl", {
			className: "facts",
			hidden: !0
		}),
		pause: e("button"),
		again: e("button", { textContent: "Run again" })
	};
	constructor(e, t) {
		this.page = e, this.live = t, this.build(), this.connect();
		for (let t of [
			"wheel",
			"pointerdown",
			"keydown"
		]) e.dom.get("map").addEventListener(t, () => this.touched = !0, { passive: !0 });
		e.state.listen("selected", () => this.say({
			type: "select",
			rows: e.state.selected
		}));
	}
	connect() {
		let e = new URL(this.live.feed, location.href);
		e.protocol = "ws:";
		let t = new WebSocket(e), n = new Ge();
		t.binaryType = "arraybuffer", t.onopen = () => {
			this.retry = tt;
			for (let e of this.unsaid.splice(0)) this.say(e);
		}, t.onmessage = ({ data: e }) => {
			if (typeof e == "string") {
				let t = JSON.parse(e);
				return t.type === "neighbors" ? this.answer(t) : this.told(t);
			}
			let r = this.queue.then(() => this.socket === t ? this.draw(e, n) : void 0);
			this.queue = r.catch(() => t.close());
		}, t.onclose = () => {
			this.parts.note.textContent = "Connection lost; reconnecting", setTimeout(() => this.connect(), this.retry), this.retry = Math.min(nt, this.retry * 2);
		}, this.socket = t;
	}
	drop() {
		this.socket?.close();
	}
	say(e) {
		this.socket?.readyState === WebSocket.OPEN ? this.socket.send(JSON.stringify(e)) : this.unsaid.push(e);
	}
	async draw(e, t) {
		let { state: n, view: r, names: i, card: a } = this.page, o = await t.decode(e);
		if ("begin" in o) return this.take(o);
		if (o.x.length !== n.data.n) return location.reload();
		await this.place(o), this.frames++, this.exact = n.data.exact = o.exact ? o : null, this.offerNeighbors(), this.page.dom.get("busy").hidden = !0, r.fresh &&= this.freshness(o.exact), this.grown || r.fresh || this.frames === 1 ? r.redraw() : r.moved(), this.grown = !1, await new Promise((e) => requestAnimationFrame(e)), a.place(), (o.exact || n.data.n <= rt || this.frames % it === 1) && (r.settle(), i.locate(), this.page.panes[0].density.outdated(), this.touched || r.fit(!1)), this.socket?.readyState === WebSocket.OPEN && this.say({ type: "drawn" });
	}
	async place(e) {
		let { view: t, state: n } = this.page, r = n.data.maps[0], i = this.run !== null && e.run !== this.run;
		i && (this.before = this.frames ? st(r) : null), this.run = e.run;
		let a = i ? this.before : null;
		qe(e, r);
		let o = ({ x: e, y: t, z: n }) => n ? [
			e,
			t,
			n
		] : [e, t];
		this.before?.x.length === r.x.length && Xe(o(r), o(this.before)), a?.x.length === r.x.length && t.places === r && (await t.morph(a, st(r)), t.places = r);
	}
	offerNeighbors() {
		let { state: e } = this.page, t = this.exact !== null && this.live.neighbors;
		t !== (e.data.neighbors !== null) && (e.data.neighbors = t ? (e) => this.ask(e) : null, this.page.updateTools());
	}
	ask(e) {
		return this.say({
			type: "neighbors",
			row: e
		}), new Promise((t) => this.questions.set(e, [...this.questions.get(e) ?? [], t]));
	}
	answer({ row: e, rows: t }) {
		for (let n of this.questions.get(e) ?? []) n(t);
		this.questions.delete(e);
	}
	take(e) {
		let { state: t, view: n } = this.page, r = t.data.n;
		t.data.takeRows(e), n.fresh = new Uint8Array(t.data.n), t.takeRows(), this.grown = !0, t.data.n < r ? this.arrivals = [] : r > 0 && this.arrivals.push({
			row: r,
			at: performance.now()
		});
	}
	freshness(e) {
		let t = new Uint8Array(this.page.state.data.n);
		this.arrivals = e ? [] : this.arrivals.slice(-2);
		let n = this.arrivals.at(-1);
		return !n || performance.now() - n.at > at ? t : (this.arrivals.length === 2 && t.fill(1, this.arrivals[0].row), t.fill(2, n.row));
	}
	build() {
		let t = this.page.dom.get("live");
		t.hidden = !1, this.parts.pause.onclick = () => this.say({ type: this.status.state === "paused" ? "resume" : "pause" });
		let n = this.live.parameters.map((t) => e("label", {}, e("span", { textContent: t.name.replaceAll("_", " ") }), dt(t)));
		this.parts.again.onclick = () => {
			let e = {};
			for (let n of t.querySelectorAll("input[type=number]")) e[n.name] = n.valueAsNumber;
			for (let n of t.querySelectorAll("select")) e[n.name] = n.value;
			this.say({
				type: "rerun",
				parameters: e
			});
		};
		let r = e("div", { className: "actions" }, this.parts.pause, this.parts.again);
		this.live.projects && r.append(this.upload()), this.live.saves && r.append(this.saver("map", "Save map", "map.csv"), this.saver("model", "Save model", "map.vicinal")), t.append(P("Layout"), e("div", { className: "stage" }, this.parts.title, this.parts.bar, this.parts.note, this.parts.facts), e("div", { className: "parameters" }, ...n), r), this.live.parameters.length === 0 && (this.parts.again.hidden = !0);
	}
	saver(t, n, r) {
		let i = e("button", {
			textContent: n,
			id: `save-${t}`
		});
		return i.onclick = async () => {
			let e = await fetch(t);
			e.ok ? h(r, await e.blob()) : this.parts.note.textContent = (await e.json()).error;
		}, i;
	}
	upload() {
		let t = e("input", {
			type: "file",
			id: "upload",
			hidden: !0
		}), n = e("button", {
			textContent: "Project…",
			title: "Place the rows of a file on this map",
			id: "project"
		});
		return n.onclick = () => t.click(), t.onchange = async () => {
			let e = t.files?.[0];
			if (!e) return;
			this.parts.note.textContent = `Placing ${e.name}`;
			let n = await (await fetch(`project?name=${encodeURIComponent(e.name)}`, {
				method: "POST",
				body: e
			})).json();
			n.error ? this.parts.note.textContent = n.error : location.reload();
		}, e("span", {}, t, n);
	}
	told(e) {
		this.status = e;
		let { title: t, bar: n, note: r, facts: i, pause: a } = this.parts, o = e.state === "running" || e.state === "paused", { done: s, note: c, stage: l } = e.growth ? lt(e.growth) : ct(e);
		t.textContent = o ? e.state === "paused" ? "Paused" : l : {
			done: e.stage || "Done",
			failed: "Failed",
			waiting: "Waiting"
		}[e.state], this.page.dom.get("busy-text").textContent = t.textContent, r.textContent = e.message || (o || !e.growth ? c : ""), i.hidden = !e.growth, e.growth && i.replaceChildren(...ut(e.growth)), n.hidden = !o, s === null ? n.removeAttribute("value") : n.value = s, a.hidden = !o, a.replaceChildren(m(e.state === "paused" ? "play" : "pause"), e.state === "paused" ? "Resume" : "Pause");
	}
};
function st({ name: e, x: t, y: n, z: r }) {
	return {
		name: e,
		x: t.slice(),
		y: n.slice(),
		z: r?.slice() ?? null
	};
}
function ct({ stage: e, epoch: t, n_epochs: n }) {
	let r = n > 1;
	return {
		stage: et[e] ?? e,
		done: r ? t / n : null,
		note: r ? `Epoch ${a(t)} of ${a(n)}` : ""
	};
}
function lt({ rows: e, total: t, placed: n }) {
	let r = t === null || e < t;
	return {
		stage: r ? "Rows are arriving" : "Settling the map",
		done: t === null ? null : n / t,
		note: r ? "Larger points are the newest." : ""
	};
}
function ut({ rows: t, total: n, placed: r, pending: i, coverage: o, trustworthiness: s }) {
	return [
		[
			"read",
			n === null ? a(t) : `${a(t)} of ${a(n)}`,
			"Rows read from the file"
		],
		[
			"placed",
			a(r),
			"Rows placed on the map"
		],
		[
			"pending",
			a(i),
			"Rows that wait for neighbors or still move"
		],
		[
			"coverage",
			`${(100 * o).toFixed(1)} %`,
			"Rows whose neighbors are known and up to date"
		],
		[
			"trustworthiness",
			s === null ? "–" : s.toFixed(3),
			"Whether neighbors in the map are neighbors in the data, on a sample of the rows so far"
		]
	].flatMap(([t, n, r]) => [e("dt", {
		textContent: t,
		title: r
	}), e("dd", { textContent: n })]);
}
function dt(t) {
	if ("choices" in t) {
		let n = e("select", { name: t.name });
		return n.append(...t.choices.map((n) => e("option", {
			value: n,
			textContent: n,
			selected: n === t.value
		}))), n;
	}
	return e("input", {
		type: "number",
		name: t.name,
		value: String(t.value),
		min: String(t.low),
		max: String(t.high),
		step: String(t.step)
	});
}
// src/beyond.ts
var L = 12, ft = 26, pt = 76, mt = .6, ht = class {
	layer;
	view;
	constructor(e, t) {
		this.layer = e, this.view = t;
	}
	place() {
		let { outliers: e, eye: t, overview: n } = this.view, r = /* @__PURE__ */ new Map();
		for (let i of t.distance < mt * n ? [] : e) {
			let [e, n] = this.view.projectRow(i);
			if (e >= 0 && n >= 0 && e <= t.width && n <= t.height) continue;
			let a = Math.atan2(n - t.height / 2, e - t.width / 2), o = Math.round(a / 2 / Math.PI * L + L) % L;
			r.set(o, [...r.get(o) ?? [], {
				row: i,
				angle: a
			}]);
		}
		this.layer.replaceChildren(...[...r.values()].map((e) => this.mark(e)));
	}
	mark(t) {
		let { width: n, height: r } = this.view.eye, i = t[Math.floor(t.length / 2)].angle, [a, s] = [Math.cos(i), Math.sin(i)], c = Math.min((n / 2 - ft) / Math.max(1e-6, Math.abs(a)), (r / 2 - (s > 0 ? pt : ft)) / Math.max(1e-6, Math.abs(s))), l = `${o(t.length, "point")} far outside`, u = e("span", {
			textContent: "→",
			style: `transform:rotate(${(i * 180 / Math.PI).toFixed(0)}deg)`
		}), d = e("button", {
			title: `Show ${l}`,
			onclick: () => void this.view.zoomTo(t.map(({ row: e }) => e))
		}, u, String(t.length));
		return d.setAttribute("aria-label", `Show ${l}`), d.style.left = `${Math.round(n / 2 + a * c)}px`, d.style.top = `${Math.round(r / 2 + s * c)}px`, d;
	}
}, R = 240, z = 1.15, gt = 2, _t = 3, vt = [
	.95,
	.8,
	.6,
	.4,
	.2
], yt = class {
	canvas;
	state;
	view;
	wanted = !1;
	contours = [];
	stale = !0;
	constructor(e, t, n) {
		this.canvas = e, this.state = t, this.view = n;
		for (let e of ["shown", "rows"]) t.listen(e, () => this.outdated());
		t.listen("theme", () => this.place());
	}
	get possible() {
		return !this.view.eye.deep;
	}
	toggle() {
		return this.wanted = !this.wanted && this.possible, this.place(), this.wanted;
	}
	outdated() {
		this.stale = !0, this.place();
	}
	place() {
		if (this.canvas.hidden = !this.wanted, !this.wanted) return;
		this.stale && (this.contours = bt(this.view.places, (e) => this.view.shows(e))), this.stale = !1;
		let { width: e, height: t, unit: n, center: r } = this.view.eye, i = devicePixelRatio || 1;
		[this.canvas.width, this.canvas.height] = [Math.round(e * i), Math.round(t * i)];
		let a = this.canvas.getContext("2d");
		a.setTransform(n * i, 0, 0, -n * i, (e / 2 - r[0] * n) * i, (t / 2 + r[1] * n) * i), a.strokeStyle = B(this.state), a.lineWidth = 1.2 / n, this.contours.forEach((e, t) => {
			a.globalAlpha = .35 + .55 * t / vt.length, a.beginPath();
			for (let [t, n, r, i] of e) a.moveTo(t, n), a.lineTo(r, i);
			a.stroke();
		});
	}
};
function B(e) {
	return e.themeName === "dark" ? "#f2f4f7" : "#1b1e24";
}
function bt({ x: e, y: t }, n) {
	let r = /* @__PURE__ */ new Float32Array(57600), i = R / (2 * z), a = 0;
	for (let o = 0; o < e.length; o++) {
		if (!n(o)) continue;
		let [s, c] = [Math.floor((e[o] + z) * i), Math.floor((t[o] + z) * i)];
		s < 0 || c < 0 || s >= R || c >= R || (r[c * R + s]++, a++);
	}
	for (let e = 0; e < _t; e++) r = xt(xt(r, 1), R);
	return vt.map((e) => Ct(r, St(r, e * a), (e) => e / i - z));
}
function xt(e, t) {
	let n = new Float32Array(e.length);
	for (let r = 0; r < e.length; r++) {
		let i = t === 1 ? r % R : Math.floor(r / R), a = 0;
		for (let n = -2; n <= gt; n++) i + n >= 0 && i + n < R && (a += e[r + n * t]);
		n[r] = a / 5;
	}
	return n;
}
function St(e, t) {
	let n = e.slice().sort().reverse(), r = 0;
	for (let e of n) if (r += e, r >= t) return e;
	return 0;
}
function Ct(e, t, n) {
	let r = [];
	if (!(t > 0)) return r;
	for (let i = 0; i + 1 < R; i++) for (let a = 0; a + 1 < R; a++) {
		let o = i * R + a, s = [
			e[o],
			e[o + 1],
			e[o + R + 1],
			e[o + R]
		], c = [];
		for (let e = 0; e < 4; e++) {
			let [r, o] = [s[e], s[(e + 1) % 4]];
			if (r > t == o > t) continue;
			let l = (t - r) / (o - r), [u, d] = [
				[l, 0],
				[1, l],
				[1 - l, 1],
				[0, 1 - l]
			][e];
			c.push([n(a + u + .5), n(i + d + .5)]);
		}
		for (let e = 0; e + 1 < c.length; e += 2) r.push([...c[e], ...c[e + 1]]);
	}
	return r;
}
// src/gestures.ts
var V = {
	mouse: 9,
	touch: 22
}, wt = 5, Tt = 3, Et = 300, Dt = class {
	view;
	actions;
	lasso = !1;
	pointers = /* @__PURE__ */ new Map();
	polygon = null;
	start = null;
	dragged = !1;
	lastTap = {
		at: 0,
		x: 0,
		y: 0
	};
	constructor(e, t) {
		this.view = e, this.actions = t;
		let { canvas: n } = e;
		n.addEventListener("pointerdown", (e) => this.down(e)), n.addEventListener("pointermove", (e) => this.move(e)), n.addEventListener("pointerup", (e) => this.up(e)), n.addEventListener("pointercancel", (e) => this.cancel(e)), n.addEventListener("pointerleave", (e) => e.pointerType !== "touch" && this.pointers.size === 0 && t.hover(-1)), n.addEventListener("contextmenu", (t) => e.eye.deep && t.preventDefault()), n.addEventListener("wheel", (e) => this.wheel(e), { passive: !1 });
	}
	at(e) {
		let { left: t, top: n } = this.view.canvas.getBoundingClientRect();
		return {
			x: e.clientX - t,
			y: e.clientY - n
		};
	}
	down(e) {
		let t = this.at(e);
		this.view.canvas.setPointerCapture(e.pointerId), this.pointers.set(e.pointerId, t), this.pointers.size > 1 ? (this.polygon = null, this.actions.drawing([]), this.dragged = !0) : (this.start = t, this.dragged = !1, this.polygon = this.lasso || e.shiftKey ? [[t.x, t.y]] : null);
	}
	move(e) {
		let t = this.at(e), n = this.pointers.get(e.pointerId);
		if (!n) {
			e.pointerType !== "touch" && this.actions.hover(this.view.nearest(t.x, t.y, V.mouse));
			return;
		}
		if (this.pointers.size > 1) return this.pinch(e.pointerId, t);
		if (!this.dragged && Math.hypot(t.x - this.start.x, t.y - this.start.y) < wt) return;
		if (this.dragged = !0, this.pointers.set(e.pointerId, t), this.polygon) {
			let [e, n] = this.polygon.at(-1);
			if (Math.hypot(t.x - e, t.y - n) < Tt) return;
			this.polygon.push([t.x, t.y]), this.actions.drawing(this.polygon);
			return;
		}
		let [r, i] = [t.x - n.x, t.y - n.y];
		this.view.eye.deep && e.button !== 2 && !(e.buttons & 2) && !e.ctrlKey ? this.view.eye.orbit(r / 160, i / 160) : this.view.eye.pan(r, i), this.view.moves(), this.actions.moved();
	}
	pinch(e, t) {
		let n = [...this.pointers.values()];
		this.pointers.set(e, t);
		let r = [...this.pointers.values()], [i, a] = [Ot(n), Ot(r)];
		this.view.eye.pan(a.x - i.x, a.y - i.y), i.size > 0 && this.view.eye.zoom(a.size / i.size, a.x, a.y), this.view.moves(), this.actions.moved();
	}
	up(e) {
		let t = this.at(e), n = this.pointers.size === 1;
		if (this.pointers.delete(e.pointerId), !n) return;
		let r = e.altKey ? "remove" : e.ctrlKey || e.metaKey ? "add" : "replace", i = this.polygon;
		if (this.polygon = null, i && this.dragged) {
			this.actions.drawing([]), i.length > 2 && this.actions.lasso(i, r);
			return;
		}
		if (this.dragged) return;
		let a = e.pointerType === "touch";
		a && this.isDoubleTap(t) ? (this.view.eye.zoom(2, t.x, t.y), this.view.moves()) : this.actions.pick(this.view.nearest(t.x, t.y, a ? V.touch : V.mouse), r);
	}
	isDoubleTap(e) {
		let t = performance.now(), n = t - this.lastTap.at < Et && Math.hypot(e.x - this.lastTap.x, e.y - this.lastTap.y) < 30;
		return this.lastTap = {
			at: n ? 0 : t,
			...e
		}, n;
	}
	cancel(e) {
		this.pointers.delete(e.pointerId), this.polygon = null, this.actions.drawing([]);
	}
	wheel(e) {
		e.preventDefault();
		let { x: t, y: n } = this.at(e), r = e.deltaMode === 1 ? 16 : e.deltaMode === 2 ? 400 : 1, i = e.ctrlKey ? .01 : .0015;
		this.view.eye.zoom(Math.exp(-e.deltaY * r * i), t, n), this.view.moves(), this.actions.moved();
	}
};
function Ot(e) {
	let [t, n] = e;
	return {
		x: (t.x + n.x) / 2,
		y: (t.y + n.y) / 2,
		size: Math.hypot(t.x - n.x, t.y - n.y)
	};
}
// src/crowd.ts
var H = 14, kt = 4e4, At = class {
	rows;
	seen;
	begins;
	columns;
	lines;
	complete;
	constructor(e, t) {
		let { width: n, height: r } = e.eye, i = Math.max(1, Math.ceil(t.data.n / kt)), a = jt(e, i);
		i > 1 && a.rows.length * i <= kt && (a = jt(e, i = 1)), this.complete = i === 1;
		let { rows: o, seen: s } = a;
		this.columns = Math.ceil(n / H) || 1, this.lines = Math.ceil(r / H) || 1, this.begins = new Uint32Array(this.columns * this.lines + 1);
		let c = o.map((e, t) => Math.floor(s[2 * t + 1] / H) * this.columns + Math.floor(s[2 * t] / H));
		for (let e of c) this.begins[e + 1]++;
		for (let e = 0; e + 1 < this.begins.length; e++) this.begins[e + 1] += this.begins[e];
		let l = this.begins.slice();
		this.rows = new Uint32Array(c.length), this.seen = new Float32Array(2 * c.length), c.forEach((e, t) => {
			let n = l[e]++;
			this.rows[n] = o[t], this.seen[2 * n] = s[2 * t], this.seen[2 * n + 1] = s[2 * t + 1];
		});
	}
	get size() {
		return this.rows.length;
	}
	list() {
		return Array.from(this.rows, (e, t) => ({
			row: e,
			x: this.seen[2 * t],
			y: this.seen[2 * t + 1]
		}));
	}
	within({ left: e, right: t, top: n, bottom: r }, i, a) {
		let o = 0, s = Math.max(0, Math.floor(e / H)), c = Math.min(this.columns - 1, Math.floor(t / H));
		for (let l = Math.max(0, Math.floor(n / H)); l <= Math.min(this.lines - 1, Math.floor(r / H)); l++) for (let u = this.begins[l * this.columns + s]; u < this.begins[l * this.columns + c + 1]; u++) {
			let [s, c] = [this.seen[2 * u], this.seen[2 * u + 1]];
			if (!(s < e || s > t || c < n || c > r)) {
				if (a(this.rows[u])) return Infinity;
				if (++o > i) return o;
			}
		}
		return o;
	}
};
function jt(e, t) {
	let { eye: n, places: r } = e, i = n.projectAll(r, t), [a, o] = [[], []];
	for (let r = 0; 2 * r < i.length; r++) {
		let [s, c] = [i[2 * r], i[2 * r + 1]];
		s < 0 || c < 0 || s >= n.width || c >= n.height || !e.shows(r * t) || (a.push(r * t), o.push(s, c));
	}
	return {
		rows: a,
		seen: o
	};
}
// src/camera.ts
var Mt = .22, Nt = 1e-4, Pt = 20, Ft = class {
	width;
	height;
	deep;
	center = [0, 0];
	distance = 1.1;
	turned = [
		1,
		0,
		0,
		0,
		1,
		0,
		0,
		0,
		1
	];
	constructor(e, t, n) {
		this.width = e, this.height = t, this.deep = n, n && this.orbit(.5, .35);
	}
	get unit() {
		return this.height / 2 / this.distance;
	}
	get camera() {
		return {
			turn: Float32Array.from(this.turned),
			center: this.center,
			distance: this.distance,
			perspective: this.deep ? Mt : 0
		};
	}
	project(e, t, n = 0) {
		let [r, i] = [e, t];
		if (this.deep) {
			let a = this.turned, o = 1 - (a[2] * e + a[5] * t + a[8] * n) * Mt;
			r = (a[0] * e + a[3] * t + a[6] * n) / o, i = (a[1] * e + a[4] * t + a[7] * n) / o;
		}
		return [this.width / 2 + (r - this.center[0]) * this.unit, this.height / 2 - (i - this.center[1]) * this.unit];
	}
	projectAll({ x: e, y: t, z: n }, r = 1) {
		let i = new Float32Array(2 * Math.ceil(e.length / r)), { unit: a } = this, [o, s] = [this.width / 2 - this.center[0] * a, this.height / 2 + this.center[1] * a];
		for (let c = 0, l = 0; c < e.length; c += r, l += 2) this.deep ? i.set(this.project(e[c], t[c], n ? n[c] : 0), l) : [i[l], i[l + 1]] = [o + e[c] * a, s - t[c] * a];
		return i;
	}
	unproject(e, t) {
		return [this.center[0] + (e - this.width / 2) / this.unit, this.center[1] - (t - this.height / 2) / this.unit];
	}
	pan(e, t) {
		this.center = [this.center[0] - e / this.unit, this.center[1] + t / this.unit];
	}
	zoom(e, t = this.width / 2, n = this.height / 2) {
		let [r, i] = this.unproject(t, n);
		this.distance = Math.min(Pt, Math.max(Nt, this.distance / e));
		let [a, o] = this.unproject(t, n);
		this.center = [this.center[0] + r - a, this.center[1] + i - o];
	}
	orbit(e, t) {
		let [n, r, i, a] = [
			Math.cos(e),
			Math.sin(e),
			Math.cos(t),
			Math.sin(t)
		];
		this.turned = It([
			1,
			0,
			0,
			0,
			i,
			a,
			0,
			-a,
			i
		], It([
			n,
			0,
			-r,
			0,
			1,
			0,
			r,
			0,
			n
		], this.turned));
	}
	get rotation() {
		return this.turned;
	}
	set rotation(e) {
		e.length === 9 && e.every(Number.isFinite) && (this.turned = e);
	}
};
function It(e, t) {
	let n = [];
	for (let r = 0; r < 3; r++) for (let i = 0; i < 3; i++) n.push(e[i] * t[3 * r] + e[3 + i] * t[3 * r + 1] + e[6 + i] * t[3 * r + 2]);
	return n;
}
function U({ x: e, y: t, z: n }, r) {
	if (n) {
		let r = Math.max(...[
			e,
			t,
			n
		].map((e) => e.reduce((e, t) => Math.max(e, Math.abs(t)), 0)));
		return {
			x: 0,
			y: 0,
			width: 2.4 * r,
			height: 2.4 * r
		};
	}
	let [[i, a], [o, s]] = [e, t].map((e) => Ut(r ? Float32Array.from(r, (t) => e[t]) : e));
	return Ht(i, a, o, s);
}
var Lt = .005, Rt = 1e5, zt = 50;
function Bt({ x: e, y: t, z: n }) {
	if (n || e.length < zt) return null;
	let [[r, i], [a, o]] = [e, t].map((e) => {
		let t = Math.max(1, Math.floor(e.length / Rt)), n = (t === 1 ? e.slice() : e.filter((e, n) => n % t === 0)).sort(), r = Math.ceil(Lt * n.length), [i, a] = [n[r], n[n.length - 1 - r]], o = .5 * (a - i) / 2;
		return [i - o, a + o];
	}), [s, c, l, u] = [
		Infinity,
		-Infinity,
		Infinity,
		-Infinity
	];
	for (let n = 0; n < e.length; n++) {
		let [d, f] = [e[n], t[n]];
		d < r || d > i || f < a || f > o || (d < s && (s = d), d > c && (c = d), f < l && (l = f), f > u && (u = f));
	}
	return Ht(s, c, l, u);
}
function Vt({ x: e, y: t }, n) {
	let r = [];
	for (let i = 0; i < e.length; i++) (Math.abs(e[i] - n.x) > .50001 * n.width || Math.abs(t[i] - n.y) > .50001 * n.height) && r.push(i);
	return r;
}
function Ht(e, t, n, r) {
	return {
		x: (e + t) / 2,
		y: (n + r) / 2,
		width: t - e || .001,
		height: r - n || .001
	};
}
function Ut(e) {
	let [t, n] = [Infinity, -Infinity];
	for (let r of e) r < t && (t = r), r > n && (n = r);
	return [t, n];
}
// src/islands.ts
var Wt = {
	flat: {
		fewest: 10,
		most: 64
	},
	deep: {
		fewest: 6,
		most: 20
	}
}, Gt = 3, Kt = .08, qt = .004, Jt = 6, Yt = .01, W = 32, Xt = 100, Zt = 2e5;
function Qt(e, t, n, r = () => !0) {
	let i = [];
	for (let t = 0; t < e.x.length; t++) r(t) && i.push(t);
	let a = Math.max(1, Math.ceil(i.length / Zt)), o = a === 1 ? i : i.filter((e, t) => t % a === 0), s = o.length, c = new en(e, t, n.length, i, o), l = n.map(() => []);
	for (let e of o) l[t[e]]?.push(e);
	let u = [];
	return l.forEach((t, r) => {
		if (t.length === 0) return;
		let i = t.length / s, o = Math.max(Math.min(Jt, t.length), Math.min(Kt * t.length, qt * s)), l = c.connected(t, (e) => c.names(e, r, i)).filter((e) => e.length >= o);
		l.sort((e, t) => t.length - e.length);
		let d = l.map((e) => ({
			group: e,
			...c.anchor(e, r, i)
		})).filter(({ typical: e }) => e);
		if (d.length === 0 && i >= Yt) {
			let e = c.purest(t, r);
			d.push({
				group: e,
				...c.anchor(e, r, i)
			});
		}
		d.forEach(({ group: t, row: i }, o) => {
			let s = {
				x: e.x[i],
				y: e.y[i],
				z: e.z ? e.z[i] : 0
			};
			u.push({
				text: n[r],
				code: r,
				...s,
				radius: an(e, t),
				size: t.length * a,
				level: o === 0 ? 0 : 1
			});
		});
	}), u.sort((e, t) => e.level - t.level || t.size - e.size);
}
function $t(e, t) {
	return e.map(({ name: e, place: n, size: r, level: i }) => {
		let [a, o, s] = se(n, t);
		return {
			text: e,
			code: -1,
			x: a,
			y: o,
			z: s ?? 0,
			size: r,
			level: i,
			radius: .12 / 2 ** i
		};
	}).sort((e, t) => e.level - t.level || t.size - e.size);
}
var en = class {
	places;
	codes;
	classes;
	side;
	deep;
	cells;
	counts;
	totals;
	second;
	members;
	begins;
	constructor(e, t, n, r, i) {
		this.places = e, this.codes = t, this.classes = n;
		let { x: a, y: o, z: s } = e, c = Bt(e) ?? U(e), l = Math.max(c.width, c.height) / 2;
		this.deep = s !== null;
		let { fewest: u, most: d } = this.deep ? Wt.deep : Wt.flat;
		this.side = Math.min(d, Math.max(u, Math.round(this.deep ? Math.cbrt(a.length) : Math.sqrt(a.length) * .9)));
		let f = (e, t) => Math.min(this.side - 1, Math.max(0, Math.floor((e - t + l) / 2 / l * this.side))), p = this.side ** (this.deep ? 3 : 2);
		this.cells = new Uint32Array(a.length);
		for (let e of r) this.cells[e] = ((s ? f(s[e], 0) : 0) * this.side + f(o[e], c.y)) * this.side + f(a[e], c.x);
		let m = new Float32Array(p * (n + 1));
		for (let e of i) m[this.cells[e] * (n + 1) + Math.min(n, t[e])]++;
		this.begins = new Uint32Array(p + 1);
		for (let e of r) this.begins[this.cells[e] + 1]++;
		for (let e = 0; e < p; e++) this.begins[e + 1] += this.begins[e];
		let h = this.begins.slice();
		this.members = new Uint32Array(r.length);
		for (let e of r) this.members[h[this.cells[e]]++] = e;
		for (let e = 0; e < (this.deep ? 3 : 2); e++) m = this.summed(m, this.side ** e);
		this.counts = m, this.totals = new Float32Array(p), this.second = new Float32Array(p);
		for (let e = 0; e < p; e++) {
			let t = 0;
			for (let r = 0; r <= n; r++) {
				let i = m[e * (n + 1) + r];
				this.totals[e] += i, r !== n && (i > t ? [this.second[e], t] = [t, i] : i > this.second[e] && (this.second[e] = i));
			}
		}
	}
	summed(e, t) {
		let n = this.classes + 1, r = e.slice();
		for (let i = 0; i * n < e.length; i++) {
			let a = Math.floor(i / t) % this.side;
			for (let o of [a > 0 ? i - t : -1, a < this.side - 1 ? i + t : -1]) if (o >= 0) for (let t = 0; t < n; t++) r[i * n + t] += e[o * n + t];
		}
		return r;
	}
	share(e, t) {
		return this.counts[e * (this.classes + 1) + t] / (this.totals[e] || 1);
	}
	names(e, t, n) {
		let r = this.share(e, t);
		return r >= .5 || r >= Gt * n && this.counts[e * (this.classes + 1) + t] >= this.second[e];
	}
	connected(e, t) {
		let n = /* @__PURE__ */ new Map();
		for (let t of e) {
			let e = this.cells[t];
			n.has(e) ? n.get(e).push(t) : n.set(e, [t]);
		}
		let r = e.length / n.size / 4, i = new Set([...n].filter(([e, n]) => n.length >= r && t(e)).map(([e]) => e)), a = [];
		for (let e of i) {
			i.delete(e);
			let t = [], r = [e];
			for (; r.length;) {
				let e = r.pop();
				for (let r of n.get(e)) t.push(r);
				for (let t of this.around(e)) i.delete(t) && r.push(t);
			}
			a.push(t);
		}
		return a;
	}
	purest(e, t) {
		let n = Math.min(e.length, Jt), r = [...new Set(e.map((e) => this.cells[e]))].filter((e) => this.counts[e * (this.classes + 1) + t] >= n), i = new Set(r.sort((e, n) => this.share(n, t) - this.share(e, t)).slice(0, W)), a = e.filter((e) => i.has(this.cells[e]));
		return a.length ? a : e;
	}
	anchor(e, t, n) {
		let r = tn(this.places, e), i = Math.max(1, e.length / W), a = [r, ...Array.from({ length: Math.min(W, e.length) }, (t, n) => e[Math.floor(n * i)])].map((e) => ({
			row: e,
			from: rn(this.places, e, r)
		})), o = {
			row: r,
			share: -1,
			typical: !1
		};
		for (let { row: e } of a.sort((e, t) => e.from - t.from)) {
			let r = {
				row: e,
				...this.local(e, t, n)
			};
			if (r.typical) return r;
			r.share > o.share && (o = r);
		}
		return o;
	}
	local(e, t, n) {
		let r = this.near(e), i = Float64Array.from(r, (t) => rn(this.places, e, t)), a = nn(i.slice(), Math.min(Xt, r.length) - 1), o = /* @__PURE__ */ new Map();
		r.forEach((e, t) => i[t] <= a && o.set(this.codes[e], (o.get(this.codes[e]) ?? 0) + 1));
		let s = o.get(t) ?? 0, c = s / [...o.values()].reduce((e, t) => e + t, 0), l = [...o].filter(([e, t]) => e < this.classes && t > s).length;
		return {
			share: c,
			typical: c >= .5 || c >= Gt * n && l < 2
		};
	}
	near(e) {
		for (let t = 1;; t *= 2) {
			let n = [];
			for (let r of this.around(this.cells[e], t)) for (let e = this.begins[r]; e < this.begins[r + 1]; e++) n.push(this.members[e]);
			if (n.length >= Xt || t >= this.side) return n;
		}
	}
	*around(e, t = 1) {
		let { side: n } = this, [r, i, a] = [
			e % n,
			Math.floor(e / n) % n,
			Math.floor(e / n / n)
		];
		for (let e = a - t; e <= a + t; e++) if (!(e < 0 || e >= (this.deep ? n : 1))) for (let a = i - t; a <= i + t; a++) for (let i = r - t; i <= r + t; i++) i >= 0 && a >= 0 && i < n && a < n && (yield (e * n + a) * n + i);
	}
};
function tn({ x: e, y: t, z: n }, r) {
	let i = [
		e,
		t,
		n
	].map((e) => e ? r.reduce((t, n) => t + e[n], 0) / r.length : 0), [a, o] = [r[0], Infinity];
	for (let s of r) {
		let r = (e[s] - i[0]) ** 2 + (t[s] - i[1]) ** 2 + (n ? (n[s] - i[2]) ** 2 : 0);
		r < o && ([a, o] = [s, r]);
	}
	return a;
}
function nn(e, t) {
	let [n, r] = [0, e.length - 1];
	for (; n < r;) {
		let i = e[n + r >> 1], [a, o] = [n, r];
		for (; a <= o;) {
			for (; e[a] < i;) a++;
			for (; e[o] > i;) o--;
			if (a > o) break;
			[e[a], e[o]] = [e[o], e[a]], a++, o--;
		}
		if (t <= o) r = o;
		else if (t >= a) n = a;
		else break;
	}
	return e[t];
}
function rn({ x: e, y: t, z: n }, r, i) {
	return (e[r] - e[i]) ** 2 + (t[r] - t[i]) ** 2 + (n ? (n[r] - n[i]) ** 2 : 0);
}
function an({ x: e, y: t, z: n }, r) {
	let i = [
		e,
		t,
		n
	].map((e) => {
		if (!e) return 0;
		let t = r.reduce((t, n) => t + e[n], 0) / r.length;
		return r.reduce((n, r) => n + (e[r] - t) ** 2, 0) / r.length;
	});
	return Math.sqrt(i.reduce((e, t) => e + t, 0));
}
// src/names.ts
var on = 400, sn = 100, cn = 14e3, ln = 90, un = 6, dn = [320, 110], fn = 9, pn = Array.from({ length: 16 }, (e, t) => t * Math.PI / 8), mn = 3, [hn, gn] = [58, 92], _n = 2, vn = 25, yn = 60, [bn, xn] = [36, 42], Sn = class {
	layer;
	lines;
	state;
	view;
	placed = [];
	spotsOf = null;
	spots = [];
	codes = null;
	rowNames = [];
	wanted = !0;
	scheduled = 0;
	constructor(e, t, n, r) {
		this.layer = e, this.lines = t, this.state = n, this.view = r, this.locate();
		for (let e of [
			"rows",
			"paint",
			"shown"
		]) n.listen(e, () => this.locate());
	}
	get any() {
		return this.spots.length > 0 || this.rowText !== null;
	}
	request() {
		this.scheduled ||= requestAnimationFrame(() => {
			this.scheduled = 0, this.place();
		});
	}
	toggle() {
		return this.wanted = !this.wanted, this.place(), this.wanted;
	}
	areas() {
		let { data: e, paint: t } = this.state;
		if (this.codes = null, e.n < sn) return [];
		let n = this.spotsOf?.();
		if (n) return n;
		let r = this.view.places === e.maps[0];
		if (!t.classes && r && e.meta.clusters.length) return $t(e.meta.clusters, e.meta.maps[0].box);
		let i = t.classes ? null : e.column(this.state.classesBefore ?? ""), a = t.classes ?? (i && M(i, e.meta.palette).classes);
		return !a || a.names.length > on ? [] : (this.codes = a.codes, Qt(this.view.places, a.codes, a.names, (e) => this.view.shows(e)));
	}
	locate() {
		this.layer.replaceChildren(), this.rowNames = [], this.spots = this.areas().slice(0, 360).map((t) => {
			let n = Cn(t.text, bn), r = e("span", {
				textContent: n,
				className: `level${Math.min(2, t.level)}`
			});
			return this.layer.append(r), {
				...t,
				text: n,
				element: r,
				width: 0,
				height: 0,
				last: null
			};
		});
		for (let e of this.spots) [e.width, e.height] = [e.element.offsetWidth, e.element.offsetHeight];
		this.place();
	}
	place() {
		this.layer.style.display = this.lines.style.display = this.wanted ? "" : "none", this.placed = [];
		let e = [];
		if (this.wanted && this.any) {
			let n = new At(this.view, this.state), r = Math.min(ln, Math.max(6, this.view.eye.width * this.view.eye.height / cn));
			for (let i of this.spots) {
				let a = this.placed.length < r ? this.fit(i, n) : null;
				if (i.element.style.visibility = a ? "visible" : "hidden", a && (this.placed.push(a), i.element.style.transform = `translate(${Math.round(a.left)}px, ${Math.round(a.top)}px)`, a.line)) {
					let [n, r, i, o] = a.line;
					e.push(t("line", {
						x1: n,
						y1: r,
						x2: i,
						y2: o
					}), t("circle", {
						cx: n,
						cy: r,
						r: 2
					}));
				}
			}
			this.nameRows(n);
		}
		this.lines.replaceChildren(...e);
	}
	fit(e, t) {
		let { width: n, height: r, unit: i } = this.view.eye;
		if (e.level > 0 && e.radius * i < un) return null;
		let [a, o] = this.view.project(e.x, e.y, e.z);
		if (a < 0 || o < 0 || a > n || o > r) return null;
		let s = e.code >= 0 && this.codes ? (t) => this.codes[t] === e.code : () => !0, [c, l] = [null, Infinity], u = (n, r, i) => {
			let u = this.at(e, a, o, n, r);
			if (!u || i >= l) return !1;
			let d = t.within(this.padded(u), _n, s);
			return d > _n || i + d * vn >= l ? !1 : ([c, l] = [u, i + d * vn], e.last = [n, r], !0);
		};
		if (e.last && u(...e.last, 0)) return c;
		u(0, 0, 0);
		let d = dn[Math.min(1, e.level)];
		for (let t of pn) {
			let [n, r] = [Math.cos(t), Math.sin(t)], i = Math.min(e.width / 2 / Math.max(1e-6, Math.abs(n)), e.height / 2 / Math.max(1e-6, Math.abs(r)));
			for (let e = fn; e <= d && e < l && !u(n * (e + i), r * (e + i), e); e += fn);
		}
		return c || (e.last = null), c;
	}
	at(e, t, n, r, i) {
		let { width: a, height: o } = this.view.eye, [s, c] = [t + r, n + i], l = {
			left: s - e.width / 2,
			right: s + e.width / 2,
			top: c - e.height / 2,
			bottom: c + e.height / 2
		}, u = o - (this.view.outliers.length ? gn : hn);
		if (l.left < 2 || l.top < 2 || l.right > a - 2 || l.bottom > u) return null;
		let d = t >= l.left && t <= l.right && n >= l.top && n <= l.bottom, f = [Math.min(l.right, Math.max(l.left, t)), Math.min(l.bottom, Math.max(l.top, n))], p = d ? null : [
			t,
			n,
			...f
		];
		for (let e of this.placed) if (!wn(l, e) || e.line && En(l, e.line) || p && En(e, p) || p && e.line && Tn(p, e.line)) return null;
		return {
			...l,
			text: e.text,
			level: e.level,
			line: p
		};
	}
	padded(e) {
		let t = this.view.pointSize() / 2;
		return {
			left: e.left - t,
			right: e.right + t,
			top: e.top - t,
			bottom: e.bottom + t
		};
	}
	get rowText() {
		let { data: e } = this.state, t = e.columns.find((e) => e.kind === "texts");
		return t ? (e) => t.text(e) : e.hasIds ? (t) => e.ids.at(t) : null;
	}
	nameRows(t) {
		let n = this.rowText, r = n && t.complete && t.size <= yn && t.size < this.state.data.n / 2, i = 0;
		for (let { row: a, x: o, y: s } of r ? t.list() : []) {
			let r = Cn(n(a).split("\n")[0].trim(), xn);
			if (!r) continue;
			let c = this.rowNames[i] ??= this.layer.appendChild(e("span", { className: "row" }));
			c.textContent = r;
			let l = this.beside(t, a, o, s, r, c);
			c.style.visibility = l ? "visible" : "hidden", l && (i++, this.placed.push(l), c.style.transform = `translate(${Math.round(l.left)}px, ${Math.round(l.top)}px)`);
		}
		for (let e of this.rowNames.slice(i)) e.style.visibility = "hidden";
	}
	beside(e, t, n, r, i, a) {
		let { offsetWidth: o, offsetHeight: s } = a, c = this.view.pointSize() / 2 + 2, l = {
			text: i,
			level: 3,
			width: o,
			height: s
		};
		for (let [i, a] of [
			[c + o / 2, 0],
			[-c - o / 2, 0],
			[0, -c - s / 2],
			[0, c + s / 2]
		]) {
			let o = this.at(l, n, r, i, a);
			if (o && e.within(o, 0, (e) => e !== t) === 0) return {
				...o,
				line: null
			};
		}
		return null;
	}
};
function Cn(e, t) {
	let n = [...e];
	return n.length > t ? `${n.slice(0, t - 1).join("").trimEnd()}…` : e;
}
function wn(e, t) {
	return e.left > t.right + mn || e.right < t.left - mn || e.top > t.bottom || e.bottom < t.top;
}
function Tn(e, t) {
	return G(e, t[0], t[1]) * G(e, t[2], t[3]) < 0 && G(t, e[0], e[1]) * G(t, e[2], e[3]) < 0;
}
function G([e, t, n, r], i, a) {
	return (n - e) * (a - t) - (r - t) * (i - e);
}
function En(e, [t, n, r, i]) {
	let a = Math.max(8, Math.ceil(Math.hypot(r - t, i - n) / 12));
	for (let o = 0; o <= a; o++) {
		let [s, c] = [t + (r - t) * o / a, n + (i - n) * o / a];
		if (s > e.left && s < e.right && c > e.top && c < e.bottom) return !0;
	}
	return !1;
}
// src/nearest.ts
var Dn = class {
	lines;
	state;
	view;
	wanted = !1;
	row = -1;
	rows = [];
	constructor(e, t, n) {
		this.lines = e, this.state = t, this.view = n;
		for (let e of ["hover", "selected"]) t.listen(e, () => void this.find());
		for (let e of [
			"rows",
			"shown",
			"theme"
		]) t.listen(e, () => this.place());
	}
	toggle() {
		return this.wanted = !this.wanted && this.state.data.neighbors !== null, this.find(), this.wanted;
	}
	async find() {
		let { hovered: e, selected: t, data: n } = this.state, r = this.wanted ? e >= 0 ? e : t.length === 1 ? t[0] : -1 : -1;
		if (r === this.row) return;
		this.row = r;
		let i = r < 0 ? [] : await n.neighbors(r);
		r === this.row && (this.rows = i, this.place());
	}
	place() {
		let e = this.row < 0 || this.row >= this.state.data.n ? null : this.view.projectRow(this.row);
		this.lines.replaceChildren(...(e ? this.rows.filter((e) => this.view.shows(e)) : []).flatMap((n) => {
			let [r, i] = this.view.projectRow(n), [a, o] = e;
			return [t("line", {
				x1: a,
				y1: o,
				x2: r,
				y2: i
			}), t("circle", {
				cx: r,
				cy: i,
				r: this.view.pointSize() / 2 + 1.5,
				fill: this.state.colorOf(n)
			})];
		}));
	}
}, On = "#version 300 es\nin vec3 place;\nin float code;\nin float level;\nuniform mat3 turn;\nuniform vec2 center;\nuniform vec2 extent;\nuniform float perspective;\nuniform float size;\nuniform float levels[3];\nuniform sampler2D colors;\nuniform vec4 single;\nout vec4 color;\nflat out float radius;\nvoid main() {\n  vec3 turned = turn * place;\n  float w = 1.0 - turned.z * perspective;\n  gl_Position = vec4((turned.xy - center * w) / extent, -turned.z * 0.3 * w, w);\n  float diameter = size * levels[int(level)] / (perspective > 0.0 ? w : 1.0);\n  radius = diameter / 2.0;\n  // half a pixel on each side for the smooth edge\n  gl_PointSize = diameter + 1.0;\n  int at = int(code);\n  color = single.a > 0.0 ? single : texelFetch(colors, ivec2(at % 256, at / 256), 0);\n}", kn = "#version 300 es\nprecision highp float;\nin vec4 color;\nflat in float radius;\nuniform float opacity;\nuniform float ring;\nuniform bool solid;\nout vec4 painted;\nvoid main() {\n  float from = length(gl_PointCoord - 0.5) * (2.0 * radius + 1.0);\n  float cover = clamp(radius - from + 0.5, 0.0, 1.0);\n  if (ring > 0.0) cover *= clamp(from - radius + ring + 0.5, 0.0, 1.0);\n  if (solid && cover < 0.5) discard;\n  float alpha = cover * opacity * color.a;\n  painted = vec4(color.rgb * alpha, alpha);\n}", An = 12345, jn = class {
	canvas;
	gl;
	program;
	places;
	codes;
	levels;
	colors;
	indices = /* @__PURE__ */ new Map();
	uniforms = /* @__PURE__ */ new Map();
	order = /* @__PURE__ */ new Uint32Array();
	deep = !1;
	constructor(e) {
		this.canvas = e;
		let t = e.getContext("webgl2", {
			antialias: !1,
			alpha: !1,
			powerPreference: "high-performance"
		});
		if (!t) throw Error("this browser has no WebGL 2, which draws the points; allow hardware acceleration in its settings or use another browser");
		this.gl = t, this.begin();
	}
	begin() {
		let { gl: e } = this;
		this.indices.clear(), this.uniforms.clear(), this.program = Mn(e), this.places = e.createBuffer(), this.codes = e.createBuffer(), this.levels = e.createBuffer(), this.colors = e.createTexture(), e.useProgram(this.program), e.enable(e.BLEND), e.blendFunc(e.ONE, e.ONE_MINUS_SRC_ALPHA);
	}
	setPlaces(e, t, n) {
		let r = e.length, i = new Float32Array(3 * r);
		for (let a = 0; a < r; a++) i[3 * a] = e[a], i[3 * a + 1] = t[a], n && (i[3 * a + 2] = n[a]);
		this.deep = n !== null, this.fill("place", this.places, i, 3, this.gl.FLOAT), this.order.length !== r && (this.order = Nn(r));
	}
	setCodes(e) {
		this.fill("code", this.codes, e, 1, e instanceof Uint8Array ? this.gl.UNSIGNED_BYTE : this.gl.UNSIGNED_SHORT);
	}
	setLevels(e) {
		this.fill("level", this.levels, e, 1, this.gl.UNSIGNED_BYTE);
	}
	setColors(e) {
		let { gl: t } = this, n = Math.max(1, Math.ceil(e.length / 256)), r = new Uint8Array(256 * n * 4);
		e.forEach((e, t) => r.set([...K(e).map((e) => Math.round(e * 255)), 255], 4 * t)), t.bindTexture(t.TEXTURE_2D, this.colors), t.texImage2D(t.TEXTURE_2D, 0, t.RGBA, 256, n, 0, t.RGBA, t.UNSIGNED_BYTE, r), t.texParameteri(t.TEXTURE_2D, t.TEXTURE_MIN_FILTER, t.NEAREST), t.texParameteri(t.TEXTURE_2D, t.TEXTURE_MAG_FILTER, t.NEAREST);
	}
	setShown(e) {
		this.index("shown", e ? this.order.filter(e) : this.order);
	}
	setRows(e, t) {
		this.index(e, Uint32Array.from(t));
	}
	count(e) {
		return this.indices.get(e)?.n ?? 0;
	}
	draw(e, t, n) {
		let { gl: r, canvas: i } = this;
		r.viewport(0, 0, i.width, i.height);
		let [a, o, s] = K(t);
		r.clearColor(a, o, s, 1), r.clear(r.COLOR_BUFFER_BIT | r.DEPTH_BUFFER_BIT), r.uniformMatrix3fv(this.uniform("turn"), !1, e.turn), r.uniform2f(this.uniform("center"), ...e.center), r.uniform2f(this.uniform("extent"), e.distance * i.width / i.height, e.distance), r.uniform1f(this.uniform("perspective"), e.perspective), r.uniform1fv(this.uniform("levels"), [
			1,
			1.4,
			2.2
		]);
		for (let e of n) this.drawLayer(e);
	}
	drawLayer({ rows: e, size: t, opacity: n, single: r, ring: i, limit: a }) {
		let { gl: o } = this, s = this.indices.get(e);
		if (!s?.n) return;
		let c = this.deep && e === "shown";
		c ? o.enable(o.DEPTH_TEST) : o.disable(o.DEPTH_TEST), o.uniform1i(this.uniform("solid"), Number(c)), o.uniform1f(this.uniform("size"), t), o.uniform1f(this.uniform("opacity"), c ? Math.max(n, .9) : n), o.uniform1f(this.uniform("ring"), i ?? 0), o.uniform4fv(this.uniform("single"), r ? [...K(r), 1] : [
			0,
			0,
			0,
			0
		]), o.bindBuffer(o.ELEMENT_ARRAY_BUFFER, s.buffer), o.drawElements(o.POINTS, Math.min(s.n, a ?? s.n), o.UNSIGNED_INT, 0);
	}
	index(e, t) {
		let { gl: n } = this, r = this.indices.get(e) ?? {
			buffer: n.createBuffer(),
			n: 0
		};
		n.bindBuffer(n.ELEMENT_ARRAY_BUFFER, r.buffer), n.bufferData(n.ELEMENT_ARRAY_BUFFER, t, n.DYNAMIC_DRAW), this.indices.set(e, {
			...r,
			n: t.length
		});
	}
	fill(e, t, n, r, i) {
		let { gl: a } = this, o = a.getAttribLocation(this.program, e);
		a.bindBuffer(a.ARRAY_BUFFER, t), a.bufferData(a.ARRAY_BUFFER, n, a.DYNAMIC_DRAW), a.enableVertexAttribArray(o), a.vertexAttribPointer(o, r, i, !1, 0, 0);
	}
	uniform(e) {
		return this.uniforms.has(e) || this.uniforms.set(e, this.gl.getUniformLocation(this.program, e)), this.uniforms.get(e);
	}
};
function K(e) {
	return [
		1,
		3,
		5
	].map((t) => parseInt(e.slice(t, t + 2), 16) / 255);
}
function Mn(e) {
	let t = e.createProgram();
	for (let [n, r] of [[e.VERTEX_SHADER, On], [e.FRAGMENT_SHADER, kn]]) {
		let i = e.createShader(n);
		if (e.shaderSource(i, r), e.compileShader(i), !e.getShaderParameter(i, e.COMPILE_STATUS)) throw Error(`the points cannot be drawn here: ${e.getShaderInfoLog(i) ?? ""}`);
		e.attachShader(t, i);
	}
	if (e.linkProgram(t), !e.getProgramParameter(t, e.LINK_STATUS)) throw Error(`the points cannot be drawn here: ${e.getProgramInfoLog(t) ?? ""}`);
	return t;
}
function Nn(e) {
	let t = Uint32Array.from({ length: e }, (e, t) => t), n = An;
	for (let r = e - 1; r > 0; r--) {
		n = Math.imul(n, 1664525) + 1013904223 >>> 0;
		let e = Math.floor(n / 2 ** 32 * (r + 1));
		[t[r], t[e]] = [t[e], t[r]];
	}
	return t;
}
// src/state.ts
var q = {
	light: "#fcfcfb",
	dark: "#14171c"
}, J = {
	light: "#16181d",
	dark: "#ffffff"
}, Pn = class {
	data;
	selected = [];
	query = "";
	found = [];
	hovered = -1;
	paint;
	scaleKind = "linear";
	classesBefore;
	shown = /* @__PURE__ */ new Uint8Array();
	counts = /* @__PURE__ */ new Uint32Array();
	names = [];
	legendOrder = "name";
	themeName;
	filters = /* @__PURE__ */ new Map();
	mask = null;
	listeners = /* @__PURE__ */ new Map();
	constructor(e) {
		this.data = e, this.themeName = In(e.meta.theme), this.paint = ve(e.n, e.meta.palette), this.classesBefore = e.columns[0]?.kind === "classes" ? e.columns[0].name : null, this.colorBy(e.meta.color);
	}
	colorBy(e, t, n = this.scaleKind) {
		let r = this.data.column(e), { palette: i } = this.data.meta;
		this.scaleKind = n;
		let a = r && j(r) && (t === "scale" || !(t === "classes" && A(r))) && (t === "scale" || !(r instanceof w));
		this.paint = !r || r.kind === "texts" ? ve(this.data.n, i) : a ? be(r, n, i) : M(r, i), this.paint.classes && (this.classesBefore = e), this.describe(), this.changed("paint");
	}
	get mode() {
		return this.paint.classes ? "classes" : this.paint.scale ? "scale" : null;
	}
	takeRows() {
		let e = this.paint.column?.name ?? this.data.meta.color;
		this.colorBy(e, this.mode ?? void 0), this.filter(), this.changed("rows");
	}
	describe() {
		let { classes: e } = this.paint;
		this.names = e ? [...e.names, ...e.missing ? ["unlabeled"] : []] : [];
		let t = this.paint.classes ? this.filters.get(this.paint.column?.name ?? "")?.names : void 0;
		this.shown = Uint8Array.from(this.names, (e) => +!t?.has(e)), this.counts = Fn(e?.codes ?? null, this.names.length);
	}
	show(e) {
		this.shown.forEach((t, n) => this.shown[n] = e(n));
		let t = new Set(this.names.filter((e, t) => !this.shown[t]));
		this.setFilter(this.paint.column?.name ?? "", { names: t.size ? t : void 0 });
	}
	showRange(e, t) {
		this.setFilter(e, { range: t ?? void 0 });
	}
	setFilter(e, t) {
		let { names: n, range: r } = {
			...this.filters.get(e),
			...t
		};
		n || r ? this.filters.set(e, {
			...n && { names: n },
			...r && { range: r }
		}) : this.filters.delete(e), this.filter(), this.changed("shown");
	}
	clearFilter(e) {
		this.filters.delete(e), this.filter(), this.describe(), this.changed("shown");
	}
	showAll() {
		this.filters.clear(), this.show(() => 1);
	}
	get filtered() {
		return this.mask !== null;
	}
	get hidden() {
		return [...this.filters].flatMap(([e, { names: t }]) => t ? [[e, [...t]]] : []);
	}
	get ranges() {
		return [...this.filters].flatMap(([e, { range: t }]) => t ? [[e, ...t]] : []);
	}
	hide(e, t = []) {
		this.filters.clear();
		for (let [t, n] of e) this.filters.set(t, { names: new Set(n) });
		for (let [e, n, r] of t) this.filters.set(e, {
			...this.filters.get(e),
			range: [n, r]
		});
		this.filter(), this.describe(), this.changed("shown");
	}
	filter() {
		let { n: e, meta: t } = this.data;
		this.mask = null;
		for (let [n, { names: r, range: i }] of this.filters) {
			let a = this.data.column(n);
			if (a && i && j(a)) {
				let t = N(a);
				this.mask ??= new Uint8Array(e).fill(1);
				for (let n = 0; n < e; n++) t[n] >= i[0] && t[n] <= i[1] || (this.mask[n] = 0);
			}
			if (!a || !r || !A(a)) continue;
			let { codes: o, names: s } = M(a, t.palette).classes, c = Uint8Array.from([...s, "unlabeled"], (e) => +!r.has(e));
			if (!c.every((e) => e === 1)) {
				this.mask ??= new Uint8Array(e).fill(1);
				for (let t = 0; t < e; t++) c[o[t]] || (this.mask[t] = 0);
			}
		}
	}
	order() {
		let e = [...this.counts.keys()].filter((e) => this.counts[e]);
		if (this.legendOrder === "size") return e.sort((e, t) => this.counts[t] - this.counts[e] || e - t);
		if (this.legendOrder === "name") return e;
		let t = /* @__PURE__ */ new Map();
		for (let e of this.paint.codes) t.has(e) || t.set(e, t.size);
		return e.sort((e, n) => (t.get(e) ?? Infinity) - (t.get(n) ?? Infinity) || e - n);
	}
	orderBy(e) {
		this.legendOrder = e, this.changed("shown");
	}
	color(e) {
		return this.paint.colors(this.themeName)[e];
	}
	colorOf(e) {
		return this.color(this.paint.codes[e]);
	}
	visible(e) {
		return this.mask === null || this.mask[e] === 1;
	}
	visibleRows() {
		if (this.mask === null) return null;
		let e = [];
		for (let t = 0; t < this.data.n; t++) this.mask[t] && e.push(t);
		return e;
	}
	visibleCount() {
		return this.mask === null ? this.data.n : this.mask.reduce((e, t) => e + t, 0);
	}
	select(e, t = "") {
		this.selected = e, this.query = t, this.changed("selected");
	}
	hover(e) {
		e !== this.hovered && (this.hovered = e, this.changed("hover"));
	}
	listen(e, t) {
		this.listeners.set(e, [...this.listeners.get(e) ?? [], t]);
	}
	changed(e) {
		for (let t of this.listeners.get(e) ?? []) t();
	}
	setTheme(e) {
		this.themeName = e, this.changed("theme");
	}
};
function Fn(e, t, n) {
	let r = new Uint32Array(t);
	if (e === null) return r;
	if (n) for (let t of n) r[e[t]]++;
	else for (let t = 0; t < e.length; t++) r[e[t]]++;
	return r;
}
function In(e) {
	return e === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light" : e;
}
// src/view.ts
var Ln = .8, Rn = 48, zn = 1.3, Bn = 11, Vn = .12, Hn = 2e5, Un = 250, Wn = 900, Gn = 25e4, Kn = 140, qn = 1.1, Jn = 56, Yn = 1.6, Xn = 4, Zn = 400, Qn = class {
	canvas;
	state;
	renderer;
	eye;
	fresh = null;
	places;
	recolor = null;
	outliers = [];
	overview = 1;
	scale = 1;
	ground = 1;
	scheduled = 0;
	moving = 0;
	listeners = [];
	constructor(e, t, n = 0) {
		this.canvas = e, this.state = t, this.places = t.data.maps[n], this.renderer = new jn(e), this.eye = new Ft(1, 1, this.places.z !== null), this.resize(), e.addEventListener("webglcontextlost", (e) => e.preventDefault()), e.addEventListener("webglcontextrestored", () => {
			this.renderer.begin(), this.redraw();
		});
		let r = {
			selected: () => t.selected,
			found: () => t.found,
			hovered: () => t.hovered < 0 ? [] : [t.hovered]
		}, i = (e) => () => {
			this.renderer.setRows(e, this.present(r[e]())), this.request();
		};
		t.listen("selected", i("selected")), t.listen("found", i("found")), t.listen("hover", i("hovered")), t.listen("paint", () => this.color()), t.listen("theme", () => this.color()), t.listen("shown", () => this.filter());
	}
	get animated() {
		return this.state.data.n <= Hn && !matchMedia("(prefers-reduced-motion: reduce)").matches;
	}
	onView(e) {
		this.listeners.push(e);
	}
	async draw() {
		this.state.data.n !== 0 && (this.redraw(), this.settle(), await this.fit(!1));
	}
	redraw() {
		let { x: e, y: t, z: n } = this.places;
		this.renderer.setPlaces(e, t, n), this.renderer.setLevels(this.fresh ?? new Uint8Array(e.length)), this.color(), this.filter(), this.mark();
	}
	mark() {
		for (let e of ["selected", "found"]) this.renderer.setRows(e, this.present(this.state[e]));
	}
	shows(e) {
		return this.state.visible(e) && !this.places.absent?.[e];
	}
	present(e) {
		let { absent: t } = this.places;
		return t ? e.filter((e) => !t[e]) : e;
	}
	put(e) {
		let t = e !== this.places && (this.recolor || e.absent || this.places.absent);
		this.places = e, t && (this.color(), this.filter(), this.mark()), this.moved();
	}
	moved() {
		this.renderer.setPlaces(this.places.x, this.places.y, this.places.z), this.changed();
	}
	color() {
		this.state.data.n !== 0 && (this.renderer.setCodes(this.recolor?.(this) ?? this.state.paint.codes), this.renderer.setColors(this.state.paint.colors(this.state.themeName)), this.request());
	}
	filter() {
		this.renderer.setShown(this.state.filtered || this.places.absent ? (e) => this.shows(e) : null), this.request();
	}
	settle() {
		this.ground = tr(this.places), this.request();
	}
	resizePoints(e) {
		this.scale = Math.min(8, Math.max(.25, this.scale * e)), this.request();
	}
	resize() {
		let { clientWidth: e, clientHeight: t } = this.canvas;
		if (!e || !t) return;
		let n = devicePixelRatio || 1;
		this.canvas.width = Math.round(e * n), this.canvas.height = Math.round(t * n), [this.eye.width, this.eye.height] = [e, t], this.changed();
	}
	request() {
		this.scheduled ||= requestAnimationFrame(() => {
			this.scheduled = 0, this.paint();
		});
	}
	changed() {
		this.request();
		for (let e of this.listeners) e();
	}
	paint(e = this.canvas.width / this.eye.width, t = !1) {
		let { state: n, renderer: r } = this;
		if (n.data.n === 0) return;
		let i = this.pointSize(), a = this.opacity(i), o = J[n.themeName], s = r.count("selected") > 0 || r.count("found") > 0, c = Math.max(Xn, 1.25 * i) * e, l = this.moving && !t ? Gn : Infinity, u = [{
			rows: "shown",
			size: i * e,
			opacity: s ? .22 * a : a,
			limit: l
		}];
		for (let t of ["selected", "found"]) r.count(t) <= Zn && u.push({
			rows: t,
			size: c + 2 * e,
			opacity: .9,
			single: o
		}), u.push({
			rows: t,
			size: c,
			opacity: r.count(t) <= Zn ? 1 : Math.max(.6, a)
		});
		let [d, f] = [Math.max(8, 1.8 * i) * e, 2 * e];
		u.push({
			rows: "hovered",
			size: d,
			opacity: 1
		}), u.push({
			rows: "hovered",
			size: d + 2 * f,
			opacity: 1,
			single: o,
			ring: f
		}), r.draw(this.eye.camera, q[n.themeName], u);
	}
	project(e, t, n = 0) {
		return this.eye.project(e, t, n);
	}
	projectRow(e) {
		let { x: t, y: n, z: r } = this.places;
		return this.eye.project(t[e], n[e], r ? r[e] : 0);
	}
	nearest(e, t, n = Infinity) {
		let { x: r, y: i, z: a } = this.places, { state: o, eye: s } = this, c = -1, l = n * n;
		if (a) {
			let n = s.projectAll(this.places), u = -Infinity, [, , d, , , f, , , p] = s.rotation;
			for (let s = 0; s < o.data.n; s++) {
				let o = (n[2 * s] - e) ** 2 + (n[2 * s + 1] - t) ** 2, m = d * r[s] + f * i[s] + p * a[s];
				o < l && (o > 36 || m > u) && this.shows(s) && ([c, l, u] = [
					s,
					Math.max(o, 36),
					m
				]);
			}
			return c;
		}
		let [u, d] = s.unproject(e, t);
		l /= s.unit ** 2;
		for (let e = 0; e < o.data.n; e++) {
			let t = (r[e] - u) ** 2 + (i[e] - d) ** 2;
			t < l && this.shows(e) && ([c, l] = [e, t]);
		}
		return c;
	}
	within(e) {
		let t = this.eye.projectAll(this.places), [n, r] = [e.map(([e]) => e), e.map(([, e]) => e)], [i, a, o, s] = [
			Math.min(...n),
			Math.max(...n),
			Math.min(...r),
			Math.max(...r)
		], c = [];
		for (let l = 0; l < this.state.data.n; l++) {
			let [u, d] = [t[2 * l], t[2 * l + 1]];
			if (u < i || u > a || d < o || d > s || !this.shows(l)) continue;
			let f = !1;
			for (let t = 0, i = e.length - 1; t < e.length; i = t++) r[t] > d != r[i] > d && u < (n[i] - n[t]) * (d - r[t]) / (r[i] - r[t]) + n[t] && (f = !f);
			f && c.push(l);
		}
		return c;
	}
	async zoom(e) {
		await this.look(this.eye.center, this.eye.distance / e);
	}
	pan(e, t) {
		this.eye.pan(-e * this.eye.width, t * this.eye.height), this.moves();
	}
	moves() {
		clearTimeout(this.moving), this.moving = window.setTimeout(() => {
			this.moving = 0, this.request();
		}, Kn), this.changed();
	}
	async fit(e = !0) {
		if (this.state.data.n === 0) return;
		let t = U(this.places), n = Bt(this.places), r = n !== null && this.fitting(t) / this.fitting(n) >= Yn, i = r ? n : t;
		this.outliers = r ? Vt(this.places, n) : [], this.overview = this.fitting(i), await this.frame(i, e);
	}
	async zoomTo(e) {
		if (this.eye.deep) return this.look(this.centerOf(e), Math.min(this.eye.distance, .5));
		let t = U(this.places, e), n = Math.min(1, this.overview), r = (this.eye.distance < .15 * n ? .02 : .15) * n;
		await this.frame({
			...t,
			width: Math.max(t.width, r),
			height: Math.max(t.height, r)
		}, !0);
	}
	centerOf(e) {
		let t = [0, 0];
		for (let n of e) {
			let [r, i] = this.eye.unproject(...this.projectRow(n));
			t[0] += r / e.length, t[1] += i / e.length;
		}
		return [t[0], t[1]];
	}
	async frame(e, t) {
		let n = this.fitting(e);
		await this.look([e.x, e.y - n * (1 - this.free)], n, t);
	}
	get free() {
		return Math.max(.5, 1 - Jn / this.eye.height);
	}
	fitting(e) {
		let { width: t, height: n } = this.eye;
		return Math.max(e.height / this.free, e.width * n / t) / 2 * qn || 1;
	}
	async look(e, t, n = !0) {
		let [r, i] = [{
			center: this.eye.center,
			distance: this.eye.distance
		}, {
			center: e,
			distance: t
		}];
		await this.animate(n && this.animated ? Un : 0, (e) => {
			this.eye.distance = e === 1 ? i.distance : r.distance * (i.distance / r.distance) ** e, this.eye.center = [0, 1].map((t) => r.center[t] + (i.center[t] - r.center[t]) * e), this.changed();
		});
	}
	async show(e) {
		await this.morph(this.places, this.state.data.maps[e]);
	}
	async morph(e, t) {
		if (e === t) return;
		let n = $n(e, t, 0);
		await this.animate(this.animated ? Wn : 0, (r) => {
			if (r < 1) for (let i of [
				"x",
				"y",
				"z"
			]) er(e[i], t[i], r, n[i]);
			this.put(r === 1 ? t : n);
		}), this.settle();
	}
	animate(e, t) {
		if (e === 0) return Promise.resolve(t(1));
		let n = performance.now();
		return new Promise((r) => {
			let i = () => {
				let a = Math.min(1, (performance.now() - n) / e);
				t(a === 1 ? 1 : a * a * (3 - 2 * a)), a < 1 ? requestAnimationFrame(i) : r();
			};
			requestAnimationFrame(i);
		});
	}
	pointSize() {
		let { width: e, height: t } = this.eye, n = this.ground * Math.min(e, t) ** 2, r = Math.max(.4, 1.1 / this.eye.distance) ** .6, i = Math.sqrt(Ln * n * 4 / Math.PI / Math.max(1, this.state.data.n)) * r;
		return Math.min(Bn, Math.max(zn, i)) * this.scale;
	}
	opacity(e) {
		let t = this.ground * (2 * this.eye.unit) ** 2, n = this.state.data.n * Math.PI * e * e / 4 / t;
		return Math.min(.92, Math.max(Vn, .92 / Math.max(1, n) ** .55));
	}
};
function $n(e, t, n) {
	let r = e.absent && t.absent ? e.absent.map((e, n) => e | t.absent[n]) : e.absent ?? t.absent ?? null, i = {
		name: t.name,
		x: e.x.slice(),
		y: e.y.slice(),
		z: e.z?.slice() ?? null,
		absent: r
	};
	for (let r of [
		"x",
		"y",
		"z"
	]) er(e[r], t[r], n, i[r]);
	return i;
}
function er(e, t, n, r) {
	if (e && t && r) for (let i = 0; i < e.length; i++) r[i] = e[i] + (t[i] - e[i]) * n;
}
function tr({ x: e, y: t }) {
	let n = /* @__PURE__ */ new Uint8Array(2304), r = (e) => Math.min(47, Math.max(0, Math.floor((e + 1) / 2 * Rn)));
	for (let i = 0; i < e.length; i++) n[r(t[i]) * Rn + r(e[i])] = 1;
	return n.reduce((e, t) => e + t, 0) / n.length;
}
// src/pane.ts
var nr = "Map of points. Arrow keys move, plus and minus zoom, 0 shows everything, L draws a lasso, Enter inspects the point in the middle, question mark lists all keys.", rr = class {
	map;
	element;
	view;
	names;
	density;
	nearest;
	beyond;
	gestures;
	title = e("h2", { className: "map-name" });
	path = t("path");
	constructor(n, r, i, a) {
		this.map = i;
		let o = e("canvas", {
			className: "map",
			tabIndex: 0
		});
		n.get("map") || (o.id = "map"), o.setAttribute("role", "application"), o.setAttribute("aria-label", nr);
		let s = e("canvas", {
			className: "contours",
			hidden: !0
		}), c = t("svg", {
			class: "lines",
			"aria-hidden": "true"
		}), l = t("svg", {
			class: "lasso",
			"aria-hidden": "true"
		}, this.path), u = e("div", { className: "names" });
		u.setAttribute("aria-hidden", "true");
		let d = t("svg", {
			class: "lines near",
			"aria-hidden": "true"
		}), f = e("div", { className: "beyond" });
		this.element = e("div", { className: "pane" }, o, s, d, c, u, l, f, this.title), n.get("panes").append(this.element), this.view = new Qn(o, r, i), this.names = new Sn(u, c, r, this.view), this.density = new yt(s, r, this.view), this.nearest = new Dn(d, r, this.view), this.beyond = new ht(f, this.view), this.gestures = new Dt(this.view, {
			hover: (e) => a.hover(e, this),
			pick: (e, t) => this.pick(r, e, t, a),
			lasso: (e, t) => {
				r.select(ir(r.selected, this.view.within(e), t)), a.lassoEnd();
			},
			drawing: (e) => this.path.setAttribute("d", e.length ? `M${e.map(([e, t]) => `${e.toFixed(1)} ${t.toFixed(1)}`).join("L")}Z` : ""),
			moved: a.moved
		}), this.view.onView(() => {
			this.names.request(), this.density.place(), this.nearest.place(), this.beyond.place();
		}), this.entitle(r);
	}
	pick(e, t, n, r) {
		r.hover(t, this), t >= 0 ? e.select(ir(e.selected, [t], n)) : n === "replace" && e.selected.length && e.select([]);
	}
	entitle(e) {
		this.title.textContent = e.data.maps[this.map].name, this.title.hidden = e.data.maps.length < 2;
	}
	async show(e, t) {
		this.map = t, this.entitle(e), await this.view.show(t), this.names.locate(), this.density.outdated();
	}
	reuse(e, t, n) {
		this.map = n, this.view.put(t.data.maps[n]), this.entitle(t), e.get("panes").append(this.element);
	}
	async draw() {
		await this.view.draw(), this.names.locate();
	}
};
function ir(e, t, n) {
	if (n === "replace") return t;
	let r = new Set(t);
	return n === "add" ? [.../* @__PURE__ */ new Set([...e, ...t])] : e.filter((e) => !r.has(e));
}
// src/picture.ts
var ar = 210, Y = 20, or = 20, X = 48, Z = 40, sr = 24, Q = "Inter, \"Segoe UI\", system-ui, -apple-system, \"Helvetica Neue\", Arial, sans-serif", cr = 4e4;
function lr(t) {
	let n = t.dom.get("picture-dialog"), r = [
		[
			"PNG, 1×",
			"png-1",
			() => ur(t, 1)
		],
		[
			"PNG, 2×",
			"png-2",
			() => ur(t, 2)
		],
		[
			"PNG, 4×",
			"png-4",
			() => ur(t, 4)
		],
		[
			"SVG",
			"svg",
			() => fr(t)
		]
	].map(([t, r, i]) => {
		let a = e("button", {
			textContent: t,
			id: `save-${r}`
		});
		return a.onclick = async () => {
			await i(), n.close();
		}, a;
	}), i = e("button", {
		textContent: "Close",
		onclick: () => n.close()
	});
	n.replaceChildren(e("header", {}, e("h2", { textContent: "Save a picture" })), e("p", {
		className: "hint",
		textContent: "The present view with its title, names and legend. Texts of an SVG can be edited."
	}), e("div", { className: "actions" }, ...r, i)), n.showModal();
}
async function ur(t, n) {
	let { width: r, height: i, panes: a } = mr(t), o = e("canvas", {
		width: Math.round(r * n),
		height: Math.round(i * n)
	}), s = o.getContext("2d");
	s.scale(n, n), s.fillStyle = q[t.state.themeName], s.fillRect(0, 0, r, i);
	for (let { pane: e, x: r, y: i } of a) {
		let { eye: a } = e.view;
		s.drawImage(dr(e, n), r, i, a.width, a.height), e.density.wanted && Cr(s, t, e, r, i);
		for (let n of e.names.placed) br(s, t, n, r, i);
	}
	for (let e of gr(t, r)) yr(s, t, e);
	let c = await new Promise((e) => o.toBlob(e, "image/png"));
	c && h(`${wr(t)}.png`, c);
}
function dr(t, n) {
	let { canvas: r, eye: i } = t.view, a = [r.width, r.height];
	[r.width, r.height] = [Math.round(i.width * n), Math.round(i.height * n)], t.view.paint(n, !0);
	let o = e("canvas", {
		width: r.width,
		height: r.height
	});
	return o.getContext("2d").drawImage(r, 0, 0), [r.width, r.height] = a, t.view.paint(), o;
}
function fr(e) {
	let { width: n, height: r, panes: i } = mr(e), { state: a } = e, o = t("svg", {
		xmlns: "http://www.w3.org/2000/svg",
		width: n,
		height: r,
		viewBox: `0 0 ${n} ${r}`,
		"font-family": Q,
		"font-size": 12.5
	});
	o.append(t("title", {}, a.data.meta.title), t("rect", {
		width: n,
		height: r,
		fill: q[a.themeName]
	})), i.forEach(({ pane: n, x: r, y: i }, s) => {
		let { eye: c } = n.view, l = t("clipPath", { id: `pane${s}` }, t("rect", {
			width: c.width,
			height: c.height
		})), u = t("g", {
			transform: `translate(${r} ${i})`,
			"clip-path": `url(#pane${s})`
		}, l);
		if (u.append(pr(e, n)), n.density.wanted) for (let e of n.density.contours) u.append(t("path", {
			d: Sr(n, e),
			fill: "none",
			stroke: B(a),
			"stroke-opacity": .6
		}));
		for (let t of n.names.placed) u.append(...xr(e, t));
		o.append(u);
	});
	for (let t of gr(e, n)) o.append(vr(e, t));
	let s = new XMLSerializer().serializeToString(o);
	h(`${wr(e)}.svg`, new Blob([`<?xml version="1.0" encoding="UTF-8"?>\n${s}`], { type: "image/svg+xml" }));
}
function pr(e, n) {
	let { state: r } = e, { eye: i } = n.view, a = i.projectAll(n.view.places), o = n.view.pointSize() / 2, s = [];
	for (let e = 0; e < r.data.n; e++) {
		let [t, r] = [a[2 * e], a[2 * e + 1]];
		t > -o && r > -o && t < i.width + o && r < i.height + o && n.view.shows(e) && s.push(e);
	}
	if (s.length > cr) return t("image", {
		width: i.width,
		height: i.height,
		href: dr(n, 2).toDataURL("image/png")
	});
	let c = new Set(r.selected), l = t("g", { "fill-opacity": .85 });
	for (let e of s) {
		let n = {
			cx: a[2 * e].toFixed(2),
			cy: a[2 * e + 1].toFixed(2),
			r: o.toFixed(2),
			fill: r.colorOf(e)
		};
		c.size && !c.has(e) && (n["fill-opacity"] = .2), l.append(t("circle", n));
	}
	return l;
}
function mr(e) {
	let t = e.dom.get("panes").getBoundingClientRect(), n = e.panes.map((e) => {
		let { left: n, top: r } = e.element.getBoundingClientRect();
		return {
			pane: e,
			x: n - t.left,
			y: r - t.top + X
		};
	}), r = hr(e).length, i = Math.max(t.height + X, 68 + r * or + Y);
	return {
		width: t.width + (r ? ar : 0),
		height: i,
		panes: n
	};
}
function hr(e) {
	let { state: t } = e, n = t.paint.colors(t.themeName);
	if (t.paint.scale) return [...Array.from({ length: 4 }, () => ({
		text: "",
		color: "",
		n: 0
	})), ...t.paint.scale.missing ? [{
		text: "missing",
		color: n[256],
		n: t.paint.scale.missing
	}] : []];
	let r = t.names.map((e, r) => ({
		text: e,
		color: n[r],
		n: t.counts[r],
		shown: t.shown[r] === 1
	})).filter(({ shown: e }) => e), i = r.slice(0, Z);
	return r.length > Z && i.push({
		text: `and ${a(r.length - Z)} more`,
		color: "",
		n: 0,
		shown: !0
	}), i;
}
function gr(e, t) {
	let { state: n } = e, r = [{
		kind: "text",
		x: Y,
		y: 31,
		text: n.data.meta.title,
		bold: !0,
		size: 18
	}], { column: i, scale: o } = n.paint;
	if (!i) return r;
	let s = t - ar + Y;
	if (r.push({
		kind: "text",
		x: s,
		y: 31,
		text: _r(i.name),
		bold: !0
	}), o) {
		r.push({
			kind: "bar",
			x: s,
			y: X
		});
		for (let { at: e, text: t } of o.ticks) r.push({
			kind: "text",
			x: s + e * 170,
			y: 74,
			text: t,
			anchor: e < .08 ? "start" : e > .92 ? "end" : "middle",
			size: 11
		});
	}
	return hr(e).forEach(({ text: e, color: n, n: i }, o) => {
		if (!e) return;
		let c = 54 + o * or;
		n && r.push({
			kind: "disc",
			x: s + 5,
			y: c,
			color: n
		}), r.push({
			kind: "text",
			x: s + (n ? 18 : 0),
			y: c + 4.5,
			text: _r(e)
		}), i && r.push({
			kind: "text",
			x: t - Y,
			y: c + 4.5,
			text: a(i),
			anchor: "end"
		});
	}), r;
}
function _r(e) {
	return e.length > sr ? `${e.slice(0, 23)}…` : e;
}
function vr(e, { kind: n, x: r, y: i, text: a, color: o, bold: s, size: c, anchor: l }) {
	if (n === "disc") return t("circle", {
		cx: r,
		cy: i,
		r: 5,
		fill: o
	});
	if (n === "bar") {
		let n = e.state.paint.colors(e.state.themeName).slice(0, 256), a = t("g");
		for (let e = 0; e < 64; e++) a.append(t("rect", {
			x: r + e * 2.65625,
			y: i - 2,
			width: 3.15625,
			height: 10,
			fill: n[e * 4]
		}));
		return a;
	}
	return t("text", {
		x: r,
		y: i,
		fill: J[e.state.themeName],
		"font-weight": s ? 600 : 400,
		"font-size": c ?? 12.5,
		"text-anchor": l ?? "start"
	}, a);
}
function yr(e, t, { kind: n, x: r, y: i, text: a, color: o, bold: s, size: c, anchor: l }) {
	n === "disc" ? (e.fillStyle = o, e.beginPath(), e.arc(r, i, 5, 0, 2 * Math.PI), e.fill()) : n === "bar" ? t.state.paint.colors(t.state.themeName).slice(0, 256).forEach((t, n) => {
		e.fillStyle = t, e.fillRect(r + n * .6640625, i - 2, 1.1640625, 10);
	}) : (e.font = `${s ? 600 : 400} ${c ?? 12.5}px ${Q}`, e.fillStyle = J[t.state.themeName], e.textAlign = l === "end" ? "right" : l === "middle" ? "center" : "left", e.fillText(a, r, i));
}
function br(e, t, n, r, i) {
	e.font = `600 ${n.level ? 11.5 : 12.5}px ${Q}`, e.textAlign = "center", e.lineJoin = "round", n.line && (e.strokeStyle = J[t.state.themeName], e.lineWidth = .8, e.beginPath(), e.moveTo(r + n.line[0], i + n.line[1]), e.lineTo(r + n.line[2], i + n.line[3]), e.stroke());
	let [a, o] = [r + (n.left + n.right) / 2, i + (n.top + n.bottom) / 2 + 4.2];
	e.strokeStyle = q[t.state.themeName], e.lineWidth = 4, e.strokeText(n.text, a, o), e.fillStyle = J[t.state.themeName], e.fillText(n.text, a, o);
}
function xr(e, n) {
	let r = [], i = J[e.state.themeName];
	if (n.line) {
		let [e, a, o, s] = n.line.map((e) => e.toFixed(1));
		r.push(t("line", {
			x1: e,
			y1: a,
			x2: o,
			y2: s,
			stroke: i,
			"stroke-width": .8
		}));
	}
	let a = {
		x: ((n.left + n.right) / 2).toFixed(1),
		y: ((n.top + n.bottom) / 2 + 4.2).toFixed(1)
	}, o = {
		fill: i,
		stroke: q[e.state.themeName],
		"stroke-width": 3.5,
		"stroke-linejoin": "round",
		"paint-order": "stroke",
		"text-anchor": "middle",
		"font-weight": 600
	};
	return r.push(t("text", {
		...a,
		...o,
		"font-size": n.level ? 11.5 : 12.5
	}, n.text)), r;
}
function Sr(e, t) {
	let n = (t, n) => e.view.project(t, n).map((e) => e.toFixed(1)).join(" ");
	return t.map(([e, t, r, i]) => `M${n(e, t)}L${n(r, i)}`).join("");
}
function Cr(e, t, n, r, i) {
	e.save(), e.translate(r, i), e.strokeStyle = B(t.state), e.globalAlpha = .6;
	for (let t of n.density.contours) e.stroke(new Path2D(Sr(n, t)));
	e.restore();
}
function wr(e) {
	return e.state.data.meta.title.replace(/[^\p{L}\p{N}._ -]+/gu, "").trim().slice(0, 80) || "map";
}
// src/search.ts
var Tr = 50, Er = 120;
function Dr(e, t, n) {
	let r = e.get("query"), i = e.get("found");
	e.page.querySelector(".search .glyph").append(m("search"));
	let a = 0, o = [], s = () => {
		let e = r.value.trim().toLowerCase();
		o = e ? Or(t, e) : [], t.found = o, t.changed("found"), i.hidden = !e, i.replaceChildren(...e ? kr(t, o, n, () => c()) : []);
	}, c = () => {
		let e = r.value.trim(), n = o;
		t.found = [], t.changed("found"), t.select(n, e);
	};
	r.oninput = () => {
		clearTimeout(a), a = window.setTimeout(s, Er);
	}, r.onkeydown = (e) => {
		e.key === "Enter" ? (clearTimeout(a), s(), o.length && c()) : e.key === "ArrowDown" ? (e.preventDefault(), i.querySelector("ul button")?.focus()) : e.key === "Escape" && (e.stopPropagation(), r.value = "", s(), r.blur());
	}, i.onkeydown = (e) => {
		let t = {
			ArrowDown: "nextElementSibling",
			ArrowUp: "previousElementSibling"
		}[e.key];
		if (!t) return;
		e.preventDefault();
		let n = e.target.closest("li")?.[t];
		n ? n.querySelector("button").focus() : e.key === "ArrowUp" && r.focus();
	}, t.listen("shown", () => r.value && s());
}
function Or(e, t) {
	let { data: n } = e, r = new Uint8Array(n.n);
	n.ids.mark(t, r);
	for (let e of n.columns) e.mark(t, r);
	let i = [];
	for (let t = 0; t < n.n; t++) r[t] && e.visible(t) && i.push(t);
	return i;
}
function kr(t, n, r, i) {
	let { data: a } = t, s = e("p", { className: "summary" }, e("span", { textContent: n.length ? o(n.length, "match", "matches") : "No match" }));
	if (n.length === 0) return [s];
	s.append(e("button", {
		className: "link",
		textContent: "Select all",
		id: "select-matches",
		onclick: i
	}));
	let c = e("ul", { className: "results" }), l = a.columns.find((e) => e.kind === "texts") ?? a.columns.find((e) => e.kind === "classes");
	for (let i of n.slice(0, Tr)) {
		let n = e("button", {});
		n.append(a.image ? b(a, i, 20) : e("span", {
			className: "swatch",
			style: `background:${t.colorOf(i)}`
		})), n.append(e("span", {
			className: "name",
			textContent: y(a, i)
		}), e("small", { textContent: l?.text(i) ?? "" })), n.onclick = () => r.visit(i), n.onfocus = n.onmouseenter = () => r.point(i), c.append(e("li", {}, n));
	}
	let u = [s, c];
	return n.length > Tr && u.push(e("p", {
		className: "hint",
		textContent: `The first ${Tr} are listed.`
	})), u;
}
// src/address.ts
var Ar = 4e3;
function jr(e) {
	let t = [...e].sort((e, t) => e - t), [n, r] = ["", 0];
	for (let e = 0; e < t.length;) {
		let i = t[e], a = 1;
		for (; t[e + a] === i + a;) a++;
		if (n += `${n && "."}${(i - r).toString(36)}${a > 1 ? `-${a.toString(36)}` : ""}`, n.length > Ar) return null;
		r = i + a, e += a;
	}
	return n;
}
// src/statistics.ts
var Mr = 24;
function Nr(e, t) {
	let n = Lr(e.values, t, 1), r = Lr(e.values, t, 0);
	if (n.n === 0 || r.n === 0) return null;
	let i = Math.sqrt((n.variance * n.n + r.variance * r.n) / (n.n + r.n));
	return {
		column: e,
		effect: i > 0 ? (n.mean - r.mean) / i : 0,
		mean: n.mean,
		meanOfRest: r.mean
	};
}
function Pr(e, t) {
	let n = [new Uint32Array(e.names.length + 1), new Uint32Array(e.names.length + 1)], r = [0, 0];
	for (let i = 0; i < e.codes.length; i++) {
		let a = +!!t[i];
		n[a][e.codes[i]]++, r[a]++;
	}
	if (!r[0] || !r[1]) return null;
	let i = null;
	return e.names.forEach((t, a) => {
		let [o, s] = [n[1][a] / r[1], n[0][a] / r[0]], c = 2 * Math.asin(Math.sqrt(o)) - 2 * Math.asin(Math.sqrt(s));
		(!i || c > i.effect) && (i = {
			column: e,
			name: t,
			share: o,
			shareOfRest: s,
			effect: c
		});
	}), i;
}
function Fr(e, t) {
	return e.map((e) => e instanceof T ? Nr(e, t) : e instanceof w ? Pr(e, t) : null).filter((e) => e !== null && Math.abs(e.effect) >= .2).sort((e, t) => Math.abs(t.effect) - Math.abs(e.effect));
}
function Ir({ values: e, low: t, high: n }, r) {
	let i = [Array(Mr).fill(0), Array(Mr).fill(0)], a = [0, 0];
	for (let o = 0; o < e.length; o++) {
		let s = e[o];
		if (Number.isNaN(s)) continue;
		let c = n > t ? Math.min(23, Math.floor((s - t) / (n - t) * Mr)) : 0, l = +!!r[o];
		i[l][c]++, a[l]++;
	}
	let o = (e) => i[e].map((t) => a[e] ? t / a[e] : 0);
	return {
		low: t,
		high: n,
		selected: o(1),
		rest: o(0)
	};
}
function Lr(e, t, n) {
	let [r, i, a] = [
		0,
		0,
		0
	];
	for (let o = 0; o < e.length; o++) {
		let s = e[o];
		if (Number.isNaN(s) || t[o] !== n) continue;
		r++;
		let c = s - i;
		i += c / r, a += c * (s - i);
	}
	return {
		n: r,
		mean: i,
		variance: r ? a / r : 0
	};
}
// src/table.ts
var $ = 100;
function Rr(t, n, r, i) {
	let s = t.get("table-dialog"), { data: c } = n, l = e("tbody"), [u, d, f] = [
		-1,
		1,
		0
	], p = ["id", ...c.columns.map(({ name: e }) => e)], m = e("tr");
	c.image && m.append(e("th", {
		scope: "col",
		className: "picture",
		textContent: "picture"
	}));
	let g = m.childElementCount, _ = e("div", {
		className: "scroll",
		tabIndex: 0
	}, e("table", {}, e("thead", {}, m), l)), v = e("span", { id: "table-page" }), y = e("button", {
		textContent: "‹",
		id: "table-back",
		title: "Previous rows"
	}), b = e("button", {
		textContent: "›",
		id: "table-next",
		title: "Next rows"
	}), x = (e) => {
		f = e, S(), _.scrollTop = 0;
	};
	y.onclick = () => x(f - $), b.onclick = () => x(f + $);
	let S = () => {
		l.replaceChildren(...Br(c, r, u, d).slice(f, f + $).map((e) => zr(c, e, i))), v.textContent = `${a(f + 1)} to ${a(Math.min(r.length, f + $))} of ${a(r.length)}`, [y.disabled, b.disabled] = [f === 0, f + $ >= r.length], [...m.children].slice(g).forEach((e, t) => e.setAttribute("aria-sort", t === u + 1 ? d > 0 ? "ascending" : "descending" : "none"));
	};
	p.forEach((t, n) => {
		let r = e("button", {
			textContent: t,
			title: `Sort by ${t}`
		});
		r.onclick = () => {
			d = u === n - 1 ? -d : 1, u = n - 1, x(0);
		};
		let i = e("th", {
			scope: "col",
			className: c.columns[n - 1] instanceof T ? "number" : ""
		}, r);
		m.append(i);
	});
	let C = e("button", {
		textContent: "Copy",
		id: "copy-table"
	});
	C.onclick = async () => {
		await navigator.clipboard.writeText(Hr(c, r, "	")), C.textContent = "Copied";
	};
	let w = e("button", {
		className: "primary",
		textContent: "Download CSV",
		id: "download-table"
	});
	w.onclick = () => h("rows.csv", new Blob([Hr(c, r, ",")], { type: "text/csv" }));
	let ee = e("span", {
		className: "pages",
		hidden: r.length <= $
	}, y, v, b), E = e("button", {
		textContent: "Close",
		autofocus: !0,
		onclick: () => s.close()
	});
	_.setAttribute("role", "region"), _.setAttribute("aria-label", "Selected rows"), s.replaceChildren(e("header", {}, e("h2", { textContent: "Selected rows" }), e("small", { textContent: o(r.length, "row") })), _, e("div", { className: "actions" }, ee, w, C, E)), S(), s.open || s.showModal();
}
function zr(t, n, r) {
	let i = t.columns.map((t) => e("td", {
		textContent: t.text(n),
		className: t instanceof T ? "number" : ""
	})), a = e("tr", {}, ...t.image ? [e("td", { className: "picture" }, b(t, n, 28))] : [], e("th", {
		scope: "row",
		textContent: y(t, n)
	}), ...i);
	return a.onmouseenter = () => r(n), a;
}
function Br(e, t, n, r) {
	if (n < -1 || n === -1 && r === 1) return t;
	let i = e.columns[n];
	if (i instanceof T) {
		let { values: e } = i;
		return [...t].sort((t, n) => Number(Number.isNaN(e[t])) - Number(Number.isNaN(e[n])) || r * (e[t] - e[n]));
	}
	let a = (t) => i ? i.text(t) : e.ids.at(t), o = new Intl.Collator("en", { numeric: !0 }).compare;
	return [...t].sort((e, t) => r * o(a(e), a(t)));
}
function Vr(e) {
	return /^[=+\-@\t\r\n]/.test(e) && Number.isNaN(Number(e)) ? `'${e}` : e;
}
function Hr(e, t, n) {
	let r = (e) => {
		let t = Vr(e);
		return /["\n\r]/.test(t) || t.includes(n) ? `"${t.replaceAll("\"", "\"\"")}"` : t;
	}, i = [
		"id",
		...e.columns.map(({ name: e }) => e),
		"x",
		"y"
	], a = t.map((t) => {
		let i = e.columns.map((e) => e instanceof T ? Number.isNaN(e.values[t]) ? "" : String(e.number(t)) : e.text(t));
		return [
			e.ids.at(t),
			...i,
			...Ur(e, t)
		].map(r).join(n);
	});
	return `${[i.map(r).join(n), ...a].join("\n")}\n`;
}
function Ur(e, t) {
	if (e.exact) return [e.exact.x, e.exact.y].map((e) => String(f(e[t])));
	let n = e.meta.maps[0].box, r = n.length / 2, i = Array.from({ length: r }, (e, t) => n[r + t] - n[t]), a = Math.max(...i) || 1;
	return [e.x, e.y].map((e, i) => String(Number((e[t] * a / 2 + (n[i] + n[r + i]) / 2).toPrecision(7))));
}
// src/selection.ts
var Wr = 8, Gr = 24, Kr = 5, qr = 4;
function Jr(e, t, n) {
	let r = e.get("selection"), i = () => r.replaceChildren(...t.selected.length ? Qr(e, t, n) : Zr(n));
	for (let e of [
		"selected",
		"theme",
		"paint"
	]) t.listen(e, i);
	t.listen("selected", () => e.say(t.selected.length ? `${o(t.selected.length, "point")} selected` : "")), i();
}
function Yr(e) {
	return Xr(e).map((t) => e.data.ids.at(t));
}
function Xr(e) {
	return [...e.selected].sort((e, t) => e - t);
}
function Zr(t) {
	let n = e("button", {
		className: "link",
		textContent: "Select all shown",
		id: "select-shown",
		onclick: t.all
	}), r = P("Selection");
	r.append(n);
	let i = e("p", { className: "hint" });
	return i.append("Click a point. Hold ", e("kbd", { textContent: "Shift" }), " and drag, or press ", e("kbd", { textContent: "L" }), ", to draw around points."), [r, i];
}
function Qr(t, n, r) {
	let i = n.selected, o = e("button", {
		className: "link",
		textContent: "Clear",
		title: "Clear (Esc)",
		id: "clear",
		onclick: () => n.select([])
	}), s = P("Selection");
	s.append(o);
	let c = 100 * i.length / n.data.n, l = e("p", { className: "size" }, e("strong", {
		id: "selected-count",
		textContent: a(i.length)
	}));
	l.append(i.length === 1 ? " point" : ` points · ${c < .1 ? "< 0.1" : c.toFixed(1)} %`);
	let u = [s, l];
	return n.paint.classes && u.push($r(n, i)), i.length > 1 && i.length < n.data.n && u.push(...ei(n, i)), n.data.image && u.push(ii(n, i, r)), i.length === 1 && n.data.neighbors && u.push(ti(n, i[0], r)), u.push(ai(t, n, r)), !n.query && i.length && jr(i) === null && u.push(e("p", {
		className: "hint small",
		textContent: "This selection is too scattered for a link."
	})), u;
}
function $r(t, n) {
	let r = [...Fn(t.paint.codes, t.names.length, n)].map((e, t) => ({
		n: e,
		code: t
	})).filter(({ n: e }) => e > 0).sort((e, t) => t.n - e.n), i = e("ul", {
		className: "breakdown",
		id: "breakdown"
	});
	for (let { n, code: o } of r.slice(0, Wr)) {
		let s = e("span", {
			className: "share",
			style: `width:${100 * n / r[0].n}%;background:${t.color(o)}`
		});
		i.append(e("li", { title: t.names[o] }, e("span", {
			className: "name",
			textContent: t.names[o]
		}), e("span", {
			className: "n",
			textContent: a(n)
		}), s));
	}
	let s = r.slice(Wr);
	if (s.length) {
		let t = s.reduce((e, t) => e + t.n, 0);
		i.append(e("li", {
			className: "rest",
			textContent: `${o(t, "more point")} of ${o(s.length, "class", "classes")}`
		}));
	}
	return i;
}
function ei(t, n) {
	let r = new Uint8Array(t.data.n);
	for (let e of n) r[e] = 1;
	let i = Fr(t.data.columns.filter((e) => e !== t.paint.column || e instanceof T), r);
	if (i.length === 0) return [];
	let a = e("ul", {
		className: "apart",
		id: "apart"
	});
	for (let n of i.slice(0, Kr)) {
		let i = n.column instanceof T, o = i ? n.column.name : `${n.column.name}: ${n.name}`, c = n, l = n, u = i ? `${s(c.mean)} vs ${s(c.meanOfRest)}` : `${ni(l.share)} vs ${ni(l.shareOfRest)}`, d = e("li", {}, e("button", {
			className: "name",
			textContent: o,
			title: `Color by ${n.column.name}`,
			onclick: () => t.colorBy(n.column.name)
		}));
		d.append(e("span", {
			className: "n",
			textContent: u
		})), i && a.querySelectorAll("svg").length < qr && d.append(ri(t, n.column, r)), a.append(d);
	}
	let o = i.some(({ column: e }) => e instanceof w) ? "shares" : "means";
	return [
		e("h3", { textContent: "Differs from the rest in" }),
		a,
		e("p", {
			className: "hint small",
			textContent: `${o === "means" ? "Means" : "Means or shares"}: selected vs rest, by effect size.`
		})
	];
}
function ti(t, n, r) {
	let i = e("ul", {
		className: "results",
		id: "nearest"
	}), a = e("button", {
		className: "link",
		textContent: "Select them",
		id: "select-nearest"
	}), o = e("h3", { textContent: "Nearest in the data" });
	return o.append(a), t.data.neighbors(n).then((o) => {
		a.hidden = o.length === 0, a.onclick = () => t.select([n, ...o]), i.replaceChildren(...o.map((n) => {
			let i = t.data.image ? b(t.data, n, 20) : e("span", {
				className: "swatch",
				style: `background:${t.colorOf(n)}`
			}), a = t.paint.classes ? t.names[t.paint.codes[n]] : "", o = e("button", { onclick: () => t.select([n]) }, i, e("span", {
				className: "name",
				textContent: y(t.data, n)
			}), e("small", { textContent: a }));
			return o.onfocus = o.onmouseenter = () => r.point(n), e("li", {}, o);
		}));
	}), e("div", {}, o, i);
}
function ni(e) {
	return `${(100 * e).toFixed(+(e < .1))} %`;
}
function ri(e, n, r) {
	let { selected: i, rest: a, low: o, high: c } = Ir(n, r), l = Math.max(...i, ...a) || 1, [u, d] = [240, 34], f = u / i.length, p = (e) => d - e / l * (d - 2), m = i.map((e, n) => t("rect", {
		x: (n * f + .5).toFixed(1),
		y: p(e).toFixed(1),
		width: (f - 1).toFixed(1),
		height: (d - p(e)).toFixed(1)
	})), h = a.map((e, t) => `${t ? "L" : "M"}${(t * f).toFixed(1)} ${p(e).toFixed(1)}h${f.toFixed(1)}`).join(""), g = t("svg", {
		viewBox: `0 0 ${u} ${d}`,
		class: "histogram",
		role: "img",
		preserveAspectRatio: "none"
	});
	return g.setAttribute("aria-label", `${n.name} from ${s(o)} to ${s(c)}: selected rows as bars, the rest as a line`), g.append(...m, t("path", { d: h })), g.style.color = e.themeName === "dark" ? "#6db3f2" : "#0b63a5", g;
}
function ii(t, n, r) {
	let i = e("div", { className: "sheet" }), a = Math.max(1, n.length / Gr);
	for (let e = 0; e < Math.min(Gr, n.length); e++) {
		let o = n[Math.floor(e * a)], s = b(t.data, o, 26);
		s.title = y(t.data, o), s.onmouseenter = () => r.point(o), i.append(s);
	}
	return i;
}
function ai(t, n, r) {
	let i = e("button", {
		className: "primary",
		textContent: "Download ids",
		id: "download"
	});
	i.onclick = () => h("ids.txt", new Blob([`${Yr(n).join("\n")}\n`], { type: "text/plain" }));
	let a = e("button", {
		textContent: "Copy",
		id: "copy",
		title: "Copy the ids"
	});
	a.onclick = async () => {
		await navigator.clipboard.writeText(Yr(n).join("\n")), a.textContent = "Copied", setTimeout(() => a.textContent = "Copy", 1200);
	};
	let o = e("button", {
		textContent: "Zoom",
		title: "Zoom to the selection (Z)",
		id: "zoom-to",
		onclick: r.zoom
	}), s = e("button", {
		textContent: "Table",
		title: "Show the rows in a table (T)",
		id: "table",
		onclick: () => Rr(t, n, Xr(n), r.point)
	}), c = e("button", {
		textContent: "CSV",
		title: "Download the rows with all columns",
		id: "download-rows"
	});
	return c.onclick = () => h("rows.csv", new Blob([Hr(n.data, Xr(n), ",")], { type: "text/csv" })), e("div", { className: "actions" }, i, a, o, s, c);
}
// src/app.ts
var oi = "together", si = 700, ci = class {
	dom;
	state;
	panes = [];
	spares = [];
	card;
	feed = null;
	themeChanged = !1;
	part;
	lassoOn = !1;
	namesOn = !0;
	updateTools = () => {};
	mapListeners = [];
	onPane = null;
	constructor(e, t) {
		this.dom = e, this.state = t, this.card = new _(e.get("card"), t), this.firstMaps = t.data.maps.length > 1 && e.get("stage").clientWidth >= si ? oi : "0", this.shownMaps = this.firstMaps;
	}
	shownMaps;
	firstMaps;
	get view() {
		return this.panes[0].view;
	}
	get names() {
		return this.panes[0].names;
	}
	async draw() {
		for (let e of window.vicinalExtensions ?? []) await e(this);
		this.arrange();
		for (let e of this.panes) await e.draw();
		this.connect();
	}
	arrange() {
		let { maps: e } = this.state.data, t = this.shownMaps === "together" ? e.map((e, t) => t) : [Number(this.shownMaps)];
		for (this.dom.get("panes").style.gridTemplateColumns = `repeat(${Math.min(2, t.length)}, minmax(0, 1fr))`; this.panes.length > t.length;) {
			let e = this.panes.pop();
			e.element.remove(), this.spares.push(e);
		}
		for (let e of t.slice(this.panes.length)) {
			let t = this.spares.pop();
			if (t) {
				t.reuse(this.dom, this.state, e), this.panes.push(t);
				continue;
			}
			let n = new rr(this.dom, this.state, e, {
				hover: (e, t) => this.hover(e, t.view),
				moved: () => this.card.place(),
				lassoEnd: () => this.lasso(!1)
			});
			n.view.onView(() => this.card.place()), this.panes.push(n), this.onPane?.(n);
		}
		for (let { view: e } of this.panes) e.resize();
		for (let e of this.dom.all("#maps button")) e.setAttribute("aria-pressed", String(e.dataset.map === this.shownMaps));
	}
	async showMaps(e) {
		if (e !== "together" && this.state.data.maps[Number(e)] === void 0 || e === this.shownMaps) return;
		let t = this.panes.length;
		this.shownMaps = e;
		let n = e === "together" ? 0 : Number(e);
		this.arrange(), await this.panes[0].show(this.state, n);
		for (let e of this.panes.slice(t)) await e.draw();
		if (t !== this.panes.length) for (let e of this.panes) await e.view.fit(!1);
		for (let e of this.mapListeners) e();
	}
	onMaps(e) {
		this.mapListeners.push(e);
	}
	nextMap() {
		let { length: e } = this.state.data.maps;
		if (e < 2) return;
		let t = [...Array.from({ length: e }, (e, t) => String(t)), oi];
		this.showMaps(t[(t.indexOf(this.shownMaps) + 1) % t.length]);
	}
	hover(e, t) {
		this.state.hover(e), e >= 0 ? this.card.show(e, t) : this.card.hide();
	}
	point(e) {
		this.hover(e, this.view);
	}
	inspect() {
		let e = this.view.nearest(this.view.eye.width / 2, this.view.eye.height / 2);
		e >= 0 && this.point(e);
	}
	connect() {
		let { dom: e, state: t } = this;
		je(e, t), Re(e, t);
		let n = (e) => this.point(e);
		Dr(e, t, {
			point: n,
			visit: (e) => void this.view.zoomTo([e]).then(() => n(e))
		}), Jr(e, t, {
			zoom: () => this.zoomToSelection(),
			all: () => t.select(t.visibleRows() ?? Array.from({ length: t.data.n }, (e, t) => t)),
			point: n
		});
		let r = () => {
			let n = t.visibleCount();
			e.get("count").textContent = n === t.data.n ? `${a(n)} points` : `${a(n)} of ${a(t.data.n)} points shown`;
		}, i = () => {
			e.get("show-names").hidden = !this.panes.some(({ names: e }) => e.any), e.get("density").hidden = !this.panes[0].density.possible, e.get("near").hidden = t.data.neighbors === null;
		};
		for (let e of ["shown", "rows"]) t.listen(e, r);
		for (let e of ["paint", "rows"]) t.listen(e, i);
		t.listen("theme", () => e.page.dataset.theme = t.themeName), this.updateTools = i, i(), this.bindTools(), fe(this), new ResizeObserver(() => {
			for (let { view: e } of this.panes) e.resize();
			this.card.place();
		}).observe(e.get("stage"));
	}
	bindTools() {
		let { dom: e } = this, t = (t, n) => e.get(t).onclick = n;
		t("zoom-in", () => void this.view.zoom(1.6)), t("zoom-out", () => void this.view.zoom(1 / 1.6)), t("fit", () => this.fit()), t("lasso", () => this.lasso()), t("show-names", () => this.showNames()), t("density", () => this.showDensity()), t("near", () => this.showNearest()), t("smaller", () => this.resizePoints(.8)), t("larger", () => this.resizePoints(1.25)), t("save", () => this.savePicture()), t("theme", () => this.theme()), t("help", () => this.help()), t("panel-toggle", () => this.panel());
		let n = e.get("maps");
		n.hidden = this.state.data.maps.length < 2;
		let r = [...this.state.data.maps.map(({ name: e }, t) => [e, String(t)]), ["Side by side", oi]];
		for (let [e, t] of r) {
			let r = document.createElement("button");
			r.textContent = e, r.dataset.map = t, r.setAttribute("aria-pressed", String(t === this.shownMaps)), r.onclick = () => void this.showMaps(t), n.append(r);
		}
	}
	fit() {
		for (let { view: e } of this.panes) e.fit();
	}
	pan(e, t) {
		this.view.pan(e, t);
	}
	lasso(e = !this.lassoOn) {
		this.lassoOn = e, this.dom.get("lasso").setAttribute("aria-pressed", String(e));
		for (let { gestures: t, view: n } of this.panes) t.lasso = e, n.canvas.classList.toggle("drawing", e);
	}
	showNames() {
		this.namesOn = !this.namesOn;
		for (let { names: e } of this.panes) e.toggle();
		this.dom.get("show-names").setAttribute("aria-pressed", String(this.namesOn));
	}
	showDensity() {
		let e = !1;
		for (let { density: t } of this.panes) e = t.toggle();
		this.dom.get("density").setAttribute("aria-pressed", String(e));
	}
	showNearest() {
		let e = !1;
		for (let { nearest: t } of this.panes) e = t.toggle();
		this.dom.get("near").setAttribute("aria-pressed", String(e));
	}
	resizePoints(e) {
		for (let { view: t } of this.panes) t.resizePoints(e);
	}
	theme() {
		this.themeChanged = !0, this.state.setTheme(this.state.themeName === "dark" ? "light" : "dark");
	}
	panel() {
		let e = this.dom.page.classList.toggle("closed");
		this.dom.get("panel-toggle").setAttribute("aria-expanded", String(!e));
	}
	savePicture() {
		lr(this);
	}
	help() {
		let e = this.dom.get("help-dialog");
		if (e.open) return e.close();
		let t = document.createElement("button");
		t.textContent = "Close", t.autofocus = !0, t.onclick = () => e.close();
		let n = document.createElement("h2");
		n.textContent = "Keys and gestures", e.replaceChildren(n, pe(this.state.data.maps.length > 1, this.state.data.neighbors !== null), t), e.showModal();
	}
	table() {
		this.state.selected.length && Rr(this.dom, this.state, [...this.state.selected].sort((e, t) => e - t), (e) => this.point(e));
	}
	nextColumn() {
		let e = this.state.data.columns.filter(({ kind: e }) => e !== "texts").map(({ name: e }) => e);
		if (e.length === 0) return;
		let t = e.indexOf(this.state.paint.column?.name ?? "");
		this.state.colorBy(e[(t + 1) % e.length]);
	}
	zoomToSelection() {
		if (this.state.selected.length) for (let { view: e } of this.panes) e.zoomTo(this.state.selected);
	}
	escape() {
		this.state.hover(-1), this.card.hide(), this.lasso(!1), this.state.found = [], this.state.changed("found"), this.state.select([]);
	}
};
async function li(e, t) {
	let r = new n(e), { meta: i } = t, o = i.theme === "dark" || i.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches;
	r.page.dataset.theme = o ? "dark" : "light", r.get("title").textContent = i.title, r.get("count").textContent = i.n ? `${a(i.n)} points` : "";
	for (let e of r.all("#tools button")) e.append(m(e.id));
	try {
		let e = await ae(t);
		r.get("busy-text").textContent = "Drawing";
		let n = new ci(r, new Pn(e));
		return await n.draw(), document.hidden || await new Promise((e) => requestAnimationFrame(() => setTimeout(e))), r.get("busy").hidden = i.live === null, i.live && (n.feed = new ot(n, i.live)), n;
	} catch (e) {
		throw r.get("busy").hidden = !1, r.get("busy").classList.add("failed"), r.get("busy-text").textContent = `This map cannot be shown here: ${e instanceof Error ? e.message : String(e)}.`, e;
	}
}
// src/widget.ts
function ui(e) {
	return new Promise((t) => {
		let n = ({ type: r, names: i }, a) => {
			r === "data" && (e.off("msg:custom", n), t(Object.fromEntries(i.map((e, t) => [e, a[t]]))));
		};
		e.on("msg:custom", n), e.send({ type: "data" });
	});
}
async function di({ model: e, el: t }) {
	let n = document.createElement("div");
	n.style.cssText = `height:${Number(e.get("height"))}px;border:1px solid #8884;border-radius:8px;overflow:hidden`, t.append(n);
	let r = n.attachShadow({ mode: "open" });
	r.innerHTML = "<style>.vicinal{--ground:#fcfcfb;--panel:#fff;--ink:#1b1e24;--quiet:#5a626d;--faint:#6c7480;--line:#e6e7e9;--hover:#f2f3f4;--accent:#0b63a5;--on-accent:#fff;--shadow:0 1px 2px #14181e0f, 0 6px 20px #14181e17;--radius:10px;--lightningcss-light:initial;--lightningcss-dark: ;color-scheme:light;font:13.5px/1.45 Inter,Segoe UI,system-ui,-apple-system,Helvetica Neue,Arial,sans-serif}.vicinal[data-theme=dark]{--ground:#14171c;--panel:#191d23;--ink:#e9ebee;--quiet:#a8afba;--faint:#939ba7;--line:#2b3038;--hover:#232830;--accent:#6db3f2;--on-accent:#0d1116;--shadow:0 1px 2px #0006, 0 6px 24px #0006;--lightningcss-light: ;--lightningcss-dark:initial;color-scheme:dark}.vicinal *,.vicinal :before,.vicinal :after{box-sizing:border-box}.vicinal [hidden]{display:none!important}.vicinal{width:100%;height:100%;color:var(--ink);background:var(--ground);-webkit-font-smoothing:antialiased;outline:none;position:relative;overflow:hidden;container-type:size}.layout{grid-template:minmax(0,1fr)/minmax(0,1fr) 300px;width:100%;height:100%;display:grid}.closed .layout{grid-template:minmax(0,1fr)/minmax(0,1fr)}button,input,select{font:inherit;color:inherit}button{cursor:pointer;background:0 0;border:0}button:disabled{visibility:hidden}:focus-visible{outline:2px solid var(--accent);outline-offset:1px}#stage{min-width:0;height:100%;position:relative;overflow:hidden}#panes{background:var(--line);grid-auto-rows:minmax(0,1fr);gap:1px;display:grid;position:absolute;inset:0}.pane{background:var(--ground);min-width:0;position:relative;overflow:hidden}.map-name{white-space:nowrap;text-overflow:ellipsis;pointer-events:none;max-width:calc(100% - 28px);margin:0;font-size:14px;font-weight:600;position:absolute;top:12px;left:16px;overflow:hidden}.map{cursor:default;touch-action:none;width:100%;height:100%;display:block}.map:focus-visible{outline-offset:-3px}.map.drawing{cursor:crosshair}.contours,.lines,.lasso,.names{pointer-events:none;width:100%;height:100%;position:absolute;inset:0;overflow:hidden}.lines line{stroke:var(--ink);stroke-width:.8px;opacity:.7}.lines:not(.near) circle{fill:var(--ink);stroke:none}.near line{stroke:var(--ink);stroke-width:1.1px;opacity:.75}.near circle{stroke:var(--ink);stroke-width:1.2px}.beyond{pointer-events:none;position:absolute;inset:0;overflow:hidden}.beyond button{border:1px solid var(--line);font-variant-numeric:tabular-nums;color:var(--quiet);background:var(--panel);box-shadow:var(--shadow);pointer-events:auto;border-radius:99px;gap:4px;padding:2px 9px;font-size:12px;display:flex;position:absolute;transform:translate(-50%,-50%)}.beyond button:hover{color:var(--ink);background:var(--hover)}.lasso path{fill:color-mix(in srgb, var(--accent) 12%, transparent);stroke:var(--accent);stroke-width:1.6px;stroke-dasharray:5 3}.names span{letter-spacing:.005em;white-space:nowrap;color:var(--ink);paint-order:stroke fill;-webkit-text-stroke:3px color-mix(in srgb, var(--ground) 85%, transparent);padding:0 4px;font-size:12.5px;font-weight:600;position:absolute;top:0;left:0}.names .level1{font-size:11.5px;font-weight:550}.names .level2{font-size:11px;font-weight:500}.names .row{padding:0 2px;font-size:11px;font-weight:400}#maps{border:1px solid var(--line);border-radius:var(--radius);background:var(--panel);max-width:calc(100% - 24px);box-shadow:var(--shadow);gap:2px;padding:3px;display:flex;position:absolute;top:12px;right:12px;overflow:auto}#maps button{white-space:nowrap;color:var(--quiet);border-radius:7px;padding:4px 10px}#maps button:hover{background:var(--hover)}#maps button[aria-pressed=true]{color:var(--accent);background:color-mix(in srgb, var(--accent) 12%, transparent)}#tools{border:1px solid var(--line);border-radius:var(--radius);background:var(--panel);box-shadow:var(--shadow);align-items:center;gap:2px;padding:4px;display:flex;position:absolute;bottom:16px;left:16px}#tools button{width:30px;height:30px;color:var(--quiet);border-radius:7px;place-items:center;display:grid}#tools button:hover{background:var(--hover);color:var(--ink)}#tools button[aria-pressed=true]{color:var(--accent);background:color-mix(in srgb, var(--accent) 12%, transparent)}#tools hr{background:var(--line);border:0;width:1px;height:18px;margin:0 4px}.icon{fill:none;stroke:currentColor;stroke-width:1.4px;stroke-linecap:round;stroke-linejoin:round;width:16px;height:16px}#card{z-index:3;border:1px solid var(--line);border-radius:var(--radius);background:var(--panel);max-width:340px;box-shadow:var(--shadow);pointer-events:none;gap:12px;padding:10px 12px;display:flex;position:absolute;top:0;left:0}#card .texts{min-width:0}#card .id{overflow-wrap:anywhere;font-weight:600}#card .label{color:var(--quiet);align-items:center;gap:6px;margin-top:2px;display:flex}#card .label .name{overflow-wrap:anywhere}#card dl{grid-template-columns:auto 1fr;gap:1px 10px;margin:6px 0 0;font-size:12.5px;display:grid}#card dt{color:var(--faint)}#card dd{overflow-wrap:anywhere;white-space:pre-line;-webkit-line-clamp:5;-webkit-box-orient:vertical;margin:0;display:-webkit-box;overflow:hidden}.thumbnail{image-rendering:pixelated;background:#000;border-radius:5px;flex:none}.swatch{border-radius:50%;flex:none;width:10px;height:10px}#busy{color:var(--quiet);background:var(--ground);justify-content:center;align-items:center;gap:10px;display:flex;position:absolute;inset:0}#busy.failed{text-align:center;padding:0 15%}#busy.failed .spinner{display:none}.spinner{border:2px solid var(--line);border-top-color:var(--accent);border-radius:50%;width:14px;height:14px;animation:.8s linear infinite turn}@keyframes turn{to{transform:rotate(1turn)}}@media (prefers-reduced-motion:reduce){.spinner{animation:none}}#panel{border-left:1px solid var(--line);background:var(--panel);flex-direction:column;min-width:0;height:100%;display:flex;overflow:hidden auto}.closed #panel{display:none}#panel>header{padding:22px 20px 14px}h1{letter-spacing:-.012em;overflow-wrap:anywhere;margin:0;font-size:18px;font-weight:650;line-height:1.25}#count{color:var(--quiet);font-variant-numeric:tabular-nums;margin:3px 0 0}#panel>*{flex:none}#panel>section{border-top:1px solid var(--line);padding:14px 20px}#panel>#find{border-top:0;padding-top:0}h2{align-items:baseline;gap:8px;margin:0 0 8px;font-size:13px;font-weight:600;display:flex}h2 .name{text-overflow:ellipsis;white-space:nowrap;overflow:hidden}h2 small{color:var(--faint);flex:none;font-weight:400}h2 .link{flex:none;margin-left:auto}.link{color:var(--accent);padding:0;font-weight:500}.link:hover{text-underline-offset:2px;text-decoration:underline}.hint{color:var(--quiet);margin:0}kbd{border:1px solid var(--line);color:var(--quiet);background:var(--ground);border-bottom-width:2px;border-radius:4px;padding:0 5px;font:11.5px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace}.search{border:1px solid var(--line);background:var(--ground);border-radius:8px;align-items:center;gap:8px;padding:0 8px 0 10px;display:flex}.search:focus-within{border-color:var(--accent)}.search .glyph{color:var(--faint);display:grid}.search input{background:0 0;border:0;outline:0;flex:1;min-width:0;height:34px}.search input::placeholder{color:var(--faint)}.search input::-webkit-search-cancel-button{display:none}ul{margin:0;padding:0;list-style:none}.summary{color:var(--quiet);justify-content:space-between;margin:10px 0 4px;display:flex}.results{max-height:220px;margin:0 -8px;overflow:auto}.results button{text-align:left;border-radius:6px;align-items:center;gap:8px;width:100%;padding:4px 8px;display:flex}.results button:hover,.results button:focus-visible{background:var(--hover)}.results .name{text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.results small{text-overflow:ellipsis;white-space:nowrap;text-align:right;min-width:0;color:var(--faint);flex:1;overflow:hidden}#panel>#legend{flex-direction:column;display:flex}#panel>#legend:has(li:nth-child(6)){flex:0 auto;min-height:210px}.classes{min-height:0;margin:0 -8px;overflow:hidden auto}.classes li{display:flex;position:relative}.class{text-align:left;border-radius:6px;flex:1;align-items:center;gap:10px;min-width:0;padding:4px 8px 5px;display:flex;position:relative}.classes li:hover .class{background:var(--hover)}.class .name{overflow-wrap:anywhere;-webkit-line-clamp:2;-webkit-box-orient:vertical;flex:1;line-height:1.3;display:-webkit-box;overflow:hidden}.n{color:var(--quiet);font-variant-numeric:tabular-nums;flex:none}.class[aria-pressed=false]{color:var(--faint)}.class[aria-pressed=false] .swatch{opacity:.3}.class[aria-pressed=false] .name{text-decoration:line-through;-webkit-text-decoration-color:var(--faint);text-decoration-color:var(--faint)}.only{opacity:0;color:var(--accent);background:var(--hover);border-radius:5px;padding:0 8px;font-size:12.5px;position:absolute;top:2px;bottom:2px;right:4px}.classes li:hover .only,.only:focus-visible{opacity:1}.chooser{align-items:center;gap:10px;margin-bottom:10px;display:flex}.chooser label{flex:none;font-size:13px;font-weight:600}.chooser select,.parameters select{border:1px solid var(--line);min-width:0;height:30px;color:var(--ink);background:var(--ground);border-radius:7px;flex:1;padding:0 6px}.kinds{background:var(--hover);border-radius:8px;gap:2px;margin-bottom:12px;padding:2px;display:flex}.kinds button{color:var(--quiet);border-radius:6px;flex:1;padding:2px 6px;font-size:12.5px}.kinds button[aria-pressed=true]{color:var(--ink);background:var(--panel);box-shadow:0 1px 2px #0000001f}.scale .bar{border-radius:5px;height:10px}.ticks{height:20px;color:var(--quiet);font-variant-numeric:tabular-nums;margin-top:4px;font-size:12.5px;position:relative}.tick{white-space:nowrap;position:absolute;transform:translate(-50%)}.tick.first{transform:none}.tick.last{transform:translate(-100%)}.range{color:var(--quiet);align-items:center;gap:8px;margin-top:8px;display:flex}.range input{border:1px solid var(--line);min-width:0;height:28px;color:var(--ink);background:var(--ground);appearance:textfield;text-overflow:ellipsis;border-radius:6px;flex:1;padding:0 8px}.range input::placeholder{color:var(--faint)}.range input::-webkit-inner-spin-button{display:none}.order{width:92px;min-width:0;color:var(--quiet);background:var(--panel);cursor:pointer;border:0;flex:0 auto;padding:0;font-size:12.5px;font-weight:400}.chips{flex-wrap:wrap;gap:6px;display:flex}.chip{border:1px solid var(--line);text-align:left;color:var(--quiet);border-radius:99px;padding:3px 9px}.chip:hover{background:var(--hover)}.chip strong{color:var(--ink);font-weight:600}.missing{align-items:center;gap:10px;margin:6px 0 0;display:flex}.missing .name{flex:1}.small{margin-top:2px;font-size:12px}.size{color:var(--quiet);margin:0 0 8px}.size strong{letter-spacing:-.02em;color:var(--ink);font-variant-numeric:tabular-nums;font-size:22px;font-weight:650}.breakdown li{grid-template-columns:minmax(0,1fr) auto;gap:0 10px;padding:2px 0 5px;display:grid}.breakdown .name{text-overflow:ellipsis;white-space:nowrap;overflow:hidden}.breakdown .share{border-radius:2px;grid-column:1/-1;min-width:3px;height:3px}.breakdown .rest{color:var(--faint)}h3{justify-content:space-between;margin:12px 0 4px;font-size:12.5px;font-weight:600;display:flex}.apart li{grid-template-columns:minmax(0,1fr) auto;gap:1px 10px;padding:2px 0 4px;display:grid}.apart .name{text-align:left;text-overflow:ellipsis;white-space:nowrap;padding:0;overflow:hidden}.apart .name:hover{color:var(--accent)}.histogram{grid-column:1/-1;width:100%;height:34px}.histogram rect{fill:currentColor;opacity:.75}.histogram path{fill:none;stroke:var(--ink);stroke-width:1.2px;vector-effect:non-scaling-stroke}.sheet{flex-wrap:wrap;gap:4px;margin-top:10px;display:flex}.sheet .thumbnail{border-radius:3px}.actions{flex-wrap:wrap;gap:6px;margin-top:12px;display:flex}.actions button{white-space:nowrap;border:1px solid var(--line);border-radius:8px;height:32px;padding:0 10px;font-weight:500}.actions button:hover{background:var(--hover)}.actions .primary{color:var(--on-accent);background:var(--accent);border-color:#0000;flex:1}.actions .primary:hover{background:color-mix(in srgb, var(--accent) 88%, var(--ink))}.stage strong{font-weight:600}progress{background:var(--line);width:100%;height:4px;accent-color:var(--accent);border:0;border-radius:2px;margin:8px 0;display:block;overflow:hidden}progress::-webkit-progress-bar{background:var(--line)}progress::-webkit-progress-value{background:var(--accent);transition:width .15s}.facts{color:var(--quiet);grid-template-columns:1fr auto;gap:2px 10px;margin:8px 0 0;display:grid}.facts dd{text-align:right;color:var(--ink);font-variant-numeric:tabular-nums;margin:0}.parameters{gap:4px;margin-top:10px;display:grid}.parameters label{color:var(--quiet);grid-template-columns:1fr 116px;align-items:center;display:grid}.parameters input{border:1px solid var(--line);background:var(--ground);height:28px;color:var(--ink);border-radius:6px;padding:0 8px}#live .actions button{align-items:center;gap:5px;padding:0 8px;display:inline-flex}#live .actions svg{width:12px;height:12px}.unseen{clip-path:inset(50%);width:1px;height:1px;position:absolute;overflow:hidden}dialog{border:1px solid var(--line);max-width:min(820px,92%);max-height:86%;color:var(--ink);background:var(--panel);box-shadow:var(--shadow);border-radius:12px;padding:20px 22px}dialog[open]{flex-direction:column;display:flex}dialog::backdrop{background:#00000059}dialog h2{font-size:16px}dialog>header{align-items:baseline;gap:12px;display:flex}dialog>header small{color:var(--quiet)}dialog>button{border:1px solid var(--line);border-radius:8px;align-self:flex-end;height:32px;margin-top:12px;padding:0 12px}.keys{grid-template-columns:repeat(2,auto minmax(0,1fr));gap:5px 12px;margin:4px 0 0;display:grid;overflow:auto}.keys dt{text-align:right}.keys dd{margin:0;padding-right:12px}.scroll{border:1px solid var(--line);border-radius:8px;min-height:0;overflow:auto}table{border-collapse:collapse;width:100%;font-size:12.5px}th,td{text-align:left;text-overflow:ellipsis;white-space:nowrap;border-bottom:1px solid var(--line);max-width:320px;padding:4px 10px;overflow:hidden}th{font-weight:500}thead th{background:var(--panel);position:sticky;top:0}thead button{padding:0;font-weight:600}th[aria-sort=ascending] button:after{content:\" ↑\"}th[aria-sort=descending] button:after{content:\" ↓\"}.picture{width:48px}td.picture{padding:2px 10px}.pages{color:var(--quiet);font-variant-numeric:tabular-nums;flex:1 0 auto;align-items:center;gap:4px;display:flex}td.number,th.number{text-align:right;font-variant-numeric:tabular-nums}tbody tr:hover{background:var(--hover)}@container (width<=720px){.layout{grid-template:minmax(0,1fr) 42cqh/minmax(0,1fr)}.closed .layout{grid-template:minmax(0,1fr)/minmax(0,1fr)}#panel{border-top:1px solid var(--line);border-left:0}#tools{justify-content:center;bottom:8px;left:8px;right:8px;overflow:auto}#tools hr,#tools #smaller,#tools #larger{display:none}#tools{gap:0}#tools button{flex:none;width:33px;height:34px}.keys{grid-template-columns:auto minmax(0,1fr)}}</style><div class=\"vicinal\" data-theme=\"light\">\n<div class=\"layout\">\n<main id=\"stage\">\n  <div id=\"panes\"></div>\n  <div id=\"card\" role=\"status\" hidden></div>\n  <div id=\"busy\" role=\"status\"><span class=\"spinner\"></span><span id=\"busy-text\">Loading</span></div>\n  <div id=\"maps\" role=\"group\" aria-label=\"Maps\" hidden></div>\n  <div id=\"tools\" role=\"toolbar\" aria-label=\"Map tools\">\n    <button id=\"zoom-in\" title=\"Zoom in (+)\" aria-label=\"Zoom in\"></button>\n    <button id=\"zoom-out\" title=\"Zoom out (−)\" aria-label=\"Zoom out\"></button>\n    <button id=\"fit\" title=\"Show everything (0)\" aria-label=\"Show everything\"></button>\n    <hr>\n    <button id=\"lasso\" title=\"Lasso (L, or hold Shift and drag)\" aria-label=\"Lasso\" aria-pressed=\"false\"></button>\n    <button id=\"show-names\" title=\"Names on the map (N)\" aria-label=\"Names on the map\" aria-pressed=\"true\"></button>\n    <button id=\"density\" title=\"Contours of the density (C)\" aria-label=\"Contours of the density\" aria-pressed=\"false\"></button>\n    <button id=\"near\" title=\"Neighbors in the data (K)\" aria-label=\"Neighbors in the data\" aria-pressed=\"false\" hidden></button>\n    <hr>\n    <button id=\"smaller\" title=\"Smaller points ([)\" aria-label=\"Smaller points\"></button>\n    <button id=\"larger\" title=\"Larger points (])\" aria-label=\"Larger points\"></button>\n    <hr>\n    <button id=\"save\" title=\"Save a picture (S)\" aria-label=\"Save a picture\"></button>\n    <button id=\"theme\" title=\"Dark or light (D)\" aria-label=\"Dark or light\"></button>\n    <button id=\"help\" title=\"Keys (?)\" aria-label=\"Keys and gestures\"></button>\n    <button id=\"panel-toggle\" title=\"Panel (P)\" aria-label=\"Panel\" aria-expanded=\"true\"></button>\n  </div>\n</main>\n<aside id=\"panel\" aria-label=\"About the map\">\n  <header>\n    <h1 id=\"title\"></h1>\n    <p id=\"count\" aria-live=\"polite\"></p>\n  </header>\n  <section id=\"live\" aria-label=\"Layout\" hidden></section>\n  <section id=\"find\" aria-label=\"Search\">\n    <label class=\"search\"><span class=\"glyph\"></span><input id=\"query\" type=\"search\" placeholder=\"Search\" autocomplete=\"off\" spellcheck=\"false\" aria-label=\"Search ids, text and classes\"><kbd>/</kbd></label>\n    <div id=\"found\" hidden></div>\n  </section>\n  <section id=\"legend\" aria-label=\"Legend\" hidden></section>\n  <section id=\"filters\" aria-label=\"Filters\" hidden></section>\n  <section id=\"selection\" aria-label=\"Selection\"></section>\n</aside>\n</div>\n<div id=\"said\" class=\"unseen\" aria-live=\"polite\"></div>\n<dialog id=\"help-dialog\" aria-label=\"Keys and gestures\"></dialog>\n<dialog id=\"table-dialog\" aria-label=\"Selected rows\"></dialog>\n<dialog id=\"picture-dialog\" aria-label=\"Save a picture\"></dialog>\n</div>\n";
	let i = (e) => {
		e.ctrlKey || e.metaKey ? delete n.dataset.lmSuppressShortcuts : n.dataset.lmSuppressShortcuts = "true";
	};
	window.addEventListener("keydown", i, { capture: !0 }), n.addEventListener("keydown", (e) => e.ctrlKey || e.metaKey || e.stopPropagation()), r.getElementById("busy-text").textContent = "Waiting for Python; without a kernel, run the cell again";
	let a = await ui(e), o = await li(r, {
		meta: JSON.parse(String(e.get("_meta"))),
		section: async (e) => {
			let t = a[e];
			return t ? k(new Uint8Array(t.buffer, t.byteOffset, t.byteLength).slice()) : null;
		}
	}), s = fi(o, e);
	return n.dataset.ready = "true", Object.assign(n, { vicinalApp: o }), () => {
		s(), window.removeEventListener("keydown", i, { capture: !0 }), n.remove();
	};
}
function fi({ state: e, panes: t }, n) {
	let r = !1, i = (e, t) => {
		r || (n.set(e, t), n.save_changes());
	}, a = (e) => () => {
		r = !0;
		try {
			e();
		} finally {
			r = !1;
		}
	}, o = () => {
		let t = n.get("_selected");
		JSON.stringify(t) !== JSON.stringify(pi(e.selected)) && e.select(t);
	}, s = () => {
		let t = n.get("color_by");
		t !== (e.paint.column?.name ?? null) && e.colorBy(t);
	}, c = [
		["change:_selected", a(o)],
		["change:color_by", a(s)],
		["change:_zoom", a(() => {
			let { rows: e } = n.get("_zoom");
			for (let { view: n } of t) e?.length ? n.zoomTo(e) : n.fit();
		})]
	];
	for (let [e, t] of c) n.on(e, t);
	return a(o)(), a(s)(), e.listen("selected", () => i("_selected", pi(e.selected))), e.listen("paint", () => i("color_by", e.paint.column?.name ?? null)), () => {
		for (let [e, t] of c) n.off(e, t);
	};
}
function pi(e) {
	return [...e].sort((e, t) => e - t);
}
var mi = { render: di };
export { mi as default };
