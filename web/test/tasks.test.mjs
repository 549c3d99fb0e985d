// Twenty tasks of users, each by mouse and by keyboard alone: the list is in tasks/table.mjs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { declared, tasks } from "./tasks/table.mjs";
import "./tasks/chat.mjs";
import "./tasks/library.mjs";
import "./tasks/team.mjs";

test("task list: all twenty tasks are tested", () => {
  assert.equal(tasks.length, 20);
  assert.deepEqual([...declared].sort(), [...tasks].sort());
});
