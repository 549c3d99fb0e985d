import { api, got, useAsked, usePages, type Schema } from "../api/client";
import { mayReview } from "../api/me";
import { Button, done, failed, Menu, MenuItem, More, Shown, Tag, useConfirm, When } from "../ui";
import { size } from "../words";
import { packageOf, useAddress } from "./address";
import { Compared } from "./compare";
import { can, type Looked } from "./detail";
import { ReviewState } from "./glance";
import { usePeople } from "./places";
import { d } from "./words-detail";

type Version = Schema["SkillVersion"];

/** All versions of a skill: to compare two, to go back to one, to delete one. */
export function Versions({ look }: { look: Looked }) {
  const { skill } = look;
  const versions = usePages((after, signal) => got(api.GET("/api/v1/skills/{skill}/versions", { signal, params: { path: { skill: skill.id }, query: { after } } })), [skill.id, skill.number]);
  return (
    <div class="stack">
      <Shown asked={versions} waiting={d().waitingVersions}>
        {(all) => (
          <>
            {all.length > 1 && <Comparison skill={skill.id} versions={all} current={skill.number} />}
            <div class="table-wrap">
              <table class="table library-versions">
                <caption class="visually-hidden">{d().tabs.versions}</caption>
                <thead><tr><th scope="col">{d().versionHead}</th><th scope="col">{d().state}</th><th scope="col">{d().uploaded}</th><th scope="col" class="number">{d().size}</th><th scope="col"><span class="visually-hidden">{d().more}</span></th></tr></thead>
                <tbody>{all.map((v) => <Line key={v.number} version={v} look={look} again={versions.again} />)}</tbody>
              </table>
            </div>
            <More pages={versions} />
          </>
        )}
      </Shown>
    </div>
  );
}

function Line({ version: v, look: { skill, again }, again: listAgain }: { version: Version; look: Looked; again: () => Promise<void> }) {
  const person = usePeople();
  const at = useAddress();
  const t = d();
  return (
    <tr>
      <td>
        <div class="row"><a href={at.with({ version: v.current ? "" : String(v.number), tab: "", from: "", to: "" })}>{t.version(v.number, v.version)}</a>{v.current && <Tag look="accent">{t.current}</Tag>}</div>
        {v.note && <p class="muted">{t.note(v.reviewer ? person(v.reviewer) : "", v.note)}</p>}
      </td>
      <td><ReviewState skill={v} /></td>
      <td>{person(v.createdBy)}, <When time={v.created} /></td>
      <td class="number">{size(v.size)}<div class="muted">{t.nFiles(v.files)}</div></td>
      <td><div class="library-end"><VersionMenu version={v} skill={skill} again={() => Promise.all([again(), listAgain()])} /></div></td>
    </tr>
  );
}

function VersionMenu({ version: v, skill, again }: { version: Version; skill: Schema["SkillDetail"]; again: () => Promise<unknown> }) {
  const at = useAddress();
  const confirm = useConfirm();
  const path = { skill: skill.id, version: String(v.number) };
  const t = d();
  const use = () => void got(api.POST("/api/v1/skills/{skill}/versions/{version}/use", { params: { path } })).then(() => (done(t.madeCurrent(v.number)), again())).catch(failed);
  const remove = () => confirm.ask({
    title: t.deleteVersionTitle(v.number), children: <p>{t.deleteVersionText}</p>, yes: t.deleteVersion, danger: true,
    act: async () => {
      await got(api.DELETE("/api/v1/skills/{skill}/versions/{version}", { params: { path } }));
      done(t.versionDeleted(v.number));
      await again();
    },
  });
  return (
    <>
      <Menu small label={t.moreOf(v.number)}>
        <MenuItem href={at.with({ version: v.current ? "" : String(v.number), tab: "", from: "", to: "" })}>{t.look}</MenuItem>
        {v.number > 1 && <MenuItem onClick={() => at.go({ from: String(v.number - 1), to: String(v.number) }, true)}>{t.compareBefore}</MenuItem>}
        {!v.current && <MenuItem onClick={() => at.go({ from: String(v.number), to: String(skill.number) }, true)}>{t.compareCurrent}</MenuItem>}
        {v.code && mayReview(skill.namespace, v) && <MenuItem href={`/review/${encodeURIComponent(skill.id)}/${v.number}`}>{t.review}</MenuItem>}
        {can(skill, "skill.download") && <MenuItem onClick={() => location.assign(packageOf(skill.id, v.number))}>{t.download}</MenuItem>}
        {!v.current && can(skill, "skill.change") && <MenuItem onClick={use}>{t.makeCurrent}</MenuItem>}
        {!v.current && can(skill, "skill.delete") && <MenuItem danger onClick={remove}>{t.deleteVersion}</MenuItem>}
      </Menu>
      {confirm.open}
    </>
  );
}

/** Two versions to choose, and how they differ. */
function Comparison({ skill, versions, current }: { skill: string; versions: Version[]; current: number }) {
  const at = useAddress();
  const to = at.get("to") || String(versions[0]!.number);
  const from = at.get("from") || String(current < Number(to) ? current : (versions.find((v) => v.number < Number(to)) ?? versions[0]!).number);
  const open = !!at.get("from") && from !== to;
  const t = d();
  const pick = (name: string, label: string, value: string) => (
    <label class="row keep small">
      <span>{label}</span>
      <select class="input" value={value} onChange={(e) => at.go({ from, to, [name]: e.currentTarget.value })}>
        {versions.map((v) => <option key={v.number} value={v.number}>{t.version(v.number, v.version)}</option>)}
      </select>
    </label>
  );
  return (
    <section class="card stack" aria-label={t.compare}>
      <h2 class="visually-hidden">{t.compare}</h2>
      <div class="row">
        {pick("from", t.compareFrom, from)}
        {pick("to", t.compareTo, to)}
        {open ? <Button onClick={() => at.go({ from: "", to: "" })}>{t.close}</Button> : <Button disabled={from === to} onClick={() => at.go({ from, to }, true)}>{t.compare}</Button>}
      </div>
      {open && <Differences skill={skill} from={from} to={to} />}
    </section>
  );
}

function Differences({ skill, from, to }: { skill: string; from: string; to: string }) {
  const diff = useAsked((signal) => got(api.GET("/api/v1/skills/{skill}/versions/{version}/diff", { signal, params: { path: { skill, version: to }, query: { from } } })), [skill, from, to]);
  return <Shown asked={diff} waiting={d().waitingDiff}>{(found) => <Compared diff={found} />}</Shown>;
}
