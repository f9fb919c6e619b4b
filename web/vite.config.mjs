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
const WIDGET = { entry: "src/widget.ts", formats: ["es"], fileName: () => "widget.js" };

export default defineConfig(({ mode }) => ({
  publicDir: mode === "widget" ? false : "public",
  plugins: mode === "widget" ? [stamp()] : [],
  build: {
    outDir: OUT,
    emptyOutDir: mode !== "widget",
    target: "es2022",
    sourcemap: false,
    lib: mode === "widget" ? WIDGET : PAGE,
  },
}));
