// Epochs, sweeps and learning rates, by the numbers of the Python package.

import { type Checked, defaults } from "./options";

export interface Schedule {
  nEpochs: number;
  learningRate: number;
  negativeSampleRate: number;
  repulsionStrength: number;
  sweeps: number;
  firings: number;
  decay: number;
  constantRateShare: number;
  singleNegativeShare: number;
  longestPush: number;
}

/** Sum of the weights of a graph, its largest weight, and its rows that have edges. */
export interface Totals {
  total: number;
  heaviest: number;
  linked: number;
}

function tierOf<Tier extends { mostRows: number | null }>(tiers: Tier[], n: number): Tier {
  return tiers.find(({ mostRows }) => mostRows === null || n <= mostRows)!;
}

/** The schedule of a fit of n rows. */
export function scheduleOf(options: Checked, n: number, totals: Totals): Schedule {
  if (options.method === "largevis") return largevisSchedule(options, n, totals);
  const tier = tierOf(defaults.umap.tiers, n);
  const { learningRate, negativeSampleRate, repulsionStrength } = options;
  const nEpochs = options.nEpochs ?? tier.nEpochs;
  return { ...tier, nEpochs, learningRate, negativeSampleRate, repulsionStrength, longestPush: tier.longestPush ?? Infinity };
}

function largevisSchedule(options: Checked, n: number, { total, heaviest }: Totals): Schedule {
  const tier = tierOf(defaults.largevis.tiers, n), least = defaults.largevis.leastEpochs;
  const wanted = total > 0 ? Math.max(least, roundHalfEven(tier.samplesPerRow / (total / heaviest / n))) : least;
  const share = tier.negativeSampleRate / defaults.parameters.largevis.negativeSampleRate;
  return {
    ...tier,
    nEpochs: options.nEpochs ?? wanted,
    learningRate: options.learningRate,
    negativeSampleRate: share * options.negativeSampleRate,
    repulsionStrength: (tier.gamma * options.repulsionStrength) / share,
    longestPush: Infinity,
  };
}

/** The schedule of new rows among n that stay. */
export function placementOf(options: Checked, n: number): Schedule {
  const method = options.method === "largevis" ? "largevis" : "umap";
  const { placementEpochs, gamma } = { gamma: 1, ...tierOf<Tier>(defaults[method].tiers, n) };
  const wanted = options.nEpochs === undefined || method === "largevis" ? placementEpochs : Math.floor(options.nEpochs / 3);
  return {
    nEpochs: wanted,
    learningRate: options.learningRate * defaults.layout.placementRate,
    negativeSampleRate: options.negativeSampleRate,
    repulsionStrength: gamma * options.repulsionStrength,
    sweeps: 1,
    firings: 1,
    decay: 1.5,
    constantRateShare: 0,
    singleNegativeShare: 0,
    longestPush: Infinity,
  };
}

interface Tier {
  mostRows: number | null;
  placementEpochs: number;
  gamma?: number;
}

/** Learning rates of the sweeps of epochs [first, last). Products and square roots are the same in every browser. */
export function learningRates(schedule: Schedule, first: number, last: number): Float32Array {
  const rates = new Float32Array((last - first) * schedule.sweeps);
  for (let epoch = first; epoch < last; ++epoch) {
    const left = (1 - epoch / Math.max(schedule.nEpochs, 1)) / (1 - schedule.constantRateShare);
    const clipped = Math.min(Math.max(left, 0), 1);
    let rate = schedule.learningRate;
    for (let power = 1; power <= schedule.decay; ++power) rate *= clipped;
    if (schedule.decay % 1) rate *= Math.sqrt(clipped);
    rates.fill(rate, (epoch - first) * schedule.sweeps, (epoch - first + 1) * schedule.sweeps);
  }
  return rates;
}

/** Rounds as Python does: halves to the even number. */
export function roundHalfEven(value: number): number {
  const low = Math.floor(value);
  if (value - low !== 0.5) return Math.round(value);
  return low % 2 === 0 ? low : low + 1;
}

export interface Phase {
  nEpochs: number;
  exaggeration: number;
  learningRate: number;
  momentum: number;
}

/** The two phases of t-SNE for n rows. */
export function tsnePhases(options: Checked, n: number): Phase[] {
  const [early, late] = defaults.tsne.phasesOf10000 as [Phase, Phase];
  const all = options.nEpochs ?? early.nEpochs + late.nEpochs;
  const first = Math.min(early.nEpochs, all);
  // The learning rate of a phase is in proportion to the rows.
  const ratePerRow = (phase: Phase) => n / phase.exaggeration / 4;
  return [
    { ...early, nEpochs: first, learningRate: ratePerRow(early) },
    { ...late, nEpochs: all - first, learningRate: ratePerRow(late) },
  ];
}
