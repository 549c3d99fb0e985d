import { holds, same, test } from "../../../test/units/check";
import { clearRequestKey, keyFor } from "./requestkeys";

test("a message keeps its key until it is accepted", () => {
  const first = keyFor("a", "hello");
  holds(first.length > 20, "it is long");
  same(keyFor("a", "hello"), first);
  holds(keyFor("b", "hello") !== first, "another conversation, another key");
  clearRequestKey("a");
  holds(keyFor("a", "hello") !== first, "accepted, and said again");
});

test("an edited message gets a new key", () => {
  const first = keyFor("c", "hello");
  holds(keyFor("c", "hello there") !== first, "another text, another key");
});
