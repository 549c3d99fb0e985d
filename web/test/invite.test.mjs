// Invitations: a link is created, opened in another browser, used, and revoked; by mouse and by keyboard.
// The page that a link opens is drawn in several sizes, light and dark, in both languages.
import assert from "node:assert/strict";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { accessible, fits, inOrder, launch, open, pictures, settled } from "./browser.mjs";
import { Hub } from "./hub.mjs";
import { hands } from "./tasks/hands.mjs";

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

for (const Hand of hands)
  test(`invite a member: create a link, open it in a second browser, choose a password, be in the group, by ${Hand.title}`, async (t) => {
    const by = Hand.title;
    const display = `Crew by ${by}`;
    const group = await ask(root, "POST", "/groups", { name: `crew-${by}`, display });
    const owner = `owner-${by}`;
    const { id } = await ask(root, "POST", "/users", { name: owner, password });
    await ask(root, "PUT", `/groups/${group.id}/members/${id}`, { role: "owner" });
    const page = await window_(t);
    const hand = await Hand.of(page);
    await ask(page, "POST", "/login", { name: owner, password });

    // The owner of the group creates a link for two users.
    await page.goto(`/settings/groups/${group.id}`);
    await hand.press(page.getByRole("button", { name: "Invite", exact: true }));
    const dialog = page.getByRole("dialog", { name: `Invite to ${display}` });
    await hand.choose(dialog.getByLabel("Role"), "developer");
    await hand.write(dialog.getByLabel("For (optional)"), "the new navigators");
    await hand.write(dialog.getByLabel("Number of users"), "2");
    await page.screenshot({ path: join(pictures, `invite-dialog-${by}.png`) });
    await hand.press(dialog.getByRole("button", { name: "Create link" }));
    const link = await dialog.getByLabel("Link", { exact: true }).inputValue();
    assert.match(link, /^http:\/\/127\.0\.0\.1:\d+\/invite\/li_[0-9A-Za-z]{57}$/);
    await hand.press(dialog.getByRole("button", { name: "Copy link" }));
    await page.waitForFunction(async (link) => (await navigator.clipboard.readText()) === link, link);
    await page.screenshot({ path: join(pictures, `invite-link-${by}.png`) });
    await hand.press(dialog.getByRole("button", { name: "Done" }));
    await page.getByRole("cell", { name: /^the new navigators/ }).waitFor();
    await page.getByText("0 of 2 used").waitFor();

    // A user without an account opens it in another browser.
    const guest = await window_(t);
    const guestHand = await Hand.of(guest);
    const [answer] = await Promise.all([guest.waitForResponse(link), guest.goto(link)]);
    assert.equal((await answer.allHeaders())["referrer-policy"], "no-referrer");
    await guest.getByRole("heading", { name: `Join ${display}` }).waitFor();
    await guest.getByText(`${owner} invites you to the group ${display} on`).waitFor();
    await guestHand.write(guest.getByLabel("Name", { exact: true }), owner);
    await guestHand.write(guest.getByLabel("Password", { exact: true }), password);
    await guestHand.send(guest.getByRole("button", { name: "Create account and join" }));
    await guest.getByText("This name is taken. Choose another one.").waitFor();
    await guest.waitForFunction(() => document.activeElement?.getAttribute("name") === "username");
    await guestHand.press(guest.getByRole("button", { name: "I have an account" }));
    await guestHand.press(guest.getByRole("button", { name: "Create an account instead" }));
    assert.equal(await guest.getByLabel("Name", { exact: true }).inputValue(), owner);
    await guest.goto(link); // backwards by keyboard would take Shift
    await guestHand.write(guest.getByLabel("Name", { exact: true }), `guest-${by}`);
    await guestHand.write(guest.getByLabel("Password", { exact: true }), password);
    await guestHand.send(guest.getByRole("button", { name: "Create account and join" }));
    await guest.getByRole("navigation", { name: "Menu" }).waitFor();
    await guest.getByText(`You are now a member of ${display}.`).waitFor();
    assert.equal(new URL(guest.url()).pathname, "/");
    await guest.goto(`/settings/groups/${group.id}`);
    await guest.getByRole("row", { name: new RegExp(`guest-${by}.*Developer`) }).waitFor();
    assert.equal(await guest.getByRole("button", { name: "Invite", exact: true }).count(), 0);

    // A user with an account signs in on the page, and joins with one press.
    await ask(root, "POST", "/users", { name: `mate-${by}`, password });
    const mate = await window_(t);
    const mateHand = await Hand.of(mate);
    await mate.goto(`${link}，欢迎`); // as chat programs may open it
    await mateHand.press(mate.getByRole("button", { name: "I have an account" }));
    await mateHand.write(mate.getByLabel("Name", { exact: true }), `mate-${by}`);
    await mateHand.write(mate.getByLabel("Password", { exact: true }), password);
    await mateHand.send(mate.getByRole("button", { name: "Sign in", exact: true }));
    await mate.getByText(`You are signed in as mate-${by}.`).waitFor();
    assert.equal(new URL(mate.url()).pathname, new URL(link).pathname);
    await mate.waitForFunction(() => document.activeElement?.tagName === "H1");
    await mate.screenshot({ path: join(pictures, `invite-join-${by}.png`) });
    await mateHand.press(mate.getByRole("button", { name: "Join", exact: true }));
    await mate.getByRole("row", { name: new RegExp(`mate-${by}.*Developer`) }).waitFor();

    // The owner sees who used it. A third user cannot.
    await page.reload();
    await hand.press(page.locator(".invitations summary", { hasText: "0 open" }));
    await page.getByText(`Used by guest-${by}, mate-${by}`).waitFor();
    await page.getByText("2 of 2 used").waitFor();
    await page.screenshot({ path: join(pictures, `invite-list-${by}.png`), fullPage: true });
    const late = await window_(t);
    await late.goto(link);
    await late.getByRole("heading", { name: "Invitation not valid" }).waitFor();

    // A revoked link is not valid either. Administrators see all invitations of the hub.
    const { link: other } = await ask(root, "POST", "/invitations", { group: group.id, note: `other-${by}` });
    await page.reload();
    await hand.press(page.locator(".invitations summary", { hasText: "1 open" }));
    await hand.press(page.getByRole("button", { name: `Revoke: other-${by}` }));
    await hand.press(page.getByRole("dialog").getByRole("button", { name: "Revoke", exact: true }));
    await page.getByText("Invitation revoked").first().waitFor();
    await page.waitForFunction(() => document.activeElement?.tagName === "SUMMARY");
    await late.goto(`/invite/${other}`);
    await late.getByRole("heading", { name: "Invitation not valid" }).waitFor();
    await root.goto("/admin/users");
    await root.locator(".invitations summary").click();
    await root.getByRole("cell", { name: new RegExp(`^other-${by}.*${display}`) }).waitFor();
    await root.screenshot({ path: join(pictures, `invite-admin-${by}.png`), fullPage: true });
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
    await page.goto(`/invite/${link.slice(0, -1)}`);
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
