import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { defineConfig } from "vite";

const OUT = "../src/vicinal/viewer/static";
const SOURCES = ["package.json", "package-lock.json", "vite.config.mjs", ...files("public"), ...files("src")].sort();

function files(folder) {
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries.flatMap((entry) => (entry.isDirectory() ? files(`${folder}/${entry.name}`) : `${folder}/${entry.name}`));
}

// Records the hashes of the sources: a test compares them, so that CI does not need Node.
function stamp() {
  return {
    name: "stamp",
    closeBundle() {
      const lines = SOURCES.map((path) => `${createHash("sha256").update(readFileSync(path)).digest("hex")}  ${path}\n`);
      writeFileSync(join(OUT, "sources.sha256"), lines.join(""));
    },
  };
}

// A page is one classic script and one style sheet, which the exporter writes into the page: modules cannot load from
// file://. So are a page that can lay out again, and the manual's page with sliders. The widget of notebooks is one module
// that contains its styles.
const script = (entry, name) => ({ entry: `src/${entry}.ts`, formats: ["iife"], name: "vicinal", fileName: () => `${name}.js`, cssFileName: name });
const WIDGET = { entry: "src/widget.ts", formats: ["es"], fileName: () => "widget.js" };
// The core in JavaScript, as a module and as the script of a worker; `make wasm` builds the WebAssembly beside them.
const CORE = { entry: "src/core/index.ts", formats: ["es"], fileName: () => "core.js" };
const OUTPUTS = {
  page: script("main", "page"),
  // What a page of two versions has besides: a script that runs before that of the page.
  diff: { ...script("diff", "diff"), name: "vicinalDiff" },
  interactive: script("interactive", "interactive"),
  sliders: script("manual", "sliders"),
  widget: WIDGET,
  core: CORE,
  worker: script("core/worker", "core-worker"),
};

export default defineConfig(({ mode }) => ({
  publicDir: mode === "page" ? "public" : false,
  plugins: mode === "worker" ? [stamp()] : [],
  build: {
    outDir: mode === "sliders" ? "../docs/_static" : OUT,
    emptyOutDir: false,
    target: "es2022",
    sourcemap: false,
    lib: OUTPUTS[mode],
  },
}));
