import { same, test } from "../../test/units/check";
import { headings } from "../pages/docs/headings";
import { helpFor } from "../shared/ui/helplinks";
import app from "./app.tsx?raw";

const docs = import.meta.glob<string>("../../../docs/**/*.md", { query: "?raw", import: "default", eager: true });
const doc = (name: string) => Object.entries(docs).find(([path]) => path.endsWith(`/docs/${name}.md`))?.[1];

const paths = [
  ...[...app.matchAll(/<Route path="([^"*]+)/g)].map((m) => m[1]!.replace(/(.)\/$/, "$1")),
  "/library/add",
  "/settings/migrate",
  "/admin/sign-in",
  "/account",
  "/invite",
];

test("help: the section for each page exists", () => {
  same(paths.includes("/agents") && paths.includes("/admin"), true);
  for (const path of paths) {
    const [, name, section] = /^\/docs\/([\w-]+)(?:#(.+))?$/.exec(helpFor(path)) ?? [];
    const text = doc(name!);
    same([path, name, !!text], [path, name, true]);
    if (section) same([path, section, headings(text!).includes(section)], [path, section, true]);
    if (path !== "/" && !path.startsWith("/chat")) same([path, helpFor(path) !== helpFor("/")], [path, true]);
  }
});

test("help: the pages of both languages have the same sections in the same order", () => {
  for (const name of ["web", "hub", "migrate"])
    same([name, headings(doc(name)!).length], [name, headings(doc(`zh/${name}`)!).length]);
});
