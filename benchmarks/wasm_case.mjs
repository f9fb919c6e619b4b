// One measurement in a process of its own: node wasm_case.mjs TASK FOLDER. Prints one line of JSON: seconds of the work
// by the clock and of the process by its processors, and the largest memory.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [task, folder] = process.argv.slice(2);
const built = new URL("../src/vicinal/viewer/static/", import.meta.url);
const { n, columns, k } = JSON.parse(readFileSync(join(folder, "shape.json")));

function array(name, Type) {
  const { buffer, byteOffset, byteLength } = readFileSync(join(folder, name));
  return new Type(buffer.slice(byteOffset, byteOffset + byteLength));
}

async function vicinal() {
  const { Vicinal } = await import(new URL("core.js", built));
  return Vicinal.load(readFileSync(new URL("core.wasm", built)));
}

async function fit(options) {
  const core = await vicinal(), rows = { data: array("rows.f32", Float32Array), n, columns };
  return () => core.fit(rows, { randomState: 42, ...options });
}

const TASKS = {
  fit: () => fit({}),
  fit200: () => fit({ nEpochs: 200 }),
  async umapjs() {
    const { UMAP } = createRequire(join(folder, "package.json"))("umap-js");
    const data = array("rows.f32", Float32Array);
    const rows = Array.from({ length: n }, (_, i) => Array.from(data.subarray(i * columns, (i + 1) * columns)));
    let state = 42;
    const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
    return () => new UMAP({ nNeighbors: k, random }).fit(rows);
  },
  async layout() {
    const core = await vicinal();
    const graph = { n, indptr: array("indptr.i32", Int32Array), indices: array("indices.i32", Int32Array), weights: array("weights.f32", Float32Array) };
    const start = array("start.f32", Float32Array);
    return () => {
      const layout = core.layout(graph, start, { randomState: 42 });
      while (!layout.step(10));
      const places = layout.embedding();
      if (!places.every(Number.isFinite)) throw new Error("the map is not finite");
      return layout;
    };
  },
};

const work = await TASKS[task]();
const before = process.cpuUsage(), start = performance.now();
work();
const wall = (performance.now() - start) / 1000, { user, system } = process.cpuUsage(before);
const { maxRSS } = process.resourceUsage();
console.log(JSON.stringify({ wall, processor: (user + system) / 1e6, peak: maxRSS * 1024, node: process.version }));
