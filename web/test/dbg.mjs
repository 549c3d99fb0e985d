import { launch, open } from "./browser.mjs";
import { Hub } from "./hub.mjs";
const hub = await Hub.start();
const browser = await launch();
try {
  const { id } = await hub.ask("POST", "/sessions", { title: "A walk" });
  const page = await open(browser, hub);
  await page.goto(`/chat/${id}`);
  const box = page.getByRole("textbox", { name: "Message" });
  await box.focus();
  await page.evaluate(() => {
    window.log = [];
    for (const k of ["focusin", "focusout", "keydown", "close"]) document.addEventListener(k, (e) => window.log.push(`${Math.round(performance.now())} ${k} ${e.key ?? ""} ${e.target.tagName}.${e.target.className}`), true);
  });
  for (let i = 0; i < 2; i++) {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("rename");
    await page.getByRole("option", { name: "Rename" }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForTimeout(1500);
    console.log(await page.evaluate(() => [document.activeElement.className, ...window.log.splice(0)].join("\n")));
    await page.keyboard.press("Escape");
    await page.waitForTimeout(300);
    await box.focus();
  }
} finally { await browser.close(); await hub.end(); }
