import { holds, same, test } from "../../../test/units/check";
import { deleteDraft, moveDraft, storedDraft, type StoredDraft } from "./drafts";

const draft = (key: string, text: string): StoredDraft => ({
  key,
  name: "tides",
  at: "2026-01-01T00:00:00Z",
  files: [{ path: "SKILL.md", text }],
  touched: true,
});

test("drafts: a draft gets another key, though the storage has room for one of them only", () => {
  const text = "high water ".repeat(20_000);
  const filler = "filler";
  try {
    for (let part = 1 << 20; part > 1000; part >>= 1)
      try {
        for (;;) localStorage.setItem(filler, (localStorage.getItem(filler) ?? "") + "x".repeat(part));
      } catch {
        // full: a smaller part may still fit
      }
    localStorage.setItem(filler, localStorage.getItem(filler)!.slice(1.5 * text.length));
    moveDraft("other", draft("new-1", text));
    moveDraft("new-1", draft("skill", text));
    same(storedDraft("new-1"), undefined);
    const stored = Object.values({ ...localStorage }).filter((v: string) => v.includes("high water"));
    same(stored.length, 1, "drafts that survive a reload");
    holds(stored[0]!.includes('"key":"skill"'), "the draft has the other key");
  } finally {
    localStorage.removeItem(filler);
    deleteDraft("skill");
    deleteDraft("new-1");
  }
});
