import { useEffect, useRef, useState } from "preact/hooks";
import { readText, save, writeCSV } from "../../features/csv/csv";
import { type NewUser, readUsers } from "../../features/csv/newusers";
import { groupName, roleName } from "../../features/users/users";
import { useLoad } from "../../shared/api/client";
import { ways } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { Button, Check, Dialog, Problem, Tag, Waiting } from "../../shared/ui";
import { TableWrap } from "../../shared/ui/table";
import { useUnsaved } from "../../shared/ui/unsaved";
import { allGroups, allUsers } from "./alluserslist";
import { createUsers, keepImport, keptImport, newImport, type Result, type UserImport } from "./createusers";

/** ImportUsers creates users from a CSV file: it shows them first, then creates them. */
export function ImportUsers({ onMade, onClose }: { onMade: () => void; onClose: () => void }) {
  const known = useLoad(async (signal) => {
    const [users, groups] = await Promise.all([allUsers(signal), allGroups(signal)]);
    return {
      users: new Set(users.map((u) => u.name)),
      groups: new Map(groups.map((g) => [g.name.toLowerCase(), g.id])),
    };
  }, []);
  const [all, setAll] = useState(keptImport);
  const [error, setError] = useState<unknown>();
  const [chosen, choose] = useState(ways.value?.password !== false);
  const passwords = all?.withPasswords ?? chosen;
  const [busy, setBusy] = useState(false);
  const [leaving, setLeaving] = useState(false);
  const latest = useRef(all);
  const stop = useRef<AbortController>(undefined);
  useEffect(() => () => stop.current?.abort(), []);
  const set = (to: UserImport | undefined) => {
    latest.current = to;
    keepImport(to);
    setAll(to);
  };
  const take = async (file: File | undefined) => {
    setError(undefined);
    set(undefined);
    if (!file || !known.data) return;
    try {
      if (file.size > 1 << 20) throw new Error(msg("admin.csvTooLarge"));
      const { text, guessed } = readText(await file.arrayBuffer());
      set(newImport(readUsers(text, known.data), guessed, passwords));
    } catch (e) {
      setError(e);
    }
  };
  const good = all?.users.filter((u) => all.results[u.line]) ?? [];
  const left = good.filter((u) => !all!.results[u.line]!.done);
  const make = async () => {
    setBusy(true);
    setError(undefined);
    set({ ...all!, began: true });
    stop.current = new AbortController();
    const keep = (line: number, result: Result) =>
      set({ ...latest.current!, results: { ...latest.current!.results, [line]: result } });
    await createUsers(all!, keep, stop.current.signal).catch(setError);
    setBusy(false);
    onMade();
  };
  const began = !!all?.began;
  const saved = passwords ? good.filter((u) => !all!.results[u.line]!.refused) : [];
  const download = () => {
    save(
      "new-users.csv",
      "text/csv",
      writeCSV([["name", "email", "password"], ...saved.map((u) => [u.name, u.email, all!.results[u.line]!.password])]),
    );
    set({ ...all!, downloaded: true });
  };
  // What would be lost with the dialog.
  const risky = busy || (began && saved.length > 0 && !all.downloaded);
  useUnsaved(risky);
  const leave = () => {
    set(undefined);
    onClose();
  };
  return (
    <Dialog
      title={msg("admin.csvTitle")}
      wide
      firm={risky}
      onClose={() => (risky ? setLeaving(true) : leave())}
      actions={
        <>
          <Button onClick={() => (risky ? setLeaving(true) : leave())}>
            {began ? msg("ui.close") : msg("admin.back")}
          </Button>
          {saved.length > 0 && (
            <Button icon="download" onClick={download}>
              {msg("admin.csvPasswords")}
            </Button>
          )}
          {(left.length > 0 || busy) && (
            <Button look="primary" disabled={busy} aria-busy={busy} onClick={() => void make()}>
              {began ? msg("admin.csvAgain", { count: left.length }) : msg("admin.csvMake", { count: left.length })}
            </Button>
          )}
        </>
      }
    >
      {!began && (
        <>
          <p>{msg("admin.csvText")}</p>
          <pre class="small">{"name,display,email,groups,role\nada,Ada,ada@example.com,sea;air:owner,developer"}</pre>
          {known.error && <Problem error={known.error} again={() => void known.again()} />}
          {known.data ? (
            <label class="field">
              <span class="label">{msg("admin.csvFile")}</span>
              <input
                class="input"
                type="file"
                accept=".csv,text/csv,text/plain"
                onChange={(e) => void take(e.currentTarget.files?.[0])}
              />
            </label>
          ) : (
            !known.error && <Waiting />
          )}
          {ways.value?.password !== false && (
            <Check
              label={msg("admin.csvWithPasswords")}
              hint={msg("admin.csvWithPasswordsHint")}
              checked={passwords}
              onCheck={(on) => {
                choose(on);
                if (all) set({ ...all, withPasswords: on });
              }}
            />
          )}
        </>
      )}
      {!!error && <Problem error={error} />}
      {leaving && risky && (
        <div class="note warn stack tight" role="alert">
          {busy ? msg("admin.csvStillBusy") : msg("admin.csvNotSaved")}
          <div>
            <Button small look="danger" onClick={leave}>
              {msg("admin.csvLeave")}
            </Button>
          </div>
        </div>
      )}
      {saved.length > 0 && !leaving && <p class="note warn">{msg("admin.csvOnce")}</p>}
      {all?.guessed && <p class="note warn">{msg("admin.csvGuessed")}</p>}
      {all && <UserTable users={all.users} results={all.results} passwords={passwords} />}
    </Dialog>
  );
}

interface TableProps {
  users: NewUser[];
  results: Record<number, Result>;
  passwords: boolean;
}

function UserTable({ users, results, passwords }: TableProps) {
  const wrong = users.filter((u) => u.errors.length).length;
  return (
    <>
      <p role="status">
        {msg("admin.csvFound", { count: users.length })} {wrong > 0 && msg("admin.csvWrong", { count: wrong })}
      </p>
      <TableWrap label={msg("admin.csvTitle")}>
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{msg("admin.csvLine")}</th>
              <th scope="col">{msg("admin.name")}</th>
              <th scope="col">{msg("admin.display")}</th>
              <th scope="col">{msg("admin.email")}</th>
              <th scope="col">{msg("admin.csvGroups")}</th>
              <th scope="col">{msg("admin.csvResult")}</th>
            </tr>
          </thead>
          <tbody>
            {users.map((u) => (
              <tr key={u.line}>
                <td>{u.line}</td>
                <td class="mono">{u.name}</td>
                <td>{u.display}</td>
                <td>{u.email}</td>
                <td>
                  {u.groups.map((g) => (
                    <div key={g.id}>
                      {groupName(g.id)} <Tag>{roleName(g.role)}</Tag>
                    </div>
                  ))}
                </td>
                <td>
                  <State user={u} result={results[u.line]} password={passwords} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableWrap>
    </>
  );
}

function State({ user, result, password }: { user: NewUser; result?: Result; password: boolean }) {
  if (user.errors.length)
    return (
      <>
        <Tag look="bad">{msg("admin.csvSkipped")}</Tag> {user.errors.join("; ")}
      </>
    );
  if (!result?.done && !result?.error) return <>{msg("admin.csvReady")}</>;
  return (
    <>
      {result.done ? <Tag look="good">{msg("admin.csvMade")}</Tag> : <Tag look="bad">{msg("admin.csvFailed")}</Tag>}{" "}
      {result.error} {password && result.id && <code>{result.password}</code>}
    </>
  );
}
