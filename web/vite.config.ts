import preact from "@preact/preset-vite";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { gunzipSync, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const source = (path: string) => new URL(`./src/${path}`, import.meta.url).pathname;
const dist = new URL("../internal/hub/page/dist", import.meta.url).pathname;

/** inertPurify replaces DOMPurify by src/shared/content/purify.ts wherever it is imported. */
const inertPurify: Plugin = {
  name: "inert-purify",
  enforce: "pre",
  resolveId: (id, importer) =>
    id === "dompurify" && importer !== source("shared/content/purify.ts")
      ? source("shared/content/purify.ts")
      : undefined,
};

/** oneFontFormat keeps of KaTeX's fonts the format that all browsers read. */
const oneFontFormat: Plugin = {
  name: "one-font-format",
  enforce: "pre",
  transform: (code, id) =>
    /\/katex\.min\.css$/.test(id) ? code.replace(/,url\([^)]*\) format\("(woff|truetype)"\)/g, "") : undefined,
};

/**
 * inlineRuntime writes the one function of Rolldown's runtime that pages use into their chunks, so
 * that the first load needs no request for it.
 */
const inlineRuntime: Plugin = {
  name: "inline-runtime",
  enforce: "pre",
  generateBundle(_, bundle) {
    for (const chunk of Object.values(bundle)) {
      if (chunk.type !== "chunk" || !chunk.fileName.startsWith("assets/page/")) continue;
      const [whole, name] = /import\{__exportAll as (\w+)\}from"[^"]*rolldown-runtime[^"]*";/.exec(chunk.code) ?? [];
      if (!whole) continue;
      const code = `function ${name}(all){const out={};for(const n in all)Object.defineProperty(out,n,{get:all[n],enumerable:true});return out}`;
      chunk.code = chunk.code.replace(whole, "") + code;
      chunk.imports = chunk.imports.filter((path) => !path.includes("rolldown-runtime"));
    }
  },
};

/** The groups of messages that the first pages use: the chat, the list of the library, approvals and the sign-in. */
const startGroups =
  /^(account(?!\.roles)|approvals|back|chat|content|diagram|editor|form|language|library|problem|shell|ui)\./;

/** messageParts splits each message file in two, so that the first load has only what it needs. */
const messageParts: Plugin = {
  name: "message-parts",
  enforce: "pre",
  load(id) {
    const [, path, part] = /^(.*\/i18n\/[\w-]+\.json)\?(start|rest)$/.exec(id) ?? [];
    if (!path) return undefined;
    const all = Object.entries(JSON.parse(readFileSync(path, "utf8")) as Record<string, string>);
    const messages = Object.fromEntries(all.filter(([key]) => startGroups.test(key) === (part === "start")));
    return { code: JSON.stringify(messages), moduleType: "json" };
  },
};

/**
 * Compresses the chunks of packages, which are most of dist and change rarely, so that the program is smaller. A file
 * with the same content stays as it is, because other versions of Node compress to other bytes.
 */
const compressPackages: Plugin = {
  name: "compress-packages",
  apply: ({ build }) => build?.outDir === dist, // not for tests
  writeBundle(_, bundle) {
    for (const name of Object.keys(bundle).filter((name) => /^assets\/[^/]+\.js$/.test(name))) {
      const code = readFileSync(`${dist}/${name}`);
      const old = compressed.get(`${name}.gz`);
      const same = old && gunzipSync(old).equals(code);
      writeFileSync(`${dist}/${name}.gz`, same ? old : gzipSync(code, { level: 9 }));
      rmSync(`${dist}/${name}`);
    }
  },
};

/** The compressed files of the last build, which Vite deletes before it writes. */
const compressed = new Map(
  (existsSync(`${dist}/assets`) ? readdirSync(`${dist}/assets`) : []) // a build that failed deleted it
    .filter((name) => name.endsWith(".gz"))
    .map((name) => [`assets/${name}`, readFileSync(`${dist}/assets/${name}`)]),
);

/** isPackage reports whether a module belongs to a package or stands between packages. */
const isPackage = (id: string) =>
  /\/node_modules\/|vite\/preload-helper|rolldown\/runtime|shared\/content\/(purify|entities)\.ts/.test(id);

// The hub serves the page under a content security policy without inline scripts, so nothing is inlined.
// Chunks of packages have a hash in their name and import no code of the page, so that browsers keep them
// when the page changes. The page's own files are in assets/page under plain names: the hub serves that
// directory under a name that is a hash of all of them, and a changed component replaces one file of dist.
export default defineConfig({
  plugins: [
    inertPurify,
    inlineRuntime,
    messageParts,
    oneFontFormat,
    compressPackages,
    preact({ prefreshEnabled: false, devToolsEnabled: false }),
  ],
  // The browser decodes HTML entities by itself: see entities.ts.
  resolve: { alias: [{ find: /^entities$/, replacement: source("shared/content/entities.ts") }] },
  experimental: { renderBuiltUrl: (_, { hostType }) => (hostType === "html" ? undefined : { relative: true }) },
  build: {
    outDir: dist,
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: "licenses.md" },
    chunkSizeWarningLimit: 900,
    reportCompressedSize: true,
    rolldownOptions: {
      output: {
        minifyInternalExports: false, // a new export of a chunk changes no other importer
        entryFileNames: "assets/page/[name].js",
        assetFileNames: ({ names }) =>
          names.some((name) => name.endsWith(".woff2"))
            ? "assets/[name]-[hash][extname]"
            : "assets/page/[name][extname]",
        chunkFileNames: ({ name, moduleIds }) => {
          if (moduleIds.length > 0 && moduleIds.every(isPackage)) return `assets/${name.split("~")[0]}-[hash].js`;
          const [, code, part] = /\/([\w-]+)\.json\?(start|rest)$/.exec(moduleIds.join("\n")) ?? [];
          return `assets/page/${code ? `messages-${code}-${part}` : name}.js`;
        },
        codeSplitting: {
          groups: [
            {
              name: "vendor",
              test: /node_modules\/(preact|preact-iso|@preact|openapi-fetch)\/|vite\/preload-helper|rolldown\/runtime/,
            },
            { name: "purify", test: /node_modules\/dompurify\/|content\/purify\.ts/ },
            {
              name: "codemirror",
              test: /node_modules\/(@codemirror\/(autocomplete|commands|language|lint|search|state|view)|@lezer\/(common|highlight|lr)|crelt|style-mod|w3c-keyname)\//,
            },
            {
              name: "markdown-it",
              test: /node_modules\/(markdown-it|linkify-it|mdurl|uc\.micro|punycode\.js)\/|content\/entities\.ts/,
            },
            // Otherwise some of it gets into a chunk of the page, which the other chunks of Mermaid import.
            {
              name: "mermaid",
              test: /node_modules\/(mermaid\/dist\/(mermaid\.core\.mjs|chunks\/mermaid\.core\/chunk-)|stylis|es-toolkit)/,
              entriesAware: true,
            },
            // The frame of all pages, with the components that they share.
            {
              name: "app",
              test: /src\/main\.tsx$|src\/app\/(app|nav|navitems)\.tsx?$|src\/shared\/(api|i18n|servertext|ui)\/(?!diagnosticpatterns|patterns)[\w-]+\.tsx?$|src\/features\/((users|shortcuts)\/[\w-]+|skills\/(namespaces|skilladdress)|approvals\/(dialog|phrases|requests))\.tsx?$|content\/(lazyload|visibletext)\.tsx?$|pages\/chat\/images\.ts$/,
            },
            // Parts of the chat that load later use them too, which would split them.
            { name: "chat", test: /src\/pages\/chat\/(index|sessions|sessionlist|sessionrow)\.tsx?$/ },
            {
              name: "content",
              test: /src\/shared\/content\/(index|code|elements|languages|links|formula|markdown|mermaid|phrases|scrollbox|repair)\.tsx?$/,
            },
          ],
        },
      },
    },
  },
  server: {
    proxy: {
      "/api": "http://127.0.0.1:8484",
      "/openapi.json": "http://127.0.0.1:8484",
      "/ws": { target: "ws://127.0.0.1:8484", ws: true },
    },
  },
});
