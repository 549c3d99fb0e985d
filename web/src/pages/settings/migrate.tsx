import { useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { mayAdd, useScopes } from "../../features/skills/namespaces";
import { send } from "../../features/upload/send";
import { isIgnored, pack } from "../../features/upload/zip";
import { api, got, type Schema } from "../../shared/api/client";
import { limits } from "../../shared/api/limits";
import { count, size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { Button, Empty, Problem, SelectField, Tag, TextField, Waiting } from "../../shared/ui";
import { Part } from "../../shared/ui/sections";
import { useUnsaved } from "../../shared/ui/unsaved";
import "./migrate.css";

type Report = Schema["Migration"];
type Item = Schema["MigratedItem"];
type System = "wegent" | "weknora" | "ba-agent" | "local-llm-provider" | "loadout";

/** The systems, with their names. */
const systems: [System, string][] = [
  ["wegent", "Wegent"],
  ["weknora", "WeKnora"],
  ["ba-agent", "ba-agent"],
  ["local-llm-provider", "local-llm-provider"],
  ["loadout", "Loadout"],
];

/** A file to upload. The browser keeps it until the migration ends. */
interface Upload {
  name: string;
  file: Blob;
}

/** A repository or an archive that the hub reads. */
interface Address {
  address: string;
  /** The commit or the digest of the report. */
  commit?: string;
  digest?: string;
}

type Step =
  | { at: "ask" }
  | { at: "reading" | "storing"; share: number }
  | { at: "report"; source: Upload | Address; report: Report }
  | { at: "done"; report: Report };

/**
 * Migrate uploads files of another system or lets the hub read them, shows what would be
 * stored, and stores it.
 */
export function Migrate() {
  const places = useScopes().filter(([n]) => mayAdd(n));
  const { query } = useLocation();
  const imports = query.system === "loadout"; // only conversations, as the link in their list says
  const [system, setSystem] = useState<System>(systems.find(([s]) => s === query.system)?.[0] ?? "wegent");
  const [chosen, choose] = useState("");
  const [step, setStep] = useState<Step>({ at: "ask" });
  const [error, setError] = useState<unknown>();
  const [address, setAddress] = useState("");
  const namespace = chosen || places[0]?.[0] || "";

  const request = (source: Upload | Address, at: "reading" | "storing"): Promise<Report> => {
    setStep({ at, share: 0 });
    if ("address" in source) {
      const { address, commit, digest } = source;
      const body = { system, namespace, source: address, commit, digest, apply: at === "storing" };
      return got(api.POST("/api/v1/migrate/source", { body }));
    }
    const query = new URLSearchParams({ system, namespace, file_name: source.name });
    if (at === "storing") query.set("apply", "true");
    return send<Report>(`/api/v1/migrate?${query}`, source.file, (share) => setStep({ at, share }));
  };
  const attempt = async (back: Step, act: () => Promise<Step>) => {
    setError(undefined);
    try {
      setStep(await act());
    } catch (e) {
      setError(e);
      setStep(back);
    }
  };
  const read = (files: File[]) =>
    attempt({ at: "ask" }, async () => {
      const source = await uploadOf(files);
      return { at: "report", source, report: await request(source, "reading") };
    });
  const readAddress = () =>
    attempt({ at: "ask" }, async () => {
      const source = { address: address.trim() };
      const report = await request(source, "reading");
      return { at: "report", source: { ...source, commit: report.commit, digest: report.digest }, report };
    });
  const store = (source: Upload | Address, report: Report) =>
    attempt({ at: "report", source, report }, async () => ({ at: "done", report: await request(source, "storing") }));
  const again = () => setStep({ at: "ask" });
  useUnsaved(step.at === "report" && step.report.items.some((i) => i.new));

  return (
    <Part
      title={imports ? msg("chat.importConversations") : msg("settings.tabs.migrate")}
      lead={imports ? msg("migrate.importLead") : msg("migrate.lead")}
    >
      {error !== undefined && <Problem error={error} />}
      {step.at === "ask" && (
        <div class="stack">
          {!imports && (
            <div class="settings-form stack">
              <SelectField
                label={msg("migrate.system")}
                hint={msg(`migrate.systems.${system}`)}
                value={system}
                onText={(s) => setSystem(s as System)}
                options={systems}
              />
              <SelectField
                label={msg("migrate.namespace")}
                hint={msg("migrate.namespaceHint")}
                value={namespace}
                onText={choose}
                options={places}
              />
            </div>
          )}
          <div class="row">
            <Choose text={msg("migrate.choose")} onFiles={(files) => void read(files)} />
            <Choose text={msg("migrate.folder")} folder onFiles={(files) => void read(files)} />
          </div>
          {!imports && (
            <form
              class="settings-form stack"
              onSubmit={(e) => {
                e.preventDefault();
                void readAddress();
              }}
            >
              <TextField
                label={msg("migrate.address")}
                hint={msg("migrate.addressHint")}
                value={address}
                onText={setAddress}
                required
              />
              <div>
                <Button type="submit" icon="search" disabled={!address.trim()}>
                  {msg("migrate.readAddress")}
                </Button>
              </div>
            </form>
          )}
        </div>
      )}
      {(step.at === "reading" || step.at === "storing") && (
        <Waiting
          for={
            step.share > 0 && step.share < 1
              ? msg("migrate.sending", { percent: Math.floor(step.share * 100) })
              : msg(`migrate.${step.at}`)
          }
        />
      )}
      {step.at === "report" && (
        <ReportView
          report={step.report}
          title={msg("migrate.report")}
          imports={imports}
          onStore={() => void store(step.source, step.report)}
          onAgain={again}
        />
      )}
      {step.at === "done" && (
        <ReportView
          report={step.report}
          title={msg(!step.report.done ? "migrate.notDone" : imports ? "migrate.imported" : "migrate.done")}
          imports={imports}
          onAgain={again}
        />
      )}
    </Part>
  );
}

/** uploadOf returns one chosen file, or a ZIP of several. */
async function uploadOf(files: File[]): Promise<Upload> {
  const only = files[0];
  const several = files.length > 1 || !!only?.webkitRelativePath;
  const upload =
    several || !only
      ? {
          name: "files.zip",
          file: await pack(
            files.map((f): [string, File] => [f.webkitRelativePath || f.name, f]).filter(([path]) => !isIgnored(path)),
          ),
        }
      : { name: only.name, file: only };
  const most = (await limits()).migration;
  if (upload.file.size > most) throw new Error(msg("migrate.tooBig", { most: size(most) }));
  return upload;
}

/** Choose is a button that opens a file dialog. */
function Choose({ text, folder, onFiles }: { text: string; folder?: boolean; onFiles: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <Button icon={folder ? "folder" : "file"} look={folder ? "" : "primary"} onClick={() => input.current?.click()}>
        {text}
      </Button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={text}
        {...(folder && { webkitdirectory: true })}
        onChange={(e) => {
          const files = [...(e.currentTarget.files ?? [])];
          e.currentTarget.value = "";
          if (files.length) onFiles(files);
        }}
      />
    </>
  );
}

interface ReportProps {
  report: Report;
  title: string;
  /** Whether conversations are imported. */
  imports: boolean;
  /** Stores what is new; absent if that was done. */
  onStore?: () => void;
  onAgain: () => void;
}

/** ReportView is a report with what the user can do next. */
function ReportView({ report, title, imports, onStore, onAgain }: ReportProps) {
  const { items, notes, secrets, done } = report;
  const outcomes = imports
    ? ([done ? "stored" : "fresh", "there", "lost"] as const).map((s) =>
        msg("migrate.countOf", {
          state: stateText(s, true),
          n: count(items.filter((i) => stateOf(i, done) === s).length),
        }),
      )
    : (["kept", "changed", "lost"] as const).map((o) =>
        msg(`migrate.counts.${o}`, { n: count(items.filter((i) => i.outcome === o).length) }),
      );
  const isNew = items.some((i) => i.new);
  const isLost = items.every((i) => i.outcome === "lost");
  return (
    <section class="stack" aria-label={title}>
      <h3>{title}</h3>
      {items.length === 0 ? (
        <Empty title={msg("migrate.empty")}>{msg("migrate.emptyText")}</Empty>
      ) : (
        <>
          <p class="muted">
            {report.source}: {outcomes.join(imports ? " · " : ", ")}
          </p>
          <ul class="migrate-items">
            {items.map((i, n) => (
              <li key={n}>
                <Line item={i} done={done} imports={imports} />
              </li>
            ))}
          </ul>
        </>
      )}
      {notes.length > 0 && (
        <div class="note warn">
          <strong>{msg("migrate.notes")}</strong>
          <ul>
            {notes.map((n) => (
              <li key={n}>{n}</li>
            ))}
          </ul>
        </div>
      )}
      {secrets.length > 0 && (
        <div class="note">
          <span>
            {msg("migrate.secrets")} <a href="/settings/secrets">{msg("settings.tabs.secrets")}</a>
          </span>
          <ul>
            {secrets.map((s) => (
              <li key={s}>
                <code>{s}</code>
              </li>
            ))}
          </ul>
        </div>
      )}
      {onStore && items.length > 0 && !isNew && (
        <p class="note">
          {imports
            ? msg(isLost ? "migrate.noneImported" : "migrate.allImported")
            : msg(isLost ? "migrate.allLost" : "migrate.nothingNew")}
        </p>
      )}
      <div class="row">
        {onStore && isNew && (
          <Button look="primary" onClick={onStore}>
            {imports ? msg("migrate.import") : msg("migrate.store")}
          </Button>
        )}
        <Button onClick={onAgain}>{msg("migrate.another")}</Button>
      </div>
    </section>
  );
}

type State = "lost" | "there" | "stored" | "fresh";

const stateOf = (i: Item, done: boolean): State =>
  i.outcome === "lost" ? "lost" : !i.new ? "there" : done ? "stored" : "fresh";

const stateText = (state: State, imports: boolean) =>
  msg(`migrate.states.${imports && state === "lost" ? "skipped" : state}`);

/** Line is an item of a report. */
function Line({ item: i, done, imports }: { item: Item; done: boolean; imports: boolean }) {
  const state = stateOf(i, done);
  const look = { lost: "bad", there: "", stored: "good", fresh: "good" } as const;
  const to = i.id && `/${i.kind === "conversation" ? "chat" : "library"}/${i.id}`;
  return (
    <>
      <div class="row">
        <span class="muted small">{msg(`migrate.kinds.${i.kind}`)}</span>
        <strong>{to ? <a href={to}>{i.name}</a> : i.name}</strong>
        <Tag look={look[state]}>{stateText(state, imports)}</Tag>
      </div>
      {(i.details.length > 0 || i.does) && (
        <ul class="small muted">
          {i.does && <li>{i.does}</li>}
          {i.details.map((d) => (
            <li key={d}>{d}</li>
          ))}
        </ul>
      )}
    </>
  );
}
