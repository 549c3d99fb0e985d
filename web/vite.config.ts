import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

// The hub serves what is built here under a content security policy without inline
// scripts, so nothing is inlined.
export default defineConfig({
  plugins: [preact({ prefreshEnabled: false, devToolsEnabled: false })],
  // A browser knows by itself what entities of HTML mean: see there.
  resolve: { alias: [{ find: /^entities$/, replacement: new URL("./src/content/entities.ts", import.meta.url).pathname }] },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: "licenses.md" },
    chunkSizeWarningLimit: 900,
    reportCompressedSize: true,
  },
  server: {
    proxy: { "/api": "http://127.0.0.1:8484", "/openapi.json": "http://127.0.0.1:8484", "/ws": { target: "ws://127.0.0.1:8484", ws: true } },
  },
});
