import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { defineConfig } from "vite";

const OUT = "../src/vicinal/viewer/static";
const SOURCES = ["package.json", "package-lock.json", "vite.config.mjs", ...files("public"), ...files("src")].sort();

function files(folder) {
  return readdirSync(folder).map((name) => `${folder}/${name}`);
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

// The page is one classic script and one style sheet, which the exporter writes into the page: modules cannot load from
// file://. So is a page that can lay out again, with its worker. The widget of notebooks is one module that contains its
// styles. The first bundle empties the folder, the last one writes the stamp.
const script = (entry, name) => ({ entry: `src/${entry}.ts`, formats: ["iife"], name: "vicinal", fileName: () => `${name}.js`, cssFileName: name });
const BUNDLES = {
  page: script("main", "page"),
  interactive: script("interactive", "interactive"),
  worker: script("layout_worker", "worker"),
  widget: { entry: "src/widget.ts", formats: ["es"], fileName: () => "widget.js" },
};
const [FIRST, LAST] = ["page", "widget"];

export default defineConfig(({ mode }) => ({
  publicDir: mode === FIRST ? "public" : false,
  plugins: mode === LAST ? [stamp()] : [],
  build: {
    outDir: OUT,
    emptyOutDir: mode === FIRST,
    target: "es2022",
    sourcemap: false,
    lib: BUNDLES[mode],
  },
}));
