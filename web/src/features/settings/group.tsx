import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { hasRole, me, loadMe } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import {
  AreaField,
  Button,
  done,
  Icon,
  Problem,
  SelectField,
  Shown,
  Tabs,
  Tag,
  TextField,
  useConfirm,
} from "../../shared/ui";
import { useGroups } from "../skills/namespaces";
import { Submit, useSend } from "../users/form";
import { regroup, roleName } from "../users/users";
import { Members } from "./members";
import { SkillSwitch } from "./skillswitch";

type Tab = "members" | "about" | "skills";

/** GroupPage shows a group: members, name and skill settings. */
export function GroupPage({ id, base }: { id: string; base: string }) {
  const { query, route } = useLocation();
  const load = useLoad(
    (signal) => got(api.GET("/api/v1/groups/{group}", { params: { path: { group: id } }, signal })),
    [id],
  );
  const tab: Tab = query.tab === "about" || query.tab === "skills" ? query.tab : "members";
  const views: [Tab, string][] = [
    ["members", msg("settings.members")],
    ["skills", msg("settings.switchTab")],
    ["about", msg("settings.about")],
  ];
  return (
    <section class="stack">
      <a class="row small" href={base}>
        <Icon name="left" size={16} /> {msg("settings.tabs.groups")}
      </a>
      <Shown asked={load}>
        {(g) => (
          <>
            <h2 class="row">
              {g.display || g.name}{" "}
              {g.role !== "outsider" && (
                <Tag>
                  {msg("settings.yourRole")} {roleName(g.role)}
                </Tag>
              )}
            </h2>
            {g.description && <p class="muted settings-lead">{g.description}</p>}
            <Tabs<Tab>
              label={g.name}
              tabs={views}
              open={tab}
              onOpen={(to) => route(`${base}/${id}${to === "members" ? "" : `?tab=${to}`}`, true)}
            >
              {tab === "members" && <Members group={g} />}
              {tab === "skills" && (
                <SkillSwitch scope={`group:${g.id}`} called={g.display || g.name} may={hasRole(g.id, "maintainer")} />
              )}
              {tab === "about" && (
                <About
                  group={g}
                  base={base}
                  onChange={(now) => {
                    load.set(now);
                    void regroup();
                  }}
                />
              )}
            </Tabs>
          </>
        )}
      </Shown>
    </section>
  );
}

/** changed returns a value unless it is the one before. */
const changed = <T,>(now: T, before: T) => (now === before ? undefined : now);

function About({
  group,
  base,
  onChange,
}: {
  group: Schema["Group"];
  base: string;
  onChange: (g: Schema["Group"]) => void;
}) {
  const owner = hasRole(group.id, "owner");
  const [display, setDisplay] = useState(group.display);
  const [description, setDescription] = useState(group.description);
  const [approvers, setApprovers] = useState(String(group.requiredApprovers));
  const [from, setFrom] = useState(group.approverGroup ?? "");
  const [role, setRole] = useState(group.approverRole);
  const groups = useGroups().filter((g) => g.id !== group.id);
  const roles = (from ? ["reporter", "developer", "maintainer", "owner"] : ["maintainer", "owner"]) as (typeof role)[];
  const { send, busy, error } = useSend(async () => {
    onChange(
      await got(
        api.PATCH("/api/v1/groups/{group}", {
          params: { path: { group: group.id } },
          // Only what was changed here, because another owner may have changed the rest.
          body: {
            display: changed(display, group.display),
            description: changed(description, group.description),
            requiredApprovers: changed(Number(approvers), group.requiredApprovers),
            approverGroup: changed(from, group.approverGroup ?? ""),
            approverRole: changed(role, group.approverRole),
          },
        }),
      ),
    );
    done(msg("settings.saved"));
  });
  return (
    <div class="stack loose">
      <dl class="facts">
        <dt>{msg("settings.groupName")}</dt>
        <dd class="mono">{group.name}</dd>
      </dl>
      {owner && (
        <form class="stack settings-form" onSubmit={send}>
          <TextField label={msg("settings.groupDisplay")} value={display} onText={setDisplay} maxLength={200} />
          <AreaField
            label={msg("settings.description")}
            value={description}
            onText={setDescription}
            maxLength={4000}
            rows={3}
          />
          <TextField
            label={msg("settings.approvers")}
            hint={msg("settings.approversHint")}
            type="number"
            min={1}
            max={10}
            required
            value={approvers}
            onText={setApprovers}
          />
          <SelectField
            label={msg("settings.approverGroup")}
            hint={msg("settings.approverGroupHint")}
            value={from}
            onText={(id) => {
              setFrom(id);
              if (!id && role !== "owner") setRole("maintainer");
            }}
            options={[
              ["", msg("settings.thisGroup")],
              ...groups.map((g): [string, string] => [g.id, g.display || g.name]),
              ...(from && !groups.some((g) => g.id === from)
                ? [[from, msg("settings.unseenGroup")] as [string, string]]
                : []),
            ]}
          />
          <SelectField
            label={msg("settings.approverRole")}
            value={role}
            onText={(r) => setRole(r as typeof role)}
            options={roles.map((r) => [r, roleName(r)])}
          />
          {error && <Problem error={error} />}
          <Submit busy={busy}>{msg("settings.save")}</Submit>
        </form>
      )}
      <div class="row">
        <LeaveGroup group={group} base={base} />
        {owner && <Delete group={group} base={base} />}
      </div>
    </div>
  );
}

function LeaveGroup({ group, base }: { group: Schema["Group"]; base: string }) {
  const confirm = useConfirm();
  const { route } = useLocation();
  if (!me.value!.groups.some((g) => g.group === group.id)) return null;
  const act = async () => {
    await got(
      api.DELETE("/api/v1/groups/{group}/members/{user}", { params: { path: { group: group.id, user: "me" } } }),
    );
    await Promise.all([loadMe(), regroup()]);
    done(msg("settings.left"));
    route(base);
  };
  return (
    <>
      {confirm.open}
      <Button
        onClick={() =>
          confirm.ask({
            title: msg("settings.leaveTitle", { g: group.name }),
            children: msg("settings.leaveText"),
            yes: msg("settings.leave"),
            danger: true,
            act,
          })
        }
      >
        {msg("settings.leave")}
      </Button>
    </>
  );
}

function Delete({ group, base }: { group: Schema["Group"]; base: string }) {
  const confirm = useConfirm();
  const { route } = useLocation();
  const act = async () => {
    await got(api.DELETE("/api/v1/groups/{group}", { params: { path: { group: group.id } } }));
    await Promise.all([loadMe(), regroup()]);
    done(msg("settings.deleted"));
    route(base);
  };
  return (
    <>
      {confirm.open}
      <Button
        look="danger"
        onClick={() =>
          confirm.ask({
            title: msg("settings.deleteTitle", { n: group.name }),
            children: msg("settings.deleteText"),
            yes: msg("settings.deleteGroup"),
            danger: true,
            act,
          })
        }
      >
        {msg("settings.deleteGroup")}
      </Button>
    </>
  );
}
