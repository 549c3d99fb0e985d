import { holds, same, test } from "../../../test/units/check";
import { loadMessages, msg } from "../i18n/messages";
import { Unreachable } from "./client";

test("a lost connection: its text is in the language of the page, also if that is loaded later", async () => {
  const error = new Unreachable();
  const english = error.message;
  await loadMessages("zh-Hans");
  same(error.message, msg("ui.unreachable"));
  holds(error.message !== english, "it is translated");
  await loadMessages("en");
});
