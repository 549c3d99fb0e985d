// The twenty tasks that a user can do by mouse and by keyboard alone. tasks.test.mjs runs them all.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, pictures } from "../browser.mjs";
import { hands } from "./hands.mjs";

export const tasks = [
  "connect a model",
  "first answer with a skill",
  "edit and resend",
  "regenerate and switch back",
  "branch",
  "find an old conversation by a word in it",
  "paste a picture",
  "read a formula",
  "change the model",
  "stop and continue",
  "approve by keys",
  "decline with a comment",
  "upload, fix what is wrong, upload again",
  "a new version while the old one runs",
  "review with a line comment, request changes, approve",
  "find a skill among 10,000",
  "install it",
  "make an agent and try it",
  "share a conversation",
  "see what a week cost",
];

/** The tasks that have been declared. */
export const declared = new Set();

let browser;
before(async () => {
  await mkdir(pictures, { recursive: true });
  browser = await launch();
});
after(() => browser?.close());

/**
 * task declares a task, which runs once by each hand. do_ gets what stage returns, and t, hand and page: a window
 * that uses the hand. window_() opens another one.
 */
export function task(name, stage, do_) {
  const number = tasks.indexOf(name) + 1;
  assert.ok(number > 0 && !declared.has(name), `${name} is not one of the tasks, or is declared twice`);
  declared.add(name);
  for (const Hand of hands)
    test(`task ${number}: ${name}, by ${Hand.title}`, async (t) => {
      const staged = await stage(t);
      const pages = [];
      const window_ = async (options) => {
        const page = await open(browser, staged.hub, options);
        pages.push(page);
        return { page, hand: await Hand.of(page) };
      };
      try {
        await do_({ ...staged, t, window_, by: Hand.title, ...(await window_(staged.window)) });
        for (const page of pages) page.calm();
      } finally {
        const picture = join(pictures, `task-${number}-${Hand.title}.png`);
        await pages[0]?.screenshot({ path: picture }).catch(() => {});
        for (const page of pages) await page.context().close();
      }
    });
}

/** shared returns a stage that many tasks share. It is made for the first of them and taken down after the last. */
export function shared(make) {
  let made;
  const ends = [];
  after(async () => {
    for (const end of ends.reverse()) await end();
  });
  return () => (made ??= make({ after: (end) => ends.push(end) }));
}

/** openWindow opens a window that no hand uses. */
export const openWindow = (hub) => open(browser, hub);
