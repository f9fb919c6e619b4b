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

// One classic script and one style sheet, which the exporter writes into the page: modules cannot load from file://.
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
