import js from "@eslint/js";
import { createTypeScriptImportResolver } from "eslint-import-resolver-typescript";
import { importX } from "eslint-plugin-import-x";
import hooks from "eslint-plugin-react-hooks";
import ts from "typescript-eslint";

/** Imports point down: app to pages, pages to features, features to shared. A page imports no other page. */
const pages = [
  "account",
  "admin",
  "agents",
  "approvals",
  "audit",
  "chat",
  "compose",
  "docs",
  "library",
  "review",
  "servers",
  "settings",
  "usage",
];
const layers = [
  { target: "./src/shared", from: ["./src/features", "./src/pages", "./src/app"] },
  { target: "./src/features", from: ["./src/pages", "./src/app"] },
  { target: "./src/pages", from: "./src/app" },
  ...pages.map((page) => ({ target: `./src/pages/${page}`, from: "./src/pages", except: [`./${page}`] })),
];

export default ts.config(
  { ignores: ["test/pictures", "src/shared/api/schema.d.ts"] },
  js.configs.recommended,
  ts.configs.recommended,
  {
    plugins: { "import-x": importX },
    settings: { "import-x/resolver-next": [createTypeScriptImportResolver()] },
    rules: {
      "no-control-regex": "off", // The page searches hostile text for control characters.
      "@typescript-eslint/no-unused-vars": ["error", { ignoreRestSiblings: true, varsIgnorePattern: "^_$" }],
      "import-x/no-cycle": "error",
      "import-x/no-restricted-paths": ["error", { zones: layers }],
      "import-x/no-duplicates": "error",
      "import-x/order": [
        "error",
        {
          groups: [["builtin", "external"], "parent", "sibling"],
          alphabetize: { order: "asc", caseInsensitive: true },
        },
      ],
    },
  },
  {
    files: ["src/**"],
    ignores: ["src/shared/ui/lazypart.ts"],
    rules: {
      "no-restricted-imports": [
        "error",
        { name: "preact-iso", importNames: ["lazy"], message: "Use lazyPart, which tries again if loading fails." },
      ],
    },
  },
  { files: ["src/**"], plugins: { "react-hooks": hooks }, rules: { "react-hooks/rules-of-hooks": "error" } },
  {
    files: ["test/**", "public/**", "*.js"],
    languageOptions: {
      globals: Object.fromEntries(
        [
          "process",
          "URLSearchParams",
          "console",
          "URL",
          "Buffer",
          "fetch",
          "setTimeout",
          "clearTimeout",
          "window",
          "document",
          "location",
          "navigator",
          "localStorage",
          "innerWidth",
          "innerHeight",
          "getComputedStyle",
          "performance",
          "TextEncoder",
          "FormData",
          "Blob",
          "File",
          "AbortSignal",
          "Headers",
        ].map((name) => [name, "readonly"]),
      ),
    },
  },
);
