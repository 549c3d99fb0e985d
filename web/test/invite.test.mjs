// Invitations: a link is created, opened in another browser, used, and revoked; by mouse and by keyboard.
// The page that a link opens is drawn in several sizes, light and dark, in both languages.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessible, fits, hands, inOrder, launch, open, pictures, settled } from "./browser.mjs";
import { Hub } from "./hub.mjs";

const password = "a-long-enough-password";

let hub, browser, root;

before(async () => {
  hub = await Hub.start({ accounts: true });
  browser = await launch();
  await mkdir(pictures, { recursive: true });
  root = await open(browser, hub);
  root.allowed = [/status of 401/];
  await root.goto(await hub.setupPath());
  await root.getByLabel("Name", { exact: true }).fill("root");
  await root.getByLabel("Password", { exact: true }).fill(password);
  await root.getByRole("button", { name: "Create account" }).click();
  await root.getByRole("navigation", { name: "Menu" }).waitFor();
});

after(async () => {
  await browser?.close();
  await hub?.end();
});

/** ask calls the API as the user of a window. */
async function ask(page, method, path, data) {
  const answer = await page.request.fetch(`/api/v1${path}`, { method, data, headers: { Origin: hub.url } });
  assert.ok(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
  return answer.status() === 204 ? undefined : answer.json();
}

/** window_ opens a window without a sign-in. */
async function window_(t, options) {
  const page = await open(browser, hub, options);
  page.allowed = [/status of 40[149]/, /status of 422/];
  t.after(() => page.context().close());
  return page;
}

async function signIn(page, name) {
  await page.goto("/");
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Password", { exact: true }).fill(password);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("navigation", { name: "Menu" }).waitFor();
}

for (const [hand, press] of Object.entries(hands))
  test(`invite a member: create a link, open it in a second browser, choose a password, be in the group, by ${hand}`, async (t) => {
    const group = await ask(root, "POST", "/groups", { name: `crew-${hand}`, display: `Crew ${hand}` });
    const owner = `owner-${hand}`;
    const { id } = await ask(root, "POST", "/users", { name: owner, password });
    await ask(root, "PUT", `/groups/${group.id}/members/${id}`, { role: "owner" });
    const page = await window_(t);
    await signIn(page, owner);

    // The owner of the group creates a link for two users.
    await page.goto(`/settings/groups/${group.id}`);
    await press(page, page.getByRole("button", { name: "Invite", exact: true }));
    const dialog = page.getByRole("dialog", { name: `Invite to Crew ${hand}` });
    await dialog.getByLabel("Role").selectOption("developer");
    await dialog.getByLabel("For (optional)").fill("the new navigators");
    await dialog.getByLabel("Number of users").fill("2");
    await page.screenshot({ path: join(pictures, `invite-dialog-${hand}.png`) });
    await press(page, dialog.getByRole("button", { name: "Create link" }));
    const field = dialog.getByLabel("Link", { exact: true });
    const link = await field.inputValue();
    assert.match(link, /^http:\/\/127\.0\.0\.1:\d+\/invite\/li_[0-9A-Za-z]{57}$/);
    await press(page, dialog.getByRole("button", { name: "Copy link" }));
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), link);
    await page.screenshot({ path: join(pictures, `invite-link-${hand}.png`) });
    await press(page, dialog.getByRole("button", { name: "Done" }));
    await page.getByRole("cell", { name: /the new navigators/ }).waitFor();
    await page.getByText("0 of 2 used").waitFor();

    // A user without an account opens it in another browser.
    const guest = await window_(t);
    const [answer] = await Promise.all([guest.waitForResponse(link), guest.goto(link)]);
    assert.equal((await answer.allHeaders())["referrer-policy"], "no-referrer");
    await guest.getByRole("heading", { name: `Join Crew ${hand}` }).waitFor();
    await guest.getByText(`${owner} invites you to the group Crew ${hand} on`).waitFor();
    await guest.getByLabel("Name", { exact: true }).fill(owner);
    await guest.getByLabel("Password", { exact: true }).fill(password);
    await press(guest, guest.getByRole("button", { name: "Create account and join" }));
    await guest.getByText("This name is taken. Choose another one.").waitFor();
    await guest.getByLabel("Name", { exact: true }).fill(`guest-${hand}`);
    await press(guest, guest.getByRole("button", { name: "Create account and join" }));
    await guest.getByRole("navigation", { name: "Menu" }).waitFor();
    await guest.getByText(`You are now a member of Crew ${hand}.`).waitFor();
    assert.equal(new URL(guest.url()).pathname, "/");
    await guest.goto(`/settings/groups/${group.id}`);
    await guest
      .getByText("Your role: Developer")
      .or(guest.getByText(/Developer/))
      .first()
      .waitFor();
    assert.equal(await guest.getByRole("button", { name: "Invite", exact: true }).count(), 0);

    // A user with an account signs in on the page, and joins with one press.
    await ask(root, "POST", "/users", { name: `mate-${hand}`, password });
    const mate = await window_(t);
    await mate.goto(link);
    await press(mate, mate.getByRole("button", { name: "I have an account" }));
    await mate.getByLabel("Name", { exact: true }).fill(`mate-${hand}`);
    await mate.getByLabel("Password", { exact: true }).fill(password);
    await press(mate, mate.getByRole("button", { name: "Sign in", exact: true }));
    await mate.getByText(`You are signed in as mate-${hand}.`).waitFor();
    await mate.screenshot({ path: join(pictures, `invite-join-${hand}.png`) });
    await press(mate, mate.getByRole("button", { name: "Join", exact: true }));
    await mate.getByRole("heading", { name: new RegExp(`^Crew ${hand}`) }).waitFor();
    await mate.getByRole("cell", { name: new RegExp(`mate-${hand}`) }).waitFor();

    // The owner sees who used it. A third user cannot.
    await page.reload();
    await page.getByText("Invitations (0 open)").click();
    await page.getByRole("cell", { name: `guest-${hand}, mate-${hand}` }).waitFor();
    await page.getByText("2 of 2 used").waitFor();
    await page.screenshot({ path: join(pictures, `invite-list-${hand}.png`), fullPage: true });
    const late = await window_(t);
    await late.goto(link);
    await late.getByRole("heading", { name: "Invitation not valid" }).waitFor();

    // A revoked link is not valid either. An administrator sees it in the list of the hub.
    const { link: other } = await ask(page, "POST", "/invitations", { group: group.id, note: `other-${hand}` });
    await root.goto("/admin/users");
    await press(root, root.locator(".invitations summary"));
    await press(root, root.getByRole("button", { name: `Revoke: other-${hand}` }));
    await press(root, root.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }));
    await root.getByText("Invitation revoked").first().waitFor();
    await root.screenshot({ path: join(pictures, `invite-admin-${hand}.png`), fullPage: true });
    await late.goto(`/invite/${other}`);
    await late.getByRole("heading", { name: "Invitation not valid" }).waitFor();
    for (const p of [page, guest, mate, late, root]) p.calm();
  });

for (const [width, scheme, language] of [
  [360, "light", "en-US"],
  [360, "dark", "zh-CN"],
  [768, "light", "zh-CN"],
  [1440, "dark", "en-US"],
]) {
  const view = `${width}-${scheme}-${language}`;
  test(`the page of an invitation and its dialog render and are accessible: ${view}`, async (t) => {
    const display = "A group with a rather long name for a narrow window";
    const group = await ask(root, "POST", "/groups", { name: `long-${view.toLowerCase()}`, display });
    const note = "navigators-without-a-break-in-the-text-of-their-note@example.com";
    const { link } = await ask(root, "POST", "/invitations", { group: group.id, note });
    const page = await window_(t, { width, height: 740, scheme, language, axe: true });
    const check = async (what) => {
      await settled(page);
      await page.screenshot({ path: join(pictures, `${what}-${view}.png`), fullPage: true });
      await fits(page, `${what} (${view})`);
      await accessible(page, `${what} (${view})`);
      if (width === 360) await inOrder(page, `${what} (${view})`);
    };
    await page.goto(`/invite/${link}`);
    await page.getByRole("textbox").first().waitFor();
    await check("invite");
    await page.goto(`/invite/${link}x`);
    await page.locator("h1").waitFor();
    await check("invite-gone");
    await page.request.post("/api/v1/login", { data: { name: "root", password }, headers: { Origin: hub.url } });
    await page.goto(`/invite/${link}`);
    await page.locator("form button[type=submit], a.button").first().waitFor();
    await check("invite-member");
    await page.goto("/admin/users");
    await page.locator(".invitations summary").click();
    await check("invite-all");
    await page.goto(`/admin/groups/${group.id}`);
    await page.locator(".invitations summary").click();
    await check("invite-members");
    await page.getByRole("button", { name: /^(Invite|邀请)$/ }).click();
    await page.getByRole("dialog").waitFor();
    await check("invite-new");
    await page.getByRole("dialog").locator("button[type=submit]").click();
    await page.locator(".invite-link").waitFor();
    await check("invite-made");
    page.calm();
  });
}
