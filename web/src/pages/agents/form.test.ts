import { same, test } from "../../../test/units/check";
import { agentsOf } from "../../features/resources/agents";
import {
  agentAt,
  deletionsOf,
  documentsOf,
  faultsOf,
  formOf,
  inputOf,
  isMember,
  memberOf,
  newInput,
  printDocuments,
  versionOf,
} from "./form";
import { isEdited } from "./templatelist";
import { templates } from "./templates";

const doc = (kind: string, name: string, spec: object = {}, namespace = "default", description?: string) =>
  ({
    apiVersion: "loadout/v1",
    kind,
    metadata: { name, namespace, description },
    spec,
    status: { generation: 1 },
  }) as never;
const ghost = (name: string, namespace?: string, description?: string) =>
  doc("Ghost", name, { systemPrompt: "x" }, namespace, description);
const bot = (name: string, of = name, namespace?: string, description?: string) =>
  doc("Bot", name, { ghostRef: { name: of } }, namespace, description);
const fresh = (name: string, namespace = "default") => {
  const { ghost } = newInput();
  return { ghost: { ...ghost, metadata: { name, namespace } }, members: [] };
};
const brief = (docs: ReturnType<typeof documentsOf>) =>
  docs.map((d) => `${d.kind}/${d.metadata.namespace}/${d.metadata.name} ${JSON.stringify(d.spec)}`);

test("agent form: the descriptions of a Bot and a Team are kept unless they are those of the agent", () => {
  const members = [{ botRef: { name: "pilot" }, role: "leader" }, { botRef: { name: "b" } }];
  const team = doc("Team", "pilot", { members }, "default", "old");
  const saved = agentsOf([ghost("pilot", "default", "old")], [bot("pilot", "pilot", "default", "its own")], [team])[0]!;
  const input = inputOf(saved);
  const edited = { ...input, ghost: { ...input.ghost, metadata: { ...input.ghost.metadata, description: "new" } } };
  same(
    documentsOf(edited, saved, []).map((d) => d.metadata.description),
    ["new", "its own", "new"],
  );
});

test("agent form: a member stays the same agent in another namespace", () => {
  const all = agentsOf([], [bot("tides", "other")], []);
  const input = { ...fresh("pilot"), members: [memberOf(all[0]!)] };
  const team = (namespace: string) =>
    brief(documentsOf({ ...input, ...{ ghost: fresh("pilot", namespace).ghost } }, undefined, all)).at(-1);
  same(
    [team("default"), team("sea")],
    [
      'Team/default/pilot {"members":[{"botRef":{"name":"pilot"},"role":"leader"},{"botRef":{"name":"tides"}}]}',
      'Team/sea/pilot {"members":[{"botRef":{"name":"pilot"},"role":"leader"},{"botRef":{"name":"tides","namespace":"default"}}]}',
    ],
  );
});

test("agent form: members of one name are different agents, and new documents have free names", () => {
  const all = agentsOf([ghost("tides", "public"), ghost("pilot", "public")], [bot("tides", "other")], []);
  const own = all.find((a) => a.bot)!;
  const [pilot, tides] = all.filter((a) => !a.bot);
  same([isMember(memberOf(own), tides!, "default"), isMember(memberOf(tides!), own, "default")], [false, false]);
  const input = { ...fresh("pilot"), members: [memberOf(own), memberOf(tides!), memberOf(pilot!)] };
  same(brief(documentsOf(input, undefined, all)).slice(1), [
    'Bot/default/pilot {"ghostRef":{"name":"pilot"}}',
    'Bot/default/tides-member {"ghostRef":{"name":"tides","namespace":"public"}}',
    'Bot/default/pilot-member {"ghostRef":{"name":"pilot","namespace":"public"}}',
    'Team/default/pilot {"members":[{"botRef":{"name":"pilot"},"role":"leader"},{"botRef":{"name":"tides"}},{"botRef":{"name":"tides-member"}},{"botRef":{"name":"pilot-member"}}]}',
  ]);
});

test("agent form: without members the Team is deleted", () => {
  const members = [{ botRef: { name: "pilot" }, role: "leader" }, { botRef: { name: "b" } }];
  const saved = agentsOf([ghost("pilot")], [bot("pilot")], [doc("Team", "pilot", { members })])[0]!;
  same(deletionsOf(inputOf(saved), saved), []);
  same(deletionsOf({ ...inputOf(saved), members: [] }, saved), ["Team/default/pilot/1"]);
  const over = (generation: number) =>
    deletionsOf({ ...inputOf(saved), members: [] }, saved, new Map([["Team/pilot", generation]]));
  same([over(3), over(0)], [["Team/default/pilot/3"], ["Team/default/pilot"]]);
});

test("agent form: its address means the agent that has a form, and with a kind the agent of that document", () => {
  const all = agentsOf([ghost("x"), ghost("y")], [bot("x", "y")], []);
  const at = agentAt(all, { namespace: "default", name: "x" })!;
  same([formOf(at), !!at.ghost, !!at.bot], ["/agents/edit/default/x", true, false]);
  const extended = agentAt(all, { namespace: "default", name: "x", kind: "Bot" })!;
  same([formOf(extended), !!extended.ghost, !!extended.bot], [undefined, false, true]);
});

test("agent form: a template replaces only an empty form or another template without asking", () => {
  const t = templates[0]!;
  const taken = {
    ...newInput().ghost,
    metadata: { name: t.name, namespace: "sea", description: t.description },
    spec: t.spec,
  };
  same(
    [
      fresh("", "sea").ghost,
      taken,
      { ...taken, metadata: { ...taken.metadata, name: "mine" } },
      { ...taken, spec: { ...t.spec, skills: [] } },
      fresh("mine").ghost,
    ].map(isEdited),
    [false, false, true, true, true],
  );
});

test("agent form: a name that is taken is an error of the name, and a refused namespace one of the namespace", () => {
  const printed = printDocuments(documentsOf(fresh("tides"), undefined, []));
  const line = printed.lines[0]!.paths.indexOf("metadata.name") + printed.lines[0]!.first + 1;
  const faults = (code: string) =>
    faultsOf(
      [
        { findings: [{ severity: "error", code, message: "there is another Ghost with this name", fix: "x", line }] },
      ] as never,
      printed,
    ).map((f) => [f.path, f.message]);
  same(faults("document-exists"), [["metadata.name", "This name is taken"]]);
  same(faults("document-twice")[0]![0], "metadata.name");
  same(faults("denied")[0]![0], "metadata.namespace");
});

test("agent form: what was tried is the same agent after it was saved, and another one after a change", () => {
  const input = { ...fresh("pilot"), model: { name: "m" } };
  const before = versionOf(input, undefined, []);
  const saved = agentsOf(
    [{ ...input.ghost, status: { generation: 3 } } as never],
    [doc("Bot", "pilot", { modelRef: { name: "m" }, ghostRef: { name: "pilot" } })],
    [],
  )[0]!;
  same(versionOf(inputOf(saved), saved, []), before);
  same(versionOf({ ...inputOf(saved), model: undefined }, saved, []) === before, false);
});
