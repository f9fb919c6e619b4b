import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { defineConfig } from "vite";

const OUT = "../src/vicinal/viewer/static";
const SOURCES = ["package.json", "package-lock.json", "vite.config.mjs", ...files("public"), ...files("src")].sort();

function files(folder) {
  return readdirSync(folder).map((name) => `${folder}/${name}`);
}

// What the bundle was built from: a test compares it with the sources, so that CI needs no Node for it.
function stamp() {
  return {
    name: "stamp",
    closeBundle() {
      const lines = SOURCES.map((path) => `${createHash("sha256").update(readFileSync(path)).digest("hex")}  ${path}\n`);
      writeFileSync(join(OUT, "sources.sha256"), lines.join(""));
    },
  };
}

// One classic script and one style sheet: the exporter writes both into the page, since a module cannot be loaded
// from file://.
export default defineConfig({
  publicDir: "public",
  plugins: [stamp()],
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    lib: {
      entry: "src/main.ts",
      formats: ["iife"],
      name: "vicinal",
      fileName: () => "page.js",
      cssFileName: "page",
    },
  },
});
