// The layout of a graph, epoch by epoch.

import { type Graph, isolatedRows, withGraph } from "./graph";
import { type Core, type Memory, seedOf } from "./module";
import type { Neighbors } from "./neighbors";
import { type Checked, defaults } from "./options";
import { learningRates, type Phase, type Schedule, scheduleOf, type Totals, tsnePhases } from "./schedule";

const L = defaults.layout;

/** The numbers of LayoutSettings (cpp/wasm/map_layout.hpp). */
export function settingsOf(core: Core, schedule: Schedule, options: Checked, pulls: number, heaviest: number, seed: number): Float64Array {
  const [a, b] = kernelOf(core, options);
  return Float64Array.of(
    ...[a!, b!, schedule.repulsionStrength, schedule.negativeSampleRate, options.updateNegatives ? 1 : 0],
    Math.min(1, schedule.firings / schedule.sweeps),
    Math.round(schedule.singleNegativeShare * schedule.nEpochs) * schedule.sweeps,
    ...[schedule.longestPush, options.method === "largevis" ? 1 : 0, pulls, heaviest, seed, L.mostTurnedRows],
  );
}

/** The numbers in proportion to which n rows of a graph are drawn as negatives; rows without edges push nobody. */
export function pushesOf(core: Core, edges: number, n: number, options: Checked, memory: Memory): number {
  const out = memory.room(4 * n);
  core.call("graph_pushes", edges, options.method === "largevis" ? defaults.largevis.negativePower : 0, out);
  return out;
}

/** The parameters of the kernel 1 / (1 + a d^(2b)). */
export function kernelOf(core: Core, options: Checked): number[] {
  if (options.method === "largevis") return [defaults.largevis.kernel.a, defaults.largevis.kernel.b];
  if (options.a !== undefined && options.b !== undefined) return [options.a, options.b];
  return core.scope((memory) => {
    const out = memory.room(16);
    core.run("fit_kernel", options.minDist, options.spread, out);
    return [...memory.doubles(out, 2)];
  });
}

/**
 * A layout that is run in steps. It does not depend on how its epochs are divided into steps, and with the same graph,
 * start and options it has the bits of the Python package.
 */
export class Layout {
  /** Number of epochs after which the layout is finished. */
  readonly nEpochs: number;
  private done = 0;
  private pointer: number;
  private readonly schedule: Schedule | undefined;
  private readonly phases: Phase[] = [];

  constructor(
    private readonly core: Core,
    graph: Graph,
    start: Float32Array,
    private readonly options: Checked,
    neighbors?: Neighbors,
  ) {
    const dim = options.nComponents;
    this.n = graph.n;
    if (start.length !== graph.n * dim) {
      throw new RangeError(`start must have ${graph.n} * ${dim} numbers, got ${start.length}`);
    }
    const bad = start.findIndex((value) => !Number.isFinite(value));
    if (bad >= 0) throw new RangeError(`start contains ${start[bad]}, first in row ${Math.floor(bad / dim)}`);
    if (options.method === "densmap" && neighbors === undefined) throw new TypeError("densmap needs the neighbors of the graph");
    // Rows without edges do not move.
    const n = graph.n - isolatedRows(graph).length;
    if (n === 0) throw new RangeError("the graph has no edges");
    this.pointer = withGraph(core, graph, (edges, memory) => {
      if (options.method === "tsne") return core.call("tsne", edges, memory.put(start), dim, defaults.parameters.tsne.dof);
      const totals = memory.room(24);
      core.run("graph_totals", edges, totals);
      const [total, heaviest] = memory.doubles(totals, 2) as unknown as [number, number];
      Object.assign(this, { schedule: scheduleOf(options, graph.n, { total, heaviest, linked: n } satisfies Totals) });
      const settings = settingsOf(core, this.schedule!, options, L.pullsSymmetric, 0, seedOf(core, options));
      const made = core.call("layout", edges, memory.put(start), dim, memory.put(settings));
      if (options.method === "largevis") core.call("layout_weigh_negatives", made, pushesOf(core, edges, graph.n, options, memory));
      if (options.method === "densmap") this.addDensity(edges, made, neighbors!);
      return made;
    });
    if (options.method === "tsne") this.phases = tsnePhases(options, n);
    this.nEpochs = this.schedule?.nEpochs ?? this.phases.reduce((sum, phase) => sum + phase.nEpochs, 0);
  }

  /** Number of rows. */
  readonly n: number;

  get nComponents(): number {
    return this.options.nComponents;
  }

  /** Number of epochs completed. */
  get epoch(): number {
    return this.done;
  }

  /** Runs up to `epochs` more epochs; returns whether the layout is finished. */
  step(epochs = 1): boolean {
    const last = Math.min(this.done + epochs, this.nEpochs);
    if (last > this.done) {
      this.core.scope((memory) => {
        if (this.schedule) {
          const rates = learningRates(this.schedule, this.done, last);
          this.core.call("layout_step", this.live, memory.put(rates), rates.length);
        } else {
          this.core.call("tsne_step", this.live, memory.put(this.tsneSteps(this.done, last)), last - this.done);
        }
      });
      this.done = last;
    }
    return this.done >= this.nEpochs;
  }

  /** A copy of the places of all rows, [n][nComponents]. */
  embedding(): Float32Array {
    const size = this.n * this.nComponents;
    return this.core.scope((memory) => {
      const out = memory.room(4 * size);
      this.core.run(this.schedule ? "layout_places" : "tsne_places", this.live, out);
      return memory.floats(out, size);
    });
  }

  /** Releases the memory of the layout, which is not used afterwards. */
  free(): void {
    if (this.pointer) this.core.run(this.schedule ? "layout_free" : "tsne_free", this.pointer);
    this.pointer = 0;
  }

  private get live(): number {
    if (!this.pointer) throw new Error("the layout has been freed");
    return this.pointer;
  }

  private addDensity(edges: number, layout: number, neighbors: Neighbors): void {
    const D = defaults.density, { nEpochs, sweeps } = this.schedule!;
    const { densLambda, densFrac, densVarShift } = this.options;
    this.core.scope((memory) => {
      const target = memory.room(4 * this.n);
      const table = [memory.put(neighbors.index), memory.put(neighbors.distance), neighbors.k];
      this.core.call("graph_radii", edges, ...table, target);
      const first = (nEpochs - Math.floor(densFrac * nEpochs)) * sweeps;
      const how = Float64Array.of(D.exactShare * densLambda, D.exactShift * densVarShift, first, Math.min(sweeps, D.sweeps));
      this.core.call("layout_add_density", layout, target, memory.put(how));
    });
  }

  private tsneSteps(first: number, last: number): Float32Array {
    const steps: number[] = [];
    for (let epoch = first; epoch < last; ++epoch) {
      const phase = epoch < this.phases[0]!.nEpochs ? this.phases[0]! : this.phases[1]!;
      steps.push(phase.exaggeration, phase.learningRate, phase.momentum);
    }
    return Float32Array.from(steps);
  }
}
