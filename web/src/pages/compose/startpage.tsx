import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { mayAddVersion } from "../../features/skills/namespaces";
import { composeOf } from "../../features/skills/skilladdress";
import { api, got, useLoad } from "../../shared/api/client";
import { findMsg, msg } from "../../shared/i18n/messages";
import { Button, Icon, Shown, Tag, TextField, useConfirm, When } from "../../shared/ui";
import { Page } from "../../shared/ui/page";
import { listDrafts, deleteDraft, newKey, type StoredDraft } from "./drafts";
import { templates } from "./templates";

/** StartPage offers drafts, templates and existing skills. */
export function StartPage() {
  return (
    <Page title={msg("compose.compose")} lead={msg("compose.lead")}>
      <StoredDrafts />
      <Templates />
      <Existing />
    </Page>
  );
}

const placeOf = (k: StoredDraft) => (k.of ? `/compose/${encodeURIComponent(k.of)}` : `/compose?draft=${k.key}`);

function StoredDrafts() {
  const [all, setAll] = useState(listDrafts);
  const confirm = useConfirm();
  const mine = all.filter((k) => k.touched);
  if (!mine.length) return null;
  const away = (k: StoredDraft) =>
    confirm.ask({
      title: msg("compose.throwTitle"),
      children: <p>{msg("compose.throwText", { name: k.name || msg("compose.untitled") })}</p>,
      yes: msg("compose.throwAway"),
      danger: true,
      act: async () => {
        deleteDraft(k.key);
        setAll(listDrafts());
      },
    });
  return (
    <section class="stack">
      <div>
        <h2>{msg("compose.keptWork")}</h2>
        <p class="muted small">{msg("compose.keptHint")}</p>
      </div>
      <ul class="compose-list">
        {mine.map((k) => (
          <li key={k.key}>
            <div class="grow">
              <strong class="mono">{k.name || msg("compose.untitled")}</strong>{" "}
              <Tag>{k.of ? msg("compose.onSkill") : msg("compose.onNew")}</Tag>{" "}
              <span class="small muted">
                <When time={k.at} />
              </span>
            </div>
            <a class="button small" href={placeOf(k)}>
              {msg("compose.goOn")}
            </a>
            <Button
              small
              look="quiet"
              icon="trash"
              label={`${msg("compose.throwAway")}: ${k.name || msg("compose.untitled")}`}
              onClick={() => away(k)}
            />
          </li>
        ))}
      </ul>
      {confirm.open}
    </section>
  );
}

function Templates() {
  const { route } = useLocation();
  const begin = (id: string) => route(`/compose?draft=${newKey()}&template=${id}`);
  return (
    <section class="stack">
      <h2>{msg("compose.begin")}</h2>
      <ul class="cards">
        {Object.keys(templates).map((id) => (
          <li key={id}>
            <button type="button" class="card compose-template" onClick={() => begin(id)}>
              <strong>{findMsg("compose.templates", id)}</strong>
              <span class="small muted">{findMsg("compose.templateHints", id)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Existing() {
  const [q, setQ] = useState("");
  const [asked, setAsked] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setAsked(q.trim()), 250);
    return () => clearTimeout(timer);
  }, [q]);
  const skills = useLoad(
    async (signal) =>
      (await got(api.GET("/api/v1/skills", { params: { query: { q: asked || undefined, limit: 20 } }, signal }))).items,
    [asked],
  );
  return (
    <section class="stack">
      <h2>{msg("compose.existing")}</h2>
      <div class="compose-search">
        <TextField label={msg("compose.findSkill")} type="search" value={q} onText={setQ} />
      </div>
      <Shown asked={skills}>
        {(items) =>
          items.length === 0 ? (
            <p class="muted">{asked ? msg("compose.noSkills") : msg("compose.noSkillsYet")}</p>
          ) : (
            <ul class="compose-list">
              {items.map((s) => (
                <li key={s.id}>
                  <div class="grow">
                    <strong>{s.displayName || s.name}</strong>{" "}
                    {s.displayName && <span class="mono muted">{s.name}</span>}
                    <p class="small muted compose-clip">{s.description}</p>
                  </div>
                  {mayAddVersion(s) && (
                    <a
                      class="button small"
                      href={composeOf(s.id)}
                      aria-label={`${msg("compose.asVersion")}: ${s.name}`}
                    >
                      <Icon name="compose" size={16} />
                      {msg("compose.asVersion")}
                    </a>
                  )}
                  <a
                    class="button small"
                    href={`/compose?copy=${encodeURIComponent(s.id)}`}
                    aria-label={`${msg("compose.asCopy")}: ${s.name}`}
                  >
                    <Icon name="copy" size={16} />
                    {msg("compose.asCopy")}
                  </a>
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </section>
  );
}
