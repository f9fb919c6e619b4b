import type { Vicinal, VicinalWorker } from "./types/index.js";

export * from "./types/index.js";

/** Loads the core into this thread. */
export function load(): Promise<Vicinal>;

/** Starts the core in a Web Worker. */
export function startWorker(): Promise<VicinalWorker>;
