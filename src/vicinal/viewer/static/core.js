var e = {
	parameters: {
		umap: {
			nNeighbors: 15,
			nComponents: 2,
			metric: "euclidean",
			learningRate: 1,
			minDist: .1,
			spread: 1,
			setOpMixRatio: 1,
			localConnectivity: 1,
			repulsionStrength: 1,
			negativeSampleRate: 5,
			updateNegatives: !1,
			transformSeed: 42,
			densLambda: 2,
			densFrac: .3,
			densVarShift: .1
		},
		largevis: {
			perplexity: 8,
			negativeSampleRate: 5,
			learningRate: 1
		},
		tsne: {
			maxIter: 750,
			earlyExaggerationIter: 250,
			dof: 1,
			initialMomentum: .8,
			finalMomentum: .8
		}
	},
	umap: { tiers: [
		{
			mostRows: 1e4,
			nEpochs: 500,
			sweeps: 16,
			firings: 1,
			decay: 2,
			constantRateShare: .1,
			singleNegativeShare: 0,
			longestPush: .125,
			negativeSampleRate: 5,
			repulsionStrength: 1,
			placementEpochs: 100
		},
		{
			mostRows: 3e4,
			nEpochs: 500,
			sweeps: 4,
			firings: 1,
			decay: 2,
			constantRateShare: 0,
			singleNegativeShare: 0,
			longestPush: .125,
			negativeSampleRate: 5,
			repulsionStrength: 1,
			placementEpochs: 30
		},
		{
			mostRows: null,
			nEpochs: 200,
			sweeps: 4,
			firings: 1,
			decay: 2,
			constantRateShare: 0,
			singleNegativeShare: .75,
			longestPush: null,
			negativeSampleRate: 5,
			repulsionStrength: 1,
			placementEpochs: 30
		}
	] },
	largevis: {
		tiers: [
			{
				mostRows: 1e4,
				nEpochs: 4e3,
				sweeps: 4,
				firings: 1,
				decay: 2,
				constantRateShare: .1,
				singleNegativeShare: 0,
				longestPush: null,
				negativeSampleRate: 40,
				repulsionStrength: .125,
				placementEpochs: 50,
				samplesPerRow: 4e3,
				gamma: 12
			},
			{
				mostRows: 3e4,
				nEpochs: 4e3,
				sweeps: 2,
				firings: 1,
				decay: 2,
				constantRateShare: 0,
				singleNegativeShare: 0,
				longestPush: null,
				negativeSampleRate: 5,
				repulsionStrength: 1,
				placementEpochs: 50,
				samplesPerRow: 4e3,
				gamma: 20
			},
			{
				mostRows: null,
				nEpochs: 2400,
				sweeps: 1,
				firings: 1,
				decay: 2,
				constantRateShare: 0,
				singleNegativeShare: .2,
				longestPush: null,
				negativeSampleRate: 5,
				repulsionStrength: 1,
				placementEpochs: 50,
				samplesPerRow: 2400,
				gamma: 20
			}
		],
		leastEpochs: 100,
		negativePower: .75,
		kernel: {
			a: 1,
			b: 1
		},
		neighborsPerPerplexity: 3
	},
	tsne: {
		perplexity: 30,
		phasesOf10000: [{
			nEpochs: 250,
			exaggeration: 12,
			learningRate: 208.33333333333334,
			momentum: .8
		}, {
			nEpochs: 500,
			exaggeration: 1,
			learningRate: 2500,
			momentum: .8
		}],
		narrow: 1e-4,
		neighborsPerPerplexity: 3
	},
	layout: {
		pullsSymmetric: 2,
		pullsBipartite: 1,
		placementRate: .25,
		mostTurnedRows: 1e4,
		smallestSpread: 1e-15,
		largestSpread: 0x38d7ea4c68000,
		leastExtent: 10,
		spacing: .07
	},
	density: {
		exactShare: .75,
		exactShift: 4,
		sweeps: 4
	},
	metrics: {
		euclidean: {
			unrelated: null,
			unrelatedNonNegative: null
		},
		manhattan: {
			unrelated: null,
			unrelatedNonNegative: null
		},
		chebyshev: {
			unrelated: null,
			unrelatedNonNegative: null
		},
		cosine: {
			unrelated: 2,
			unrelatedNonNegative: 1
		},
		correlation: {
			unrelated: 2,
			unrelatedNonNegative: null
		}
	},
	search: {
		sketchWidth: 128,
		exactRows: 6e3,
		exactWork: 3e6,
		exactRowsPerNeighbor: 120,
		longTable: 48,
		enoughSought: 31,
		leastSpare: 8,
		mostSpare: 16,
		forestRows: 7e4,
		recallSample: 24,
		goodRecall: .9,
		exactLater: 4e11,
		queryTrees: 2,
		largestSafe: 0x38d7ea4c68000,
		smallestSafe: 1e-12,
		rounding: 1e-6,
		options: {
			trees: 5,
			leafRows: 96,
			nodeRows: 300,
			candidates: 16,
			spare: 16,
			rounds: 12,
			coarse: .55,
			fine: .37,
			final: .02,
			structureless: .8,
			evaluated: .1,
			unorderedBytes: 268435456
		},
		harder: {
			candidates: 32,
			spare: 48,
			coarse: .1,
			fine: .05,
			final: .005,
			evaluated: .02
		},
		longTableEnds: {
			coarse: .8,
			fine: .9,
			final: .3
		}
	}
}, t = e, n = [
	"umap",
	"densmap",
	"largevis",
	"tsne"
], r = {
	nNeighbors: [
		2,
		2 ** 31 - 1,
		!0
	],
	nComponents: [
		1,
		1e3,
		!0
	],
	nEpochs: [
		0,
		1e7,
		!0
	],
	learningRate: [Number.MIN_VALUE, 1e6],
	minDist: [0, e.layout.largestSpread],
	spread: [e.layout.smallestSpread, e.layout.largestSpread],
	a: [Number.MIN_VALUE, Number.MAX_VALUE],
	b: [Number.MIN_VALUE, Number.MAX_VALUE],
	repulsionStrength: [0, 1e6],
	negativeSampleRate: [
		0,
		1e4,
		!0
	],
	densLambda: [0, Number.MAX_VALUE],
	densFrac: [0, 1],
	densVarShift: [0, Number.MAX_VALUE],
	randomState: [
		0,
		2 ** 32 - 1,
		!0
	],
	seed: [
		0,
		2 ** 53 - 1,
		!0
	],
	transformSeed: [
		0,
		2 ** 32 - 1,
		!0
	],
	localConnectivity: [0, Number.MAX_VALUE],
	setOpMixRatio: [0, 1],
	disconnectionDistance: [Number.MIN_VALUE, Number.MAX_VALUE],
	perplexity: [1, 1e6]
}, i = [
	"method",
	"metric",
	"init",
	"updateNegatives"
];
function a(t = {}) {
	for (let [e, n] of Object.entries(t)) if (n !== void 0) {
		if (!(e in r) && !i.includes(e)) throw TypeError(`unknown option ${e}; options are ${[...Object.keys(r), ...i].sort().join(", ")}`);
		e in r && o(e, n);
	}
	let a = t.method ?? "umap";
	if (!n.includes(a)) throw TypeError(`method must be one of ${n.join(", ")}, got ${String(a)}`);
	let s = t.metric ?? "euclidean";
	if (!(s in e.metrics)) throw TypeError(`metric must be one of ${Object.keys(e.metrics).join(", ")}, got ${String(s)}`);
	if (t.updateNegatives !== void 0 && typeof t.updateNegatives != "boolean") throw TypeError(`updateNegatives must be true or false, got ${String(t.updateNegatives)}`);
	if (t.a === void 0 != (t.b === void 0)) throw TypeError("a and b must be given together");
	let c = a === "largevis" ? e.parameters.largevis : {}, l = {
		...e.parameters.umap,
		init: "spectral",
		randomState: 0,
		...c
	}, u = Object.fromEntries(Object.entries(t).filter(([, e]) => e !== void 0)), d = {
		...l,
		...u,
		method: a,
		metric: s
	};
	if (typeof d.init == "string" && !["spectral", "random"].includes(d.init)) throw TypeError(`init must be "spectral", "random" or an array, got ${JSON.stringify(d.init)}`);
	if (d.minDist > d.spread) throw RangeError(`minDist must not exceed spread, got minDist ${d.minDist}, spread ${d.spread}`);
	return d;
}
function o(e, t) {
	let [n, i, a] = r[e];
	if (typeof t != "number" || !(t >= n && t <= i) || a && !Number.isInteger(t)) {
		let r = a ? "a whole number" : "a number", o = n === Number.MIN_VALUE ? "above 0" : `from ${n} to ${i}`;
		throw RangeError(`${e} must be ${r} ${o}, got ${String(t)}`);
	}
}
function s(e, t = "rows", n) {
	let r = "data" in e ? e : c(e, t);
	if (!(r.data instanceof Float32Array) || r.data.length !== r.n * r.columns) throw TypeError(`${t} must hold n * columns numbers of a Float32Array`);
	if (n !== void 0 && r.n > 0 && r.columns !== n) throw RangeError(`${t} must have ${n} columns, got ${r.columns}`);
	let i = r.data.findIndex((e) => !Number.isFinite(e));
	if (i >= 0) {
		let e = Math.floor(i / r.columns);
		throw RangeError(`${t} contains ${r.data[i]}, first in row ${e}, column ${i % r.columns}`);
	}
	return r;
}
function c(e, t) {
	let n = e.length, r = n ? e[0].length : 0, i = new Float32Array(n * r);
	for (let a = 0; a < n; ++a) {
		let n = e[a];
		if (n.length !== r) throw RangeError(`${t} must have ${r} columns as row 0, row ${a} has ${n.length}`);
		for (let e = 0; e < r; ++e) {
			if (typeof n[e] != "number") throw TypeError(`${t} contains ${String(n[e])}, in row ${a}, column ${e}`);
			i[a * r + e] = n[e];
		}
	}
	return {
		data: i,
		n,
		columns: r
	};
}
// src/core/graph.ts
var l = t.tsne;
function u(e, n) {
	if (e.method === "largevis") return e.perplexity ?? t.parameters.largevis.perplexity;
	if (e.method === "tsne") return Math.max(1, Math.min(e.perplexity ?? l.perplexity, (n - 1) / l.neighborsPerPerplexity));
}
function d(e, t) {
	let n = u(e, t);
	return n === void 0 ? Math.min(e.nNeighbors, t) : Math.min(t, Math.floor(l.neighborsPerPerplexity * n) + 1);
}
function f(e, t, n) {
	let { n: r, k: i } = t, a = u(n, r);
	return e.scope((o) => {
		let s = [
			o.put(t.index),
			o.put(t.distance),
			r,
			i
		];
		return a === void 0 ? e.call("graph_fuzzy", ...s, n.localConnectivity, n.setOpMixRatio) : e.call("graph_entropic", ...s, a, +(n.method === "tsne"));
	});
}
function p(e, t, n) {
	let r = e.run("graph_edges", t);
	return e.scope((i) => {
		let a = i.room(4 * (n + 1)), o = i.room(4 * r), s = i.room(4 * r);
		return e.run("graph_copy", t, a, o, s), {
			n,
			indptr: i.integers(a, n + 1),
			indices: i.integers(o, r),
			weights: i.floats(s, r)
		};
	});
}
function m(e, t, n) {
	if (t.indptr.length !== t.n + 1 || t.indices.length !== t.weights.length) throw RangeError("indptr, indices and weights of a graph must fit together");
	if (t.indptr[t.n] !== t.indices.length) throw RangeError(`indptr must end with the number of edges, ${t.indices.length}`);
	let r = e.scope((n) => {
		let r = [
			t.indptr,
			t.indices,
			t.weights
		].map((e) => n.put(e));
		return e.call("graph", ...r, t.n);
	});
	try {
		return e.scope((e) => n(r, e));
	} finally {
		e.run("graph_free", r);
	}
}
function h(e) {
	let t = [];
	for (let n = 0; n < e.n; ++n) e.indptr[n] === e.indptr[n + 1] && t.push(n);
	return t;
}
// src/core/module.ts
var g = class e {
	exports;
	printed = "";
	constructor(e) {
		this.exports = e;
	}
	static async load(t) {
		let n = {}, r = {
			wasi_snapshot_preview1: b(() => n.of),
			env: { emscripten_notify_memory_growth: () => {} }
		}, i = t instanceof Promise ? await t : t, a = i instanceof WebAssembly.Module ? await WebAssembly.instantiate(i, r) : (await WebAssembly.instantiate(await y(i), r)).instance;
		return n.of = new e(a.exports), n.of.exports._initialize(), n.of;
	}
	call(e, ...t) {
		let n;
		try {
			n = this.exports[`vicinal_${e}`](...t);
		} catch (t) {
			throw Error(`vicinal: ${e} failed (${t instanceof Error ? t.message : String(t)})`);
		}
		if (!n) throw Error(`vicinal: ${this.text(this.exports.vicinal_error())}`);
		return n >>> 0;
	}
	run(e, ...t) {
		return this.exports[`vicinal_${e}`](...t);
	}
	scope(e) {
		let t = new v(this);
		try {
			return e(t);
		} finally {
			t.release();
		}
	}
	golden() {
		this.printed = "", this.call("golden");
		let e = this.printed.split("\n").filter((e) => e);
		return Object.fromEntries(e.map((e) => e.split(": ")));
	}
	get bytes() {
		return this.exports.memory.buffer.byteLength;
	}
	get buffer() {
		return this.exports.memory.buffer;
	}
	print(e) {
		this.printed += e;
	}
	text(e) {
		let t = new Uint8Array(this.buffer, e >>> 0);
		return new TextDecoder().decode(t.slice(0, t.indexOf(0)));
	}
};
function _(e, { seed: t, randomState: n }) {
	return t ?? e.run("seed", n);
}
var v = class {
	core;
	held = [];
	constructor(e) {
		this.core = e;
	}
	room(e) {
		let t = this.core.run("allocate", Math.max(e, 1)) >>> 0;
		if (!t) throw Error(`vicinal: out of memory, ${e} bytes are not to be had`);
		return this.held.push(t), t;
	}
	put(e) {
		let t = this.room(e.byteLength);
		return new Uint8Array(this.core.buffer, t, e.byteLength).set(new Uint8Array(e.buffer, e.byteOffset, e.byteLength)), t;
	}
	text(e) {
		let t = new TextEncoder().encode(`${e}\0`), n = this.room(t.length);
		return new Uint8Array(this.core.buffer, n, t.length).set(t), n;
	}
	floats(e, t) {
		return new Float32Array(this.core.buffer, e, t).slice();
	}
	doubles(e, t) {
		return new Float64Array(this.core.buffer, e, t).slice();
	}
	integers(e, t) {
		return new Int32Array(this.core.buffer, e, t).slice();
	}
	release() {
		for (let e of this.held.splice(0)) this.core.run("release", e);
	}
};
async function y(e) {
	return "arrayBuffer" in e ? e.arrayBuffer() : e;
}
function b(e) {
	let t = () => new DataView(e().buffer);
	return {
		fd_write: (n, r, i, a) => {
			let o = 0;
			for (let n = 0; n < i; ++n) {
				let i = t().getUint32(r + 8 * n, !0), a = t().getUint32(r + 8 * n + 4, !0);
				e().print(new TextDecoder().decode(new Uint8Array(e().buffer, i, a).slice())), o += a;
			}
			return t().setUint32(a, o, !0), 0;
		},
		clock_time_get: (e, ...n) => (t().setBigUint64(n[n.length - 1], BigInt(Math.round(performance.now() * 1e6)), !0), 0),
		environ_sizes_get: (e, n) => (t().setUint32(e, 0, !0), t().setUint32(n, 0, !0), 0),
		environ_get: () => 0,
		proc_exit: (e) => {
			throw Error(`the core ended with status ${e}`);
		}
	};
}
// src/core/schedule.ts
function x(e, t) {
	return e.find(({ mostRows: e }) => e === null || t <= e);
}
function S(e, n, r) {
	if (e.method === "largevis") return C(e, n, r);
	let i = x(t.umap.tiers, n), { learningRate: a, negativeSampleRate: o, repulsionStrength: s } = e, c = e.nEpochs ?? i.nEpochs;
	return {
		...i,
		nEpochs: c,
		learningRate: a,
		negativeSampleRate: o,
		repulsionStrength: s,
		longestPush: i.longestPush ?? Infinity
	};
}
function C(e, n, { total: r, heaviest: i }) {
	let a = x(t.largevis.tiers, n), o = t.largevis.leastEpochs, s = r > 0 ? Math.max(o, E(a.samplesPerRow / (r / i / n))) : o, c = a.negativeSampleRate / t.parameters.largevis.negativeSampleRate;
	return {
		...a,
		nEpochs: e.nEpochs ?? s,
		learningRate: e.learningRate,
		negativeSampleRate: c * e.negativeSampleRate,
		repulsionStrength: a.gamma * e.repulsionStrength / c,
		longestPush: Infinity
	};
}
function w(e, n) {
	let r = e.method === "largevis" ? "largevis" : "umap", { placementEpochs: i, gamma: a } = {
		gamma: 1,
		...x(t[r].tiers, n)
	};
	return {
		nEpochs: e.nEpochs === void 0 || r === "largevis" ? i : Math.floor(e.nEpochs / 3),
		learningRate: e.learningRate * t.layout.placementRate,
		negativeSampleRate: e.negativeSampleRate,
		repulsionStrength: a * e.repulsionStrength,
		sweeps: 1,
		firings: 1,
		decay: 1.5,
		constantRateShare: 0,
		singleNegativeShare: 0,
		longestPush: Infinity
	};
}
function T(e, t, n) {
	let r = new Float32Array((n - t) * e.sweeps);
	for (let i = t; i < n; ++i) {
		let n = (1 - i / Math.max(e.nEpochs, 1)) / (1 - e.constantRateShare), a = Math.min(Math.max(n, 0), 1), o = e.learningRate;
		for (let t = 1; t <= e.decay; ++t) o *= a;
		e.decay % 1 && (o *= Math.sqrt(a)), r.fill(o, (i - t) * e.sweeps, (i - t + 1) * e.sweeps);
	}
	return r;
}
function E(e) {
	let t = Math.floor(e);
	return e - t === .5 ? t % 2 == 0 ? t : t + 1 : Math.round(e);
}
function D(e, n) {
	let [r, i] = t.tsne.phasesOf10000, a = e.nEpochs ?? r.nEpochs + i.nEpochs, o = Math.min(r.nEpochs, a), s = (e) => n / e.exaggeration / 4;
	return [{
		...r,
		nEpochs: o,
		learningRate: s(r)
	}, {
		...i,
		nEpochs: a - o,
		learningRate: s(i)
	}];
}
// src/core/layout.ts
var O = t.layout;
function k(e, t, n, r, i, a) {
	let [o, s] = j(e, n);
	return Float64Array.of(o, s, t.repulsionStrength, t.negativeSampleRate, +!!n.updateNegatives, Math.min(1, t.firings / t.sweeps), Math.round(t.singleNegativeShare * t.nEpochs) * t.sweeps, t.longestPush, +(n.method === "largevis"), r, i, a, O.mostTurnedRows);
}
function A(e, n, r, i, a) {
	let o = a.room(4 * r);
	return e.call("graph_pushes", n, i.method === "largevis" ? t.largevis.negativePower : 0, o), o;
}
function j(e, n) {
	return n.method === "largevis" ? [t.largevis.kernel.a, t.largevis.kernel.b] : n.a !== void 0 && n.b !== void 0 ? [n.a, n.b] : e.scope((t) => {
		let r = t.room(16);
		return e.run("fit_kernel", n.minDist, n.spread, r), [...t.doubles(r, 2)];
	});
}
var M = class {
	core;
	options;
	nEpochs;
	done = 0;
	pointer;
	schedule;
	phases = [];
	constructor(e, n, r, i, a) {
		this.core = e, this.options = i;
		let o = i.nComponents;
		if (this.n = n.n, r.length !== n.n * o) throw RangeError(`start must have ${n.n} * ${o} numbers, got ${r.length}`);
		let s = r.findIndex((e) => !Number.isFinite(e));
		if (s >= 0) throw RangeError(`start contains ${r[s]}, first in row ${Math.floor(s / o)}`);
		if (i.method === "densmap" && a === void 0) throw TypeError("densmap needs the neighbors of the graph");
		let c = n.n - h(n).length;
		if (c === 0) throw RangeError("the graph has no edges");
		this.pointer = m(e, n, (s, l) => {
			if (i.method === "tsne") return e.call("tsne", s, l.put(r), o, t.parameters.tsne.dof);
			let u = l.room(24);
			e.run("graph_totals", s, u);
			let [d, f] = l.doubles(u, 2);
			Object.assign(this, { schedule: S(i, n.n, {
				total: d,
				heaviest: f,
				linked: c
			}) });
			let p = k(e, this.schedule, i, O.pullsSymmetric, 0, _(e, i)), m = e.call("layout", s, l.put(r), o, l.put(p));
			return i.method === "largevis" && e.call("layout_weigh_negatives", m, A(e, s, n.n, i, l)), i.method === "densmap" && this.addDensity(s, m, a), m;
		}), i.method === "tsne" && (this.phases = D(i, c)), this.nEpochs = this.schedule?.nEpochs ?? this.phases.reduce((e, t) => e + t.nEpochs, 0);
	}
	n;
	get nComponents() {
		return this.options.nComponents;
	}
	get epoch() {
		return this.done;
	}
	step(e = 1) {
		let t = Math.min(this.done + e, this.nEpochs);
		return t > this.done && (this.core.scope((e) => {
			if (this.schedule) {
				let n = T(this.schedule, this.done, t);
				this.core.call("layout_step", this.live, e.put(n), n.length);
			} else this.core.call("tsne_step", this.live, e.put(this.tsneSteps(this.done, t)), t - this.done);
		}), this.done = t), this.done >= this.nEpochs;
	}
	embedding() {
		let e = this.n * this.nComponents;
		return this.core.scope((t) => {
			let n = t.room(4 * e);
			return this.core.run(this.schedule ? "layout_places" : "tsne_places", this.live, n), t.floats(n, e);
		});
	}
	free() {
		this.pointer && this.core.run(this.schedule ? "layout_free" : "tsne_free", this.pointer), this.pointer = 0;
	}
	get live() {
		if (!this.pointer) throw Error("the layout has been freed");
		return this.pointer;
	}
	addDensity(e, n, r) {
		let i = t.density, { nEpochs: a, sweeps: o } = this.schedule, { densLambda: s, densFrac: c, densVarShift: l } = this.options;
		this.core.scope((t) => {
			let u = t.room(4 * this.n), d = [
				t.put(r.index),
				t.put(r.distance),
				r.k
			];
			this.core.call("graph_radii", e, ...d, u);
			let f = (a - Math.floor(c * a)) * o, p = Float64Array.of(i.exactShare * s, i.exactShift * l, f, Math.min(o, i.sweeps));
			this.core.call("layout_add_density", n, u, t.put(p));
		});
	}
	tsneSteps(e, t) {
		let n = [];
		for (let r = e; r < t; ++r) {
			let e = r < this.phases[0].nEpochs ? this.phases[0] : this.phases[1];
			n.push(e.exaggeration, e.learningRate, e.momentum);
		}
		return Float32Array.from(n);
	}
}, N = t.search, P = class {
	core;
	rows;
	memory;
	pointer;
	hasTrees = !1;
	constructor(e, t, n, r) {
		this.core = e, this.rows = t;
		let i = t.data.reduce((e, t) => Math.max(e, Math.abs(t)), 0);
		if (i !== 0 && !(i >= N.smallestSafe && i <= N.largestSafe)) throw RangeError(`rows must have a largest magnitude from ${N.smallestSafe} to ${N.largestSafe}, got ${i}`);
		this.memory = new v(e);
		let a = this.memory.put(t.data), o = this.memory.text(n);
		try {
			this.pointer = e.call("index", a, t.n, t.columns, o, r);
		} catch (e) {
			throw this.memory.release(), e;
		}
	}
	search(e) {
		let { n: t, columns: n } = this.rows, r = n <= N.sketchWidth && t * (n + 16) <= N.exactWork;
		if (e < 2 || t <= N.options.leafRows || t <= N.exactRows || r || t <= N.exactRowsPerNeighbor * e) return this.exact(e);
		this.grow();
		let { found: i, structured: a } = this.approximate(e, this.effort(e));
		return this.recall(i) >= N.goodRecall ? i : t * t * n <= N.exactLater ? {
			...this.exact(e),
			share: i.share
		} : a ? this.approximate(e, {
			...N.options,
			trees: this.trees,
			...N.harder
		}).found : i;
	}
	query(e, t, n, r) {
		let i = Math.min(t + Math.max(Math.floor(t / 8), 2), this.rows.n);
		return this.rows.n <= N.exactRows ? this.ask(e, t, i, 0, 0, 1) : (this.grow(), this.ask(e, t, i, n, N.queryTrees, r));
	}
	free() {
		this.core.run("index_free", this.pointer), this.memory.release();
	}
	exact(e) {
		return this.table(this.rows.n, e, (t, n) => (this.core.call("index_exact", this.pointer, e, t, n), 1));
	}
	grow() {
		this.hasTrees ||= (this.core.call("index_grow", this.pointer, this.trees, N.options.leafRows), !0);
	}
	get trees() {
		let e = 32 - Math.clz32(Math.floor(this.rows.n / N.forestRows));
		return N.options.trees + Math.max(0, e - 1);
	}
	effort(e) {
		let t = Math.min(N.options.spare, Math.max(N.enoughSought - e, N.leastSpare)), n = e <= N.longTable ? {} : N.longTableEnds;
		return {
			...N.options,
			trees: this.trees,
			spare: t,
			...n
		};
	}
	approximate(e, t) {
		let n = !0, r = Math.max(t.spare, Math.min(Math.floor(e / 3), N.mostSpare)), { trees: i, leafRows: a, nodeRows: o, candidates: s, rounds: c, coarse: l, fine: u, final: d, structureless: f, unorderedBytes: p } = t, m = [
			i,
			a,
			o,
			s,
			r,
			c,
			l,
			u,
			d,
			f,
			p
		];
		return {
			found: this.table(this.rows.n, e, (t, r, i) => {
				let a = i.put(Float64Array.from(m)), o = i.room(16);
				this.core.call("index_approximate", this.pointer, e, a, t, r, o);
				let [s, c] = i.doubles(o, 2);
				return n = c !== 0, s;
			}),
			structured: n
		};
	}
	recall(e) {
		let { n: t, columns: n, data: r } = this.rows, i = Array.from({ length: N.recallSample }, (e, n) => Math.floor(n * t / N.recallSample)), a = new Float32Array(i.length * n);
		i.forEach((e, t) => a.set(r.subarray(e * n, (e + 1) * n), t * n));
		let o = e.k, s = this.ask({
			data: a,
			n: i.length,
			columns: n
		}, o, o, 0, 0, 1), c = 0;
		return i.forEach((t, n) => {
			let r = Math.fround(s.distance[(n + 1) * o - 1] * Math.fround(1.0001));
			for (let n = 1; n < o; ++n) c += +(e.distance[t * o + n] <= r);
		}), c / (i.length * (o - 1));
	}
	ask(e, t, n, r, i, a) {
		return this.table(e.n, t, (o, s, c) => {
			let l = c.put(Float64Array.of(t, n, i, a));
			return this.core.call("index_query", this.pointer, c.put(e.data), e.n, r, l, o, s), 1;
		});
	}
	table(e, t, n) {
		return this.core.scope((r) => {
			let i = r.room(4 * e * t), a = r.room(4 * e * t), o = n(i, a, r);
			return {
				n: e,
				k: t,
				index: r.integers(i, e * t),
				distance: r.floats(a, e * t),
				share: o
			};
		});
	}
};
function F(e, n) {
	let { unrelated: r, unrelatedNonNegative: i } = t.metrics[e];
	return (i !== null && n.data.every((e) => e >= 0) ? i : r) ?? Infinity;
}
function I(e, t) {
	if (t === Infinity) return e;
	let n = e.index.slice(), r = e.distance.slice(), i = Math.fround(t * (1 - N.rounding));
	return r.forEach((e, t) => {
		e >= i && (n[t] = -1, r[t] = Infinity);
	}), {
		...e,
		index: n,
		distance: r
	};
}
// src/core/map.ts
var L = class e {
	core;
	constructor(e) {
		this.core = e;
	}
	static async load(t) {
		return new e(await g.load(t));
	}
	fit(e, t = {}, n) {
		let r = this.steps(e, t, n);
		try {
			return B(r.layout, n), r.finish();
		} catch (e) {
			throw r.abandon(), e;
		}
	}
	steps(e, t = {}, n) {
		let r = a(t), i = s(e);
		if (i.n < 2) throw RangeError(`a fit needs at least 2 rows, got ${i.n}`);
		if (i.columns < 1) throw RangeError("rows must have at least one column");
		let o = U(r, i.n), c = (e) => n?.(e, 0, 0, () => /* @__PURE__ */ new Float32Array());
		c("neighbors");
		let l = new P(this.core, i, r.metric, _(this.core, r));
		try {
			let e = l.search(d(r, i.n));
			c("graph");
			let n = r.disconnectionDistance ?? F(r.metric, i), a = I(e, n), s = this.graph(a, t);
			c("start");
			let u = new M(this.core, s, o ?? this.start(s, t, i), r, a);
			return {
				layout: u,
				finish: () => {
					let e = u.embedding();
					return u.free(), new R(this.core, l, new z(this.core, i), r, a, s, e, n);
				},
				abandon: () => {
					u.free(), l.free();
				}
			};
		} catch (e) {
			throw l.free(), e;
		}
	}
	neighbors(e, t = {}) {
		let n = a(t), r = s(e), i = new P(this.core, r, n.metric, _(this.core, n));
		try {
			return I(i.search(d(n, r.n)), n.disconnectionDistance ?? F(n.metric, r));
		} finally {
			i.free();
		}
	}
	graph(e, t = {}) {
		let n = f(this.core, e, a(t));
		try {
			return p(this.core, n, e.n);
		} finally {
			this.core.run("graph_free", n);
		}
	}
	start(e, t = {}, n) {
		let r = a(t), i = r.nComponents, o = e.n * i, c = U(r, e.n);
		if (c) return c;
		let l = n === void 0 ? void 0 : s(n), u = m(this.core, e, (t, n) => {
			let a = n.room(4 * o), s = _(this.core, r);
			if (r.init === "random") this.core.call("start_random", e.n, i, s, a);
			else {
				let e = l === void 0 ? 0 : n.put(l.data);
				this.core.call("start_spectral", t, e, l?.columns ?? 0, i, s, a);
			}
			return n.floats(a, o);
		});
		return r.method === "tsne" ? G(u, i) : u;
	}
	adopt(e, t, n, r = {}) {
		let i = a(r), o = s(e);
		if (t.n !== o.n || n.length !== o.n * i.nComponents) throw RangeError(`neighbors and embedding must be those of ${o.n} rows`);
		let c = this.graph(t, r), l = i.disconnectionDistance ?? F(i.metric, o), u = new P(this.core, o, i.metric, _(this.core, i));
		return new R(this.core, u, new z(this.core, o), i, t, c, n, l);
	}
	layout(e, t, n = {}, r) {
		return new M(this.core, e, t, a(n), r);
	}
	golden() {
		return this.core.golden();
	}
	get memoryBytes() {
		return this.core.bytes;
	}
}, R = class {
	core;
	index;
	rows;
	options;
	neighbors;
	graph;
	limit;
	n;
	nComponents;
	embedding;
	constructor(e, t, n, r, i, a, o, s) {
		this.core = e, this.index = t, this.rows = n, this.options = r, this.neighbors = i, this.graph = a, this.limit = s, this.n = n.table.n, this.nComponents = r.nComponents, this.embedding = n.shared(o, this.nComponents);
	}
	get isolated() {
		return h(this.graph);
	}
	transform(e) {
		if (this.options.method === "tsne" || this.options.method === "densmap") throw TypeError(`transform of ${this.options.method} is not available here; the Python package has it`);
		let t = s(e, "rows", this.rows.table.columns), n = this.nComponents, r = V(this.core, t), i = Array.from(r, (e, n) => this.rows.find(t, n, e)), a = i.flatMap((e, t) => e < 0 ? [t] : []), o = new Float32Array(t.n * n);
		if (i.forEach((e, t) => {
			e >= 0 && o.set(this.embedding.subarray(e * n, (e + 1) * n), t * n);
		}), a.length) {
			let e = this.place(H(t, a), BigUint64Array.from(a, (e) => r[e]));
			a.forEach((t, r) => o.set(e.subarray(r * n, (r + 1) * n), t * n));
		}
		return o;
	}
	free() {
		this.index.free();
	}
	place(e, n) {
		let { core: r, options: i } = this, a = this.nComponents, o = w(i, this.n), s = d(i, this.n), c = u(i, this.n);
		return m(r, this.graph, (l, u) => {
			let d = I(this.index.query(e, s, l, this.neighbors.share), this.limit);
			if (d.index.some((e, t) => t % s === 0 && e < 0)) throw RangeError("a new row has no neighbor within the disconnection distance");
			let f = [
				u.put(d.index),
				u.put(d.distance),
				e.n,
				s
			], p = c === void 0 ? r.call("graph_to_known", ...f, i.localConnectivity, this.n) : r.call("graph_entropic_to_known", ...f, c, 1, this.n);
			try {
				let s = {
					...i,
					updateNegatives: !1
				}, c = k(r, o, s, t.layout.pullsBipartite, 1, i.transformSeed), d = T(o, 0, o.nEpochs), f = u.room(4 * e.n * a), m = [
					u.put(n),
					u.put(c),
					u.put(d)
				], h = i.method === "umap" && this.isolated.length === 0 ? 0 : A(r, l, this.n, i, u);
				return r.call("place", p, u.put(this.embedding), a, ...m, d.length, h, f), u.floats(f, e.n * a);
			} finally {
				r.run("graph_free", p);
			}
		});
	}
}, z = class {
	table;
	keys;
	byKey = /* @__PURE__ */ new Map();
	constructor(e, t) {
		this.table = t, this.keys = V(e, t), this.keys.forEach((e, t) => {
			let n = this.byKey.get(e);
			n ? n.push(t) : this.byKey.set(e, [t]);
		});
	}
	find(e, t, n) {
		let { columns: r, data: i } = this.table;
		return this.byKey.get(n)?.find((n) => {
			for (let a = 0; a < r; ++a) if (i[n * r + a] !== e.data[t * r + a]) return !1;
			return !0;
		}) ?? -1;
	}
	shared(e, t) {
		if (this.byKey.size === this.table.n) return e;
		let n = e.slice();
		return this.keys.forEach((r, i) => {
			let a = this.find(this.table, i, r);
			a !== i && n.set(e.subarray(a * t, (a + 1) * t), i * t);
		}), n;
	}
};
function B(e, t) {
	if (!t) {
		e.step(e.nEpochs);
		return;
	}
	let n = () => t("layout", e.epoch, e.nEpochs, () => e.embedding()), r = !!n();
	for (; !r && e.epoch < e.nEpochs;) e.step(), r = !!n();
}
function V(e, t) {
	return e.scope((n) => {
		let r = n.room(8 * t.n);
		return e.call("hash_rows", n.put(t.data), t.n, t.columns, r), new BigUint64Array(e.buffer, r, t.n).slice();
	});
}
function H({ data: e, columns: t }, n) {
	let r = new Float32Array(n.length * t);
	return n.forEach((n, i) => r.set(e.subarray(n * t, (n + 1) * t), i * t)), {
		data: r,
		n: n.length,
		columns: t
	};
}
function U(e, t) {
	if (typeof e.init == "string") return;
	let n = e.nComponents, r = e.init instanceof Float32Array ? e.init : s(e.init, "init", n).data;
	if (r.length !== t * n) throw RangeError(`init must have ${t} * ${n} numbers, got ${r.length}`);
	let i = r.findIndex((e) => !Number.isFinite(e));
	if (i >= 0) throw RangeError(`init contains ${r[i]}, first in row ${Math.floor(i / n)}`);
	return e.method === "tsne" ? G(r, n) : W(r, t, n);
}
function W(e, n, r) {
	let { leastExtent: i, spacing: a } = t.layout, o = new Float32Array(e.length), s = Math.max(i, a * (r <= 2 ? Math.sqrt(n) : n ** (1 / r))), c = Array.from({ length: r }, (t, n) => {
		let i = Infinity, a = -Infinity;
		for (let t = n; t < e.length; t += r) i = Math.min(i, e[t]), a = Math.max(a, e[t]);
		return {
			low: i,
			width: a - i
		};
	}), l = Math.max(...c.map(({ width: e }) => e));
	return c.forEach(({ low: t, width: n }, i) => {
		let a = s * (l > 0 ? n / l : 1);
		for (let s = i; s < e.length; s += r) o[s] = n > 0 ? a * (e[s] - t) / n : a / 2;
	}), o;
}
function G(e, n) {
	let r = e.length / n, i = Float64Array.from(e), a = 0;
	for (let e = 0; e < n; ++e) {
		let t = 0, o = 0;
		for (let r = e; r < i.length; r += n) t += i[r];
		for (let a = e; a < i.length; a += n) i[a] = i[a] - t / r;
		for (let t = e; t < i.length; t += n) o += i[t] * i[t];
		a = Math.max(a, Math.sqrt(o / r));
	}
	return Float32Array.from(i, (e) => e * (a > 0 ? t.tsne.narrow / a : 1));
}
// src/core/client.ts
var K = class e {
	worker;
	calls = 0;
	waiting = /* @__PURE__ */ new Map();
	constructor(e) {
		this.worker = e, e.onmessage = ({ data: e }) => this.hear(e), e.onerror = (e) => this.fail(Error(e.message || "the worker could not be started"));
	}
	static async start(t, n) {
		let r = new e(t);
		return await r.ask({
			does: "load",
			source: n
		}), r;
	}
	async fit(e, t = {}, n = {}) {
		let { every: r = 50, lookAt: i = !1 } = n;
		return new q(this, await this.ask({
			does: "fit",
			rows: e,
			options: t,
			every: r,
			lookAt: i
		}, n));
	}
	async adopt(e, t, n, r = {}) {
		return new q(this, await this.ask({
			does: "adopt",
			rows: e,
			neighbors: t,
			embedding: n,
			options: r
		}));
	}
	neighbors(e, t = {}) {
		return this.ask({
			does: "neighbors",
			rows: e,
			options: t
		});
	}
	graph(e, t = {}) {
		return this.ask({
			does: "graph",
			neighbors: e,
			options: t
		});
	}
	start(e, t = {}, n) {
		return this.ask(n === void 0 ? {
			does: "start",
			graph: e,
			options: t
		} : {
			does: "start",
			graph: e,
			options: t,
			rows: n
		});
	}
	async layout(e, t, n = {}, r) {
		let i = {
			does: "layout",
			graph: e,
			start: t,
			options: n
		};
		return new J(this, await this.ask(r === void 0 ? i : {
			...i,
			neighbors: r
		}));
	}
	golden() {
		return this.ask({ does: "golden" });
	}
	terminate() {
		this.worker.terminate(), this.fail(Object.assign(/* @__PURE__ */ Error("the worker was terminated"), { name: "AbortError" }));
	}
	ask(e, t = {}) {
		let n = ++this.calls;
		return new Promise((r, i) => {
			this.waiting.set(n, {
				resolve: r,
				reject: i,
				onProgress: t.onProgress
			});
			let a = () => this.worker.postMessage({
				does: "cancel",
				call: n
			});
			this.worker.postMessage({
				...e,
				call: n
			}), t.signal?.aborted ? a() : t.signal?.addEventListener("abort", a, { once: !0 });
		});
	}
	hear(e) {
		let t = this.waiting.get(e.call);
		t && ("progress" in e ? t.onProgress?.(e.progress) : (this.waiting.delete(e.call), "error" in e ? t.reject(Object.assign(Error(e.error.message), { name: e.error.name })) : t.resolve(e.result)));
	}
	fail(e) {
		for (let { reject: t } of this.waiting.values()) t(e);
		this.waiting.clear();
	}
}, q = class {
	client;
	n;
	nComponents;
	embedding;
	graph;
	neighbors;
	isolated;
	map;
	constructor(e, t) {
		this.client = e, {n: this.n, nComponents: this.nComponents, embedding: this.embedding} = t, {graph: this.graph, neighbors: this.neighbors, isolated: this.isolated, map: this.map} = t;
	}
	transform(e) {
		return this.client.ask({
			does: "transform",
			map: this.map,
			rows: e
		});
	}
	async free() {
		await this.client.ask({
			does: "free",
			object: this.map
		});
	}
}, J = class {
	client;
	nEpochs;
	layout;
	constructor(e, t) {
		this.client = e, {nEpochs: this.nEpochs, layout: this.layout} = t;
	}
	run(e = {}) {
		let { epochs: t = this.nEpochs, every: n = 50, lookAt: r = !1 } = e;
		return this.client.ask({
			does: "run",
			layout: this.layout,
			epochs: t,
			every: n,
			lookAt: r
		}, e);
	}
	embedding() {
		return this.client.ask({
			does: "embedding",
			layout: this.layout
		});
	}
	async free() {
		await this.client.ask({
			does: "free",
			object: this.layout
		});
	}
};
export { R as FittedMap, L as Vicinal, K as VicinalWorker };
