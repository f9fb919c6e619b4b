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
// file://. The widget of notebooks is one module that contains its styles.
const PAGE = { entry: "src/main.ts", formats: ["iife"], name: "vicinal", fileName: () => "page.js", cssFileName: "page" };
// What a page of two versions has besides: a script that runs before that of the page.
const DIFF = { entry: "src/diff.ts", formats: ["iife"], name: "vicinalDiff", fileName: () => "diff.js", cssFileName: "diff" };
const WIDGET = { entry: "src/widget.ts", formats: ["es"], fileName: () => "widget.js" };

const PARTS = { diff: DIFF, widget: WIDGET };

export default defineConfig(({ mode }) => ({
  publicDir: mode in PARTS ? false : "public",
  plugins: mode === "widget" ? [stamp()] : [],
  build: {
    outDir: OUT,
    emptyOutDir: !(mode in PARTS),
    target: "es2022",
    sourcemap: false,
    lib: PARTS[mode] ?? PAGE,
  },
}));
