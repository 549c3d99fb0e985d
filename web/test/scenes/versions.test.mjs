// Scenes of new versions: uploads, requested changes and the composer.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { accessible, fits, pictures } from "../browser.mjs";
import { skill, zip } from "../hub.mjs";
import { password, scene, signIn, window_ } from "../scene.mjs";

/** crew starts a hub with a group: ada uploads to it, ben reviews. as sends a request of a user. */
async function crew(t) {
  const hub = await scene(t, { accounts: true });
  const root = await window_(t, hub);
  root.allowed = [/status of 401/];
  await root.goto(await hub.setupPath());
  await root.getByLabel("Name", { exact: true }).fill("root");
  await root.getByLabel("Password", { exact: true }).fill(password);
  await root.getByRole("button", { name: "Create account" }).click();
  await root.getByRole("navigation", { name: "Menu" }).waitFor();
  const as = async (page, method, path, data, type = "application/json") => {
    const headers = { Origin: hub.url, "Content-Type": type };
    const answer = await page.request.fetch(`/api/v1${path}`, { method, data, headers });
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
    return answer.json().catch(() => undefined);
  };
  const group = await as(root, "POST", "/groups", { name: "harbour" });
  const pages = { root };
  for (const [name, role] of [
    ["ada", "developer"],
    ["ben", "maintainer"],
  ]) {
    const { id } = await as(root, "POST", "/users", { name, password });
    await as(root, "PUT", `/groups/${group.id}/members/${id}`, { role });
    pages[name] = await window_(t, hub);
    pages[name].allowed = [/status of 401/];
    await signIn(pages[name], name);
  }
  /** upload uploads a skill to the group, or a new version of it. */
  const upload = (page, name, files, id) =>
    as(
      page,
      "POST",
      id ? `/skills/${id}/versions?file_name=${name}.zip` : `/skills?file_name=${name}.zip&namespace=group:${group.id}`,
      zip(files, name),
      "application/zip",
    );
  return { hub, as, group, upload, ...pages };
}

const text = (line) => ({ "SKILL.md": skill("tides", "Reads tide tables. Use for tides.", `# Tides\n\n${line}\n`) });
const code = (line) => ({ ...text(line), "scripts/tide.py": `print("${line}")\n` });

test("upload a new version from the page of a skill: the group's skill gets it, and no other skill is made", async (t) => {
  const { as, ben, upload } = await crew(t);
  const { id } = await upload(ben, "tides", text("one"));
  await ben.goto(`/library/${id}`);
  await ben.getByRole("button", { name: "More", exact: true }).click();
  await ben.getByRole("menuitem", { name: "Upload new version" }).click();
  await ben.getByRole("heading", { level: 1, name: "New version of tides" }).waitFor();
  assert.equal(await ben.getByLabel("Share with").count(), 0);
  await ben.getByLabel("What changed (optional)").fill("Says two");
  await ben.screenshot({ path: join(pictures, "upload-version.png") });
  await ben
    .locator('input[type="file"]')
    .first()
    .setInputFiles({ name: "tides.zip", mimeType: "application/zip", buffer: zip(text("two"), "tides") });
  await ben.getByText("Added as version 2").waitFor();
  const { items } = await as(ben, "GET", "/skills?q=tides");
  assert.deepEqual(
    items.map((s) => [s.id, s.number]),
    [[id, 2]],
  );
  assert.equal((await as(ben, "GET", `/skills/${id}/versions/2`)).changelog, "Says two");
  const narrow = ben;
  await narrow.setViewportSize({ width: 360, height: 740 });
  await fits(narrow, "the upload of a version");
  ben.calm();
});

test("requested changes: the skill's page says so, and the version is edited from its own files", async (t) => {
  const { hub, as, ada, ben, upload } = await crew(t);
  const { id, digest } = await upload(ada, "tides", code("one"));
  await as(ben, "PUT", `/skills/${id}/versions/1/review`, { decision: "approved", digest });
  const second = await upload(ada, "tides", code("two"), id);
  const request = { decision: "changes-requested", digest: second.digest, note: "Explain it." };
  await as(ben, "PUT", `/skills/${id}/versions/2/review`, request);
  await ada.goto(`/library/${id}`);
  const note = ada.locator(".library-news", { hasText: "Changes to version 2 were requested: Explain it." });
  await note.getByRole("link", { name: "Open review" }).waitFor();
  await ada.screenshot({ path: join(pictures, "requested-changes.png") });
  await ada.setViewportSize({ width: 360, height: 740 });
  await fits(ada, "a request for changes");
  await ada.setViewportSize({ width: 1440, height: 900 });
  await ada.goto(`/library/${id}?version=2`);
  await note.waitFor();
  await ada.getByRole("link", { name: "Edit", exact: true }).click();
  await ada.getByText("You are editing version 2. Version 1 is in use.").waitFor();
  await ada.getByRole("tab", { name: /Files/ }).click();
  await ada
    .getByRole("button", { name: /tide\.py/ })
    .first()
    .click();
  await ada.locator(".cm-content").getByText('print("two")').waitFor();
  assert.equal(await ada.getByText("was saved after").count(), 0);
  await ada.screenshot({ path: join(pictures, "edit-version.png"), fullPage: true });

  await ada.goto(`/compose/${id}`); // the current version has no part of the second
  await ada.getByText("Version 2 was saved after version 1, from which you started.").waitFor();
  await ada.getByRole("link", { name: "Edit version 2" }).press("Enter");
  await ada.getByText("You are editing version 2.").waitFor();
  assert.match(ada.url(), /version=2/);

  const axe = await window_(t, hub, { width: 360, height: 740, scheme: "dark", language: "zh-CN", axe: true });
  axe.allowed = [/status of 401/];
  await as(axe, "POST", "/login", { name: "ada", password });
  await axe.goto(`/library/${id}`);
  await axe.getByRole("link", { name: "编辑此版本" }).waitFor();
  await fits(axe, "a request for changes");
  await accessible(axe, "a request for changes");
  ada.calm();
});

test("a version that a request for changes holds back is not offered as current", async (t) => {
  const { as, ada, ben, upload } = await crew(t);
  const { id } = await upload(ada, "tides", text("one"));
  const second = await upload(ada, "tides", code("two"), id);
  const request = { decision: "changes-requested", digest: second.digest, note: "No script." };
  await as(ben, "PUT", `/skills/${id}/versions/2/review`, request);
  const third = await upload(ada, "tides", text("three"), id);
  assert.equal(third.state, "pending");
  await ada.goto(`/library/${id}`);
  await ada.getByText("Version 3 is awaiting review. Version 1 is in use.").waitFor();
  assert.equal(await ada.getByRole("button", { name: "Make current" }).count(), 0);
  await as(ben, "PUT", `/skills/${id}/versions/3/review`, { decision: "rejected", digest: third.digest, note: "No." });
  await ada.goto(`/library/${id}`);
  await ada.getByRole("heading", { level: 1, name: "tides" }).waitFor();
  assert.equal(await ada.getByRole("button", { name: "Make current" }).count(), 0);
  ada.calm();
});
