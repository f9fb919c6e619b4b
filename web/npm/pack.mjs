// Collects the files of the npm package in dist/: the committed bundle, the module and the types; and the licenses, those
// of what is compiled into the module among them.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync } from "node:fs";

const STATIC = "../src/vicinal/viewer/static";

rmSync("dist", { recursive: true, force: true });
mkdirSync("dist");
for (const name of ["core.js", "core-worker.js", "core.wasm"]) cpSync(`${STATIC}/${name}`, `dist/${name}`);
for (const name of ["index.js", "index.d.ts"]) cpSync(`npm/${name}`, `dist/${name}`);
cpSync("../LICENSE", "LICENSE");
for (const name of ["emscripten", "llvm", "musl"]) cpSync(`../licenses/${name}.txt`, `dist/licenses/${name}.txt`);
execFileSync("node_modules/.bin/tsc", ["-p", "tsconfig.types.json"], { stdio: "inherit" });
