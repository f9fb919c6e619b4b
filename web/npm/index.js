// The entry of the npm package: finds the files of the package, in browsers, bundlers and Node.

import { Vicinal, VicinalWorker } from "./core.js";

export { FittedMap, Vicinal, VicinalWorker } from "./core.js";

const module = new URL("./core.wasm", import.meta.url);

async function bytes() {
  if (module.protocol !== "file:") return (await fetch(module)).arrayBuffer();
  const { readFile } = await import("node:fs/promises");
  return readFile(module);
}

/** Loads the core into this thread. */
export async function load() {
  return Vicinal.load(await bytes());
}

/** Starts the core in a Web Worker. */
export async function startWorker() {
  if (typeof Worker === "undefined") throw new TypeError("there are no Web Workers here: use load()");
  return VicinalWorker.start(new Worker(new URL("./core-worker.js", import.meta.url)), await bytes());
}
