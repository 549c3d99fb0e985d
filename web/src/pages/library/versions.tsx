import { useUserNames } from "../../features/skills/namespaces";
import { packageOf, useAddress } from "../../features/skills/skilladdress";
import { cleared, VersionState } from "../../features/skills/versionstate";
import { api, got, useLoad, usePages, type Schema } from "../../shared/api/client";
import { mayReview } from "../../shared/api/me";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, done, failed, Menu, MenuItem, More, Shown, Tag, useConfirm, When } from "../../shared/ui";
import { ReviewState } from "./cells";
import { Compared } from "./compare";
import { can, type Looked } from "./opened";
import { commentBy, versionName } from "./phrases";

type Version = Schema["SkillVersion"];

/** Versions lists all versions, compares two, and restores or deletes one. */
export function Versions({ look }: { look: Looked }) {
  const { skill } = look;
  const versions = usePages(
    (after, signal) =>
      got(
        api.GET("/api/v1/skills/{skill}/versions", { signal, params: { path: { skill: skill.id }, query: { after } } }),
      ),
    [skill.id, skill.number],
  );
  return (
    <div class="stack">
      <Shown asked={versions} waiting={msg("skill.waitingVersions")}>
        {(all) => (
          <>
            <Comparison skill={skill.id} versions={all.filter((v) => !v.withheld)} current={skill.number} />
            <div class="table-wrap">
              <table class="table library-versions">
                <caption class="visually-hidden">{msg("skill.tabs.versions")}</caption>
                <thead>
                  <tr>
                    <th scope="col">{msg("skill.versionHead")}</th>
                    <th scope="col">{msg("skill.state")}</th>
                    <th scope="col">{msg("skill.uploaded")}</th>
                    <th scope="col" class="number">
                      {msg("skill.size")}
                    </th>
                    <th scope="col">
                      <span class="visually-hidden">{msg("skill.more")}</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {all.map((v) => (
                    <Line key={v.number} version={v} look={look} again={versions.again} />
                  ))}
                </tbody>
              </table>
            </div>
            <More pages={versions} />
          </>
        )}
      </Shown>
    </div>
  );
}

function Line({
  version: v,
  look: { skill, again },
  again: listAgain,
}: {
  version: Version;
  look: Looked;
  again: () => Promise<void>;
}) {
  const person = useUserNames();
  const at = useAddress();

  return (
    <tr>
      <td>
        <div class="row">
          {v.withheld ? (
            versionName(v.number, v.version)
          ) : (
            <a href={at.with({ version: v.current ? "" : String(v.number), tab: "", from: "", to: "" })}>
              {versionName(v.number, v.version)}
            </a>
          )}
          {v.current && <Tag look="accent">{msg("skill.current")}</Tag>}
        </div>
        {v.changelog && <p>{v.changelog}</p>}
        {v.note && <p class="muted">{commentBy(v.reviewer ? person(v.reviewer) : "", v.note)}</p>}
      </td>
      <td>
        <div class="row">
          {(v.code || v.state !== "approved") && <VersionState version={v} />}
          {!v.code && <ReviewState skill={v} />}
        </div>
      </td>
      <td>
        {person(v.createdBy)}, <When time={v.created} />
      </td>
      <td class="number">
        {size(v.size)}
        <div class="muted">{msg("skill.nFiles", { count: v.files })}</div>
      </td>
      <td>
        <div class="library-end">
          {!v.withheld && <VersionMenu version={v} skill={skill} again={() => Promise.all([again(), listAgain()])} />}
        </div>
      </td>
    </tr>
  );
}

function VersionMenu({
  version: v,
  skill,
  again,
}: {
  version: Version;
  skill: Schema["SkillDetail"];
  again: () => Promise<unknown>;
}) {
  const at = useAddress();
  const confirm = useConfirm();
  const path = { skill: skill.id, version: String(v.number) };

  const use = () =>
    void got(api.POST("/api/v1/skills/{skill}/versions/{version}/use", { params: { path } }))
      .then(() => (done(msg("skill.madeCurrent", { n: v.number })), again()))
      .catch(failed);
  const remove = () =>
    confirm.ask({
      title: msg("skill.deleteVersionTitle", { n: v.number }),
      children: <p>{msg("skill.deleteVersionText")}</p>,
      yes: msg("skill.deleteVersion"),
      danger: true,
      act: async () => {
        await got(api.DELETE("/api/v1/skills/{skill}/versions/{version}", { params: { path } }));
        done(msg("skill.versionDeleted", { n: v.number }));
        await again();
      },
    });
  return (
    <>
      <Menu small label={msg("skill.moreOf", { n: v.number })}>
        <MenuItem href={at.with({ version: v.current ? "" : String(v.number), tab: "", from: "", to: "" })}>
          {msg("skill.look")}
        </MenuItem>
        {v.number > 1 && (
          <MenuItem onClick={() => at.go({ from: String(v.number - 1), to: String(v.number) }, true)}>
            {msg("skill.compareBefore")}
          </MenuItem>
        )}
        {!v.current && (
          <MenuItem onClick={() => at.go({ from: String(v.number), to: String(skill.number) }, true)}>
            {msg("skill.compareCurrent")}
          </MenuItem>
        )}
        {v.code && mayReview(skill.namespace, v) && (
          <MenuItem href={`/review/${encodeURIComponent(skill.id)}/${v.number}`}>{msg("skill.review")}</MenuItem>
        )}
        {can(skill, "skill.download") && (
          <MenuItem onClick={() => location.assign(packageOf(skill.id, v.number))}>{msg("skill.download")}</MenuItem>
        )}
        {!v.current && (cleared(v) || !cleared(skill.currentVersion)) && can(skill, "skill.change") && (
          <MenuItem onClick={use}>{msg("skill.makeCurrent")}</MenuItem>
        )}
        {!v.current && can(skill, "skill.delete") && (
          <MenuItem danger onClick={remove}>
            {msg("skill.deleteVersion")}
          </MenuItem>
        )}
      </Menu>
      {confirm.open}
    </>
  );
}

/** Comparison selects and compares two versions. */
function Comparison({ skill, versions, current }: { skill: string; versions: Version[]; current: number }) {
  const at = useAddress();
  if (versions.length < 2) return null;
  const listed = (name: string) => versions.find((v) => String(v.number) === at.get(name))?.number.toString();
  const to = listed("to") ?? String(versions[0]!.number);
  const from =
    listed("from") ??
    String(current < Number(to) ? current : (versions.find((v) => v.number < Number(to)) ?? versions[0]!).number);
  const open = !!listed("from") && from !== to;

  const pick = (name: string, label: string, value: string) => (
    <label class="row keep small">
      <span>{label}</span>
      <select class="input" value={value} onChange={(e) => at.go({ from, to, [name]: e.currentTarget.value })}>
        {versions.map((v) => (
          <option key={v.number} value={v.number}>
            {versionName(v.number, v.version)}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <section class="card stack" aria-label={msg("skill.compare")}>
      <h2 class="visually-hidden">{msg("skill.compare")}</h2>
      <div class="row">
        {pick("from", msg("skill.compareFrom"), from)}
        {pick("to", msg("skill.compareTo"), to)}
        {open ? (
          <Button onClick={() => at.go({ from: "", to: "" })}>{msg("skill.close")}</Button>
        ) : (
          <Button disabled={from === to} onClick={() => at.go({ from, to }, true)}>
            {msg("skill.compare")}
          </Button>
        )}
      </div>
      {open && <Differences skill={skill} from={from} to={to} />}
    </section>
  );
}

function Differences({ skill, from, to }: { skill: string; from: string; to: string }) {
  const diff = useLoad(
    (signal) =>
      got(
        api.GET("/api/v1/skills/{skill}/versions/{version}/diff", {
          signal,
          params: { path: { skill, version: to }, query: { from } },
        }),
      ),
    [skill, from, to],
  );
  return (
    <Shown asked={diff} waiting={msg("skill.waitingDiff")}>
      {(found) => <Compared diff={found} />}
    </Shown>
  );
}
