import { useState } from "preact/hooks";
import { groupName, useUserNames } from "../../features/users/users";
import { api, got, useLoad, type Schema } from "../../shared/api/client";
import { hasRole, isAdmin, me } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { ActionButton, Button, done, Empty, SelectField, Shown, Tag } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";
import { DefaultForm } from "./defaultform";

type Default = Schema["Default"];

/** Defaults lists the default skills of the user and of managed groups. */
export function Defaults() {
  useUserNames();

  const [of, setOf] = useState("");
  const [editing, edit] = useState<Default | "new">();
  const load = useLoad(
    (signal) => got(api.GET("/api/v1/defaults", { params: { query: { namespace: of || undefined } }, signal })),
    [of],
  );
  const begins = useLoad((signal) => got(api.GET("/api/v1/defaults/choose", { signal })), []);
  const refresh = () => void Promise.all([load.again(), begins.again()]);
  const whose: [string, string][] = [
    ["", msg("settings.mine")],
    ...me.value!.groups.map((g): [string, string] => [`group:${g.group}`, groupName(g.group)]),
    ["public", msg("settings.everybody")],
  ];
  const may = of === "" || (of === "public" ? isAdmin.value : hasRole(of.slice("group:".length), "developer"));
  return (
    <>
      <Part
        title={msg("settings.tabs.defaults")}
        lead={msg("settings.defaultsText")}
        action={
          may && (
            <Button look="primary" icon="plus" onClick={() => edit("new")}>
              {msg("settings.addDefault")}
            </Button>
          )
        }
      >
        <div class="settings-form">
          <SelectField label={msg("settings.whose")} value={of} onText={setOf} options={whose} />
        </div>
        {editing && (
          <DefaultForm
            namespace={of}
            was={editing === "new" ? undefined : editing}
            taken={load.data?.items.map((d) => d.skill_id) ?? []}
            onSet={refresh}
            onClose={() => edit(undefined)}
          />
        )}
        <Shown asked={load}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty title={msg("settings.noDefaults")}>{msg("settings.noDefaultsText")}</Empty>
            ) : (
              <Rows key={of} items={items} may={may} onEdit={edit} onGone={refresh} />
            )
          }
        </Shown>
      </Part>
      {of === "" && (
        <Shown asked={begins}>{({ items }) => <OfOthers chosen={items} own={load.data?.items ?? []} />}</Shown>
      )}
    </>
  );
}

/** OfOthers lists the defaults that groups and administrators add to those of the user. */
function OfOthers({ chosen, own }: { chosen: Schema["Chosen"][]; own: Default[] }) {
  const more = chosen.filter((c) => !own.some((d) => d.skill_id === c.skill_id));
  if (!more.length) return null;
  return (
    <Part title={msg("settings.defaultsOfOthers")}>
      <p class="row">
        {more.map((c) => (
          <Tag key={c.skill_id} look={c.forcePreload ? "accent" : ""}>
            {c.name} · {c.forcePreload ? msg("settings.preloaded") : msg("settings.offered")}
          </Tag>
        ))}
      </p>
    </Part>
  );
}

const most = 10;

/** Rows lists defaults, those that are loaded at the start first. */
function Rows({
  items,
  ...rest
}: {
  items: Default[];
  may: boolean;
  onEdit: (d: Default) => void;
  onGone: () => void;
}) {
  const [all, showAll] = useState(false);
  const sorted = [...items].sort((a, b) => Number(b.forcePreload) - Number(a.forcePreload));
  return (
    <>
      <ul class="settings-list-rows">
        {sorted.slice(0, all ? undefined : most).map((d) => (
          <Row key={d.skill_id} d={d} {...rest} />
        ))}
      </ul>
      {!all && items.length > most && (
        <div>
          <Button onClick={() => showAll(true)}>{msg("settings.showAllDefaults", { count: items.length })}</Button>
        </div>
      )}
    </>
  );
}

function Row({
  d,
  may,
  onEdit,
  onGone,
}: {
  d: Default;
  may: boolean;
  onEdit: (d: Default) => void;
  onGone: () => void;
}) {
  const remove = async () => {
    await got(
      api.DELETE("/api/v1/defaults/{skill}", {
        params: { path: { skill: d.skill_id }, query: { namespace: d.namespace } },
      }),
    );
    done(msg("settings.defaultGone"));
    onGone();
  };
  return (
    <li>
      <div class="grow">
        {d.name ? (
          <a href={`/library/${d.skill_id}`}>{d.name}</a>
        ) : (
          <span class="muted">{msg("settings.hiddenSkill")}</span>
        )}{" "}
        <Tag look={d.forcePreload ? "accent" : ""}>
          {d.forcePreload ? msg("settings.preloaded") : msg("settings.offered")}
        </Tag>
        {d.exceptions.length > 0 && (
          <p class="small muted">
            {msg("settings.exceptions")} {d.exceptions.map((e) => `${e.type}:${e.value}`).join(", ")}
          </p>
        )}
      </div>
      {may && (
        <div class="row">
          <Button small onClick={() => onEdit(d)}>
            {msg("settings.edit")}
          </Button>
          <ActionButton small label={`${msg("settings.remove")}: ${d.name ?? d.skill_id}`} act={remove}>
            {msg("settings.remove")}
          </ActionButton>
        </div>
      )}
    </li>
  );
}
