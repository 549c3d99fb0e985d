// The two ways in which a user does a task: by mouse, where only texts are typed, and by keyboard alone. A page
// reports as a fault what belongs to the other way, and texts that a script fills in.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const most = 400; // keys to a control

/** watch makes a page report what a user of one hand does not do. */
async function watch(page, name) {
  await page.exposeFunction("wrongHand", (what) => page.faults.push(`by ${name}: ${what}`));
  await page.addInitScript((name) => {
    let keys = 0; // since the focus moved
    window.addEventListener("focusin", () => (keys = 0), true);
    window.addEventListener(
      "keydown",
      (e) => {
        keys++;
        if (name === "mouse" && /^(Tab|Enter|Escape|Arrow.*)$/.test(e.key)) window.wrongHand(`the key ${e.key}`);
      },
      true,
    );
    window.addEventListener("beforeinput", (e) => e.data && !keys && window.wrongHand("text that nobody typed"), true);
    if (name === "keyboard")
      window.addEventListener("pointerdown", (e) => window.wrongHand(`a press on ${e.target.tagName}`), true);
  }, name);
}

class Hand {
  constructor(page) {
    this.page = page;
  }

  /** of returns the hand on a page. */
  static async of(page) {
    await watch(page, this.title);
    return new this(page);
  }

  /** file presses a button that opens a dialog for files, and chooses some. */
  async file(button, files) {
    const [chooser] = await Promise.all([this.page.waitForEvent("filechooser"), this.press(button)]);
    await chooser.setFiles(files);
  }

  /** say writes a message to the model and sends it. */
  async say(text) {
    await this.write(this.page.getByRole("textbox", { name: "Message" }), text);
    await this.send(this.page.getByRole("button", { name: "Send", exact: true }));
  }
}

class Mouse extends Hand {
  static title = "mouse";
  isMouse = true;

  press(control) {
    return control.click();
  }

  check(box) {
    return box.click();
  }

  /** write replaces the text of a field. */
  async write(field, text) {
    await field.click({ clickCount: 3 });
    await this.page.keyboard.type(text);
  }

  /** send presses the button of a form whose last field was written. */
  send(button) {
    return button.click();
  }

  /** choose chooses by value. The system draws the list of a select, which no test can click. */
  choose(select, value) {
    return select.selectOption(value);
  }

  /** scroll turns the wheel over an element to the right. */
  async scroll(box) {
    await box.hover();
    await this.page.mouse.wheel(200, 0);
  }

  /** picture drags a picture from the desktop to an element. */
  async picture(target, bytes) {
    const dir = await mkdtemp(join(tmpdir(), "loadout-drag-"));
    try {
      await writeFile(join(dir, "chart.png"), bytes);
      const { x, y, width, height } = await target.boundingBox();
      const cdp = await this.page.context().newCDPSession(this.page);
      const data = { items: [], files: [join(dir, "chart.png")], dragOperationsMask: 1 };
      for (const type of ["dragEnter", "dragOver", "drop"])
        await cdp.send("Input.dispatchDragEvent", { type, x: x + width / 2, y: y + height / 2, data });
      await this.page.getByRole("button", { name: "View chart.png" }).waitFor();
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  }
}

class Keyboard extends Hand {
  static title = "keyboard";

  /**
   * reach moves the focus to a control by Tab, or by arrows within what Tab enters as one: a menu, the tabs of a
   * page, the choices of a group, the lines of a file.
   */
  async reach(control) {
    await control.waitFor();
    let element = await control.elementHandle();
    for (let i = 0; i < most; i++) {
      const keys = await element.evaluate((e) => {
        const active = document.activeElement;
        if (!e.isConnected) return undefined; // it was drawn anew
        if (active === e) return [];
        if (active?.matches(".cm-content")) return ["Escape", "Tab"]; // an editor, where Tab indents
        const one = e.closest("[role=menu], [role=tablist]");
        const near =
          (active?.type === "radio" && active.name && active.name === e.name) ||
          (active?.matches(".line-press") && e.matches(".line-press")) ||
          (e.tabIndex < 0 && one?.contains(active));
        if (!near) return ["Tab"];
        return [one?.getAttribute("role") === "tablist" ? "ArrowRight" : "ArrowDown"];
      });
      if (keys?.length === 0) return;
      if (!keys) element = await control.elementHandle();
      await Promise.all((keys ?? []).map((key) => this.page.keyboard.press(key))); // an editor forgets Escape after 2 s
    }
    throw new Error(`the focus does not reach ${control}`);
  }

  async press(control) {
    await this.reach(control);
    await this.page.keyboard.press("Enter");
  }

  async check(box) {
    await this.reach(box);
    if (!(await box.isChecked())) await this.page.keyboard.press("Space");
  }

  async write(field, text) {
    await this.reach(field);
    await this.page.keyboard.press("Control+a");
    await this.page.keyboard.type(text);
  }

  send() {
    return this.page.keyboard.press("Enter");
  }

  async choose(select, value) {
    await this.reach(select);
    const [at, to] = await select.evaluate(
      (e, value) => [e.selectedIndex, [...e.options].findIndex((o) => o.value === value)],
      value,
    );
    for (let i = at; i !== to; i += Math.sign(to - at))
      await this.page.keyboard.press(to > at ? "ArrowDown" : "ArrowUp");
  }

  async scroll(box) {
    await this.reach(box);
    await this.page.keyboard.press("ArrowRight");
  }

  /** picture copies a picture, as another program does, and pastes it where the focus is. */
  async picture(_, bytes) {
    await this.page.evaluate(
      async (bytes) => {
        const blob = new Blob([new Uint8Array(bytes)], { type: "image/png" });
        await navigator.clipboard.write([new window.ClipboardItem({ "image/png": blob })]);
      },
      [...bytes],
    );
    await this.page.keyboard.press("Control+v");
    await this.page.getByRole("button", { name: /^View pasted/ }).waitFor();
  }
}

export const hands = [Mouse, Keyboard];
