import { same, test } from "../../../test/units/check";
import { agentsOf, otherMembers, talkTo } from "./agents";

const doc = (kind: string, name: string, spec: object = {}, namespace = "default") =>
  ({ apiVersion: "loadout/v1", kind, metadata: { name, namespace }, spec, status: {} }) as never;
const bot = (name: string, ghost = name, namespace?: string) =>
  doc("Bot", name, { ghostRef: { name: ghost, namespace } });

test("agents: documents of one name that refer to each other are one agent", () => {
  const members = [{ botRef: { name: "writer" } }, { botRef: { name: "pilot" }, role: "Leader" }];
  const found = agentsOf(
    [doc("Ghost", "pilot"), doc("Ghost", "tides")],
    [bot("pilot")],
    [doc("Team", "pilot", { members })],
  );
  same(
    found.map((a) => [a.name, talkTo(a).kind, !!a.ghost, !!a.bot, !!a.team]),
    [
      ["pilot", "Team", true, true, true],
      ["tides", "Ghost", true, false, false],
    ],
  );
  same(
    otherMembers(found[0]!).map((m) => m.botRef.name),
    ["writer"],
  );
});

test("agents: a document that extends another one is an agent of its own", () => {
  const found = agentsOf(
    [doc("Ghost", "pilot"), doc("Ghost", "tides", {}, "sea")],
    [bot("fast", "pilot"), bot("tides", "tides", "sea")],
    [doc("Team", "all", { members: [{ botRef: { name: "fast" } }] })],
  );
  same(
    found.map((a) => `${talkTo(a).kind}/${a.namespace}/${a.name}`),
    ["Team/default/all", "Bot/default/fast", "Ghost/default/pilot", "Bot/default/tides", "Ghost/sea/tides"],
  );
});
