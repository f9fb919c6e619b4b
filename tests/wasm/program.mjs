// Runs calls of the JavaScript core for tests: node program.mjs FOLDER. The folder holds calls.json, a list of
// {does, rows?, graph?, start?, neighbors?, options}, whose arrays are names of binary files; results are written beside them.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = process.argv[2];
const built = fileURLToPath(new URL("../../src/vicinal/viewer/static/", import.meta.url));
const { Vicinal } = await import(join(built, "core.js"));
const vicinal = await Vicinal.load(readFileSync(join(built, "core.wasm")));

const TYPES = { f32: Float32Array, i32: Int32Array };
const bytes = (name) => readFileSync(join(folder, name));
const array = (name) => {
  const { buffer, byteOffset, byteLength } = bytes(name);
  return new TYPES[name.slice(-3)](buffer.slice(byteOffset, byteOffset + byteLength));
};
const table = ({ data, n, columns }) => ({ data: array(data), n, columns });
const graphOf = ({ n, ...names }) => ({ n, ...Object.fromEntries(Object.entries(names).map(([k, name]) => [k, array(name)])) });
const optionsOf = (options) => (options?.init?.endsWith?.(".f32") ? { ...options, init: array(options.init) } : options);

function result(call) {
  const options = optionsOf(call.options);
  if (call.does === "golden") return vicinal.golden();
  if (call.does === "neighbors") return vicinal.neighbors(table(call.rows), options);
  if (call.does === "graph") return vicinal.graph({ k: call.k, share: 1, ...graphOf(call.neighbors) }, options);
  if (call.does === "start") return { places: vicinal.start(graphOf(call.graph), options, call.rows && table(call.rows)) };
  if (call.does === "layout") {
    const neighbors = call.neighbors && { k: call.k, share: 1, ...graphOf(call.neighbors) };
    const layout = vicinal.layout(graphOf(call.graph), array(call.start), options, neighbors);
    const { nEpochs } = layout;
    for (const epochs of call.steps ?? [nEpochs]) layout.step(epochs);
    const embedding = layout.embedding();
    layout.free();
    return { embedding, nEpochs };
  }
  if (call.does === "fit") {
    const map = vicinal.fit(table(call.rows), options);
    const { embedding, isolated } = map, { index, distance } = map.neighbors;
    const placed = call.fresh ? { placed: map.transform(table(call.fresh)) } : {};
    map.free();
    return { embedding, isolated, index, distance, weights: map.graph.weights, ...placed };
  }
  if (call.does === "refused") {
    try {
      vicinal.fit(call.rows, call.options);
    } catch (error) {
      return { name: error.name, message: error.message };
    }
  }
  return {};
}

const answers = JSON.parse(bytes("calls.json")).map((call, i) => {
  const plain = {};
  for (const [key, value] of Object.entries(result(call))) {
    if (!ArrayBuffer.isView(value)) plain[key] = value;
    else {
      plain[key] = `${i}-${key}.${value instanceof Int32Array ? "i32" : "f32"}`;
      writeFileSync(join(folder, plain[key]), value);
    }
  }
  return plain;
});
writeFileSync(join(folder, "answers.json"), JSON.stringify(answers));
