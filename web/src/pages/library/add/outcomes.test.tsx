import { render } from "preact";
import { same, test } from "../../../../test/units/check";
import type { Schema } from "../../../shared/api/client";
import { loadMessages } from "../../../shared/i18n/messages";
import { loadProblemPatterns } from "../../../shared/servertext";
import { outcomesOf } from "./outcomes";
import { Summary } from "./summary";

const source = (broken: Schema["BrokenSkill"][]) =>
  ({ source: "a/b", skills: [], problems: [], broken }) as Schema["Offer"];
const nothing: Schema["Imported"] = { created: [], updated: [], skipped: [] };

function shown(offer: Schema["Offer"], result: Schema["Imported"]) {
  const box = document.createElement("div");
  render(<Summary outcomes={outcomesOf(offer, [], result)} />, box);
  const texts = ["strong", "summary", "li"].map((name) => [...box.querySelectorAll(name)].map((e) => e.textContent));
  render(null, box);
  return texts;
}

test("outcomes: warnings about a source are listed, but nothing was skipped for them", () => {
  const broken: Schema["BrokenSkill"][] = [
    { path: "a", severity: "warning", code: "leading-blank-lines", message: "starts late", fix: "delete them" },
    { path: "github.com/a/b", severity: "warning", code: "moved", message: "moved to c" },
    { path: "d", severity: "error", code: "description-missing", message: "no description" },
    { path: "d", severity: "error", code: "name-missing", message: "no name", fix: "add one" },
    { path: "entry 2", severity: "error", code: "bad-entry", message: "no address" },
  ];
  const created = [{ id: "1", name: "a", dir: "a" }];
  same(shown(source(broken), { ...nothing, created }), [
    ["Added: 1 · Unchanged: 0 · Skipped: 2"],
    ["Added: 1", "Problems in SKILL.md: 1", "Cannot be imported: 1", "Warnings: 2"],
    [
      "a",
      "d no description; no name — add one",
      "entry 2 no address",
      "a starts late — delete them",
      "github.com/a/b moved to c",
    ],
  ]);
});

test("outcomes: a skipped skill says which quota was exceeded", async () => {
  const reason = "quota of the user exceeded (skills: 3 + 1, limit 3)";
  const skipped = [{ name: "a", dir: "a", reason, reason_code: "quota" as const }];
  const list = () => shown(source([]), { ...nothing, skipped }).slice(1);
  same(list(), [["Quota exceeded: 1"], [`a ${reason}`]]);
  await loadMessages("zh-Hans");
  await loadProblemPatterns();
  same(list(), [["超出配额: 1"], ["a 技能数量已达上限：已有 3 个，上限 3 个"]]);
  await loadMessages("en");
});

test("outcomes: a name that is taken by a hidden skill says what to do", () => {
  const skipped = [{ name: "a", dir: "a", reason: "the name is taken", reason_code: "taken" as const }];
  same(shown(source([]), { ...nothing, skipped }).slice(1), [
    ["Name taken. Rename the skill, or import it into another namespace: 1"],
    ["a"],
  ]);
});
