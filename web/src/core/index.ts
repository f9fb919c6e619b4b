// vicinal in JavaScript: maps of rows by the core of the Python package, compiled to WebAssembly.

export type { Graph } from "./graph";
export type { Layout } from "./layout";
export { FittedMap, type OnProgress, type Stage, Vicinal } from "./map";
export type { Neighbors } from "./neighbors";
export type { FitOptions, GraphOptions, LayoutOptions, Method, Metric, Rows } from "./options";
export { type RemoteLayout, type RemoteMap, type RunOptions, VicinalWorker } from "./client";
