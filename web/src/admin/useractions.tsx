import { useLocation } from "preact-iso";
import { useState } from "preact/hooks";
import { api, got, type Schema } from "../api/client";
import { me, meet } from "../api/me";
import { done, failed, Menu, MenuItem, useConfirm } from "../ui";
import { ResetPassword, WaysIn } from "./user";
import { w } from "./words";

type User = Schema["User"];

/** What an administrator does with an account. */
export function UserActions({ u, onChange }: { u: User; onChange: () => void }) {
  const t = w();
  const { route } = useLocation();
  const confirm = useConfirm();
  const [open, show] = useState<"password" | "ways">();
  const change = async (body: Schema["UserChange"], said: string) => {
    await got(api.PATCH("/api/v1/users/{user}", { params: { path: { user: u.id } }, body }));
    if (u.id === me.value?.user.id) await meet();
    done(said);
    onChange();
  };
  const disable = () => confirm.ask({ title: t.disableTitle(u.name), children: t.disableText, yes: t.disable, danger: true, act: () => change({ disabled: true }, t.disabledDone) });
  const remove = () =>
    confirm.ask({
      title: t.removeTitle(u.name), children: t.removeText, yes: t.remove, danger: true,
      act: async () => {
        await got(api.DELETE("/api/v1/users/{user}", { params: { path: { user: u.id } } }));
        done(t.removed);
        onChange();
      },
    });
  const unAdmin = () => confirm.ask({ title: `${t.unAdmin}: ${u.name}`, children: u.id === me.value?.user.id ? t.unAdminOwn : t.unAdminText, yes: t.unAdmin, danger: true, act: () => change({ admin: false }, t.adminDone) });
  return (
    <>
      {confirm.open}
      {open === "password" && <ResetPassword u={u} onClose={() => show(undefined)} />}
      {open === "ways" && <WaysIn u={u} onClose={() => show(undefined)} />}
      <Menu small label={`${t.actions}: ${u.name}`}>
        <MenuItem onClick={() => show("password")}>{t.setPassword}</MenuItem>
        <MenuItem onClick={() => show("ways")}>{t.tokens}</MenuItem>
        <MenuItem onClick={() => route(`/audit?actor=${encodeURIComponent(u.name)}`)}>{t.audit}</MenuItem>
        {u.account?.admin
          ? <MenuItem onClick={unAdmin}>{t.unAdmin}</MenuItem>
          : <MenuItem onClick={() => void change({ admin: true }, t.adminDone).catch(failed)}>{t.makeAdmin}</MenuItem>}
        {u.disabled
          ? <MenuItem onClick={() => void change({ disabled: false }, t.enabledDone).catch(failed)}>{t.enable}</MenuItem>
          : <MenuItem onClick={disable}>{t.disable}</MenuItem>}
        <MenuItem danger onClick={remove}>{t.remove}</MenuItem>
      </Menu>
    </>
  );
}
