// Hubs for the tasks.
import assert from "node:assert/strict";
import { Hub, skill } from "../hub.mjs";
import { Gates } from "../mcpserver.mjs";
import { Vendor } from "../vendor.mjs";
import { openWindow, shared } from "./table.mjs";

const password = "a-long-enough-password";

/** withModel starts a hub with a model that answers as prepared. It reads images, and another one is "fast". */
export async function withModel(t, options) {
  const vendor = await Vendor.start([]);
  t.after(() => vendor.end());
  const hub = await Hub.start({
    flags: ["--private", "127.0.0.0/8"],
    env: { OPENAI_API_KEY: "none" },
    config: `models:\n  default: openai:fake\n  base_url: ${vendor.url}\n  images: always\n  prices: {"*": {input: 3, output: 15}}\n`,
    ...options,
  });
  t.after(() => hub.end());
  return { hub, vendor };
}

/** answers makes the model give these next, and nothing that an earlier task left. */
export const answers = (vendor, ...next) =>
  (vendor.answers = next.map((n) => (typeof n === "string" ? { text: n } : n)));

/** done waits until an answer is complete. */
export async function done(page, text) {
  await page.getByText(text, { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).waitFor({ state: "detached" });
}

/** chat is a hub with two models and a server, whose tool opens gates. */
export const chat = shared(async (t) => {
  const gates = await Gates.start();
  t.after(() => gates.end());
  const { hub, vendor } = await withModel(t);
  await hub.ask("PUT", "/kinds/MCPServer/default/gates", {
    apiVersion: "loadout/v1",
    kind: "MCPServer",
    metadata: { name: "gates", namespace: "default" },
    spec: { type: "http", url: gates.url, safety: "HIGH" },
  });
  await hub.ask("PUT", "/kinds/Model/default/fast", {
    kind: "Model",
    metadata: { name: "fast" },
    spec: { vendor: "openai", model: "fast-1", baseUrl: vendor.url },
  });
  return { hub, vendor, gates };
});

/** library is a hub with many skills. */
export const library = shared(async (t) => {
  const hub = await Hub.start({ env: { LOADOUT_HUB_RATE: "100000" } }); // for thousands of uploads
  t.after(() => hub.end());
  await hub.upload("tides", {
    "SKILL.md": skill("tides", "Reads tide tables. Use for questions on high water."),
    "references/harbours.md": "# Harbours\n",
  });
  const many = Number(process.env.LOADOUT_TEST_SKILLS ?? 200);
  for (let i = 0; i < many; i++)
    await hub.upload(`report-${i}`, { "SKILL.md": skill(`report-${i}`, `Writes report ${i}. Use for reports.`) });
  return { hub };
});

/**
 * crew is a hub with a model and a group: ada uploads to it, ben and root review. as sends a request of the user of
 * a page, and signIn signs a user in.
 */
export const crew = shared(async (t) => {
  const { hub, vendor } = await withModel(t, { accounts: true });
  const root = await openWindow(hub);
  t.after(() => root.context().close());
  const as = async (page, method, path, data, type = "application/json") => {
    const headers = { Origin: hub.url, "Content-Type": type };
    const answer = await page.request.fetch(`/api/v1${path}`, { method, data, headers });
    assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
    return answer.status() === 204 ? undefined : answer.json().catch(() => undefined);
  };
  await root.goto(await hub.setupPath());
  await root.getByLabel("Name", { exact: true }).fill("root");
  await root.getByLabel("Password", { exact: true }).fill(password);
  await root.getByRole("button", { name: "Create account" }).click();
  await root.getByRole("navigation", { name: "Menu" }).waitFor();
  const group = await as(root, "POST", "/groups", { name: "harbour" });
  for (const [name, role] of [
    ["ada", "developer"],
    ["ben", "maintainer"],
  ]) {
    const { id } = await as(root, "POST", "/users", { name, password });
    await as(root, "PUT", `/groups/${group.id}/members/${id}`, { role });
  }
  const signIn = (page, name) => as(page, "POST", "/login", { name, password });
  return { hub, vendor, root, as, group, signIn };
});
