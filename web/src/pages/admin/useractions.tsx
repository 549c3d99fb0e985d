import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { api, got, type Schema } from "../../shared/api/client";
import { me, loadMe } from "../../shared/api/me";
import { msg } from "../../shared/i18n/messages";
import { done, failed, Menu, MenuItem, useConfirm } from "../../shared/ui";
import { ResetPassword, WaysIn } from "./user";

type User = Schema["User"];

/** UserActions is the menu of an account. */
export function UserActions({ u, onChange }: { u: User; onChange: () => void }) {
  const { route } = useLocation();
  const confirm = useConfirm();
  const [open, show] = useState<"password" | "ways">();
  const change = async (body: Schema["UserChange"], message: string) => {
    await got(api.PATCH("/api/v1/users/{user}", { params: { path: { user: u.id } }, body }));
    if (u.id === me.value?.user.id) await loadMe();
    done(message);
    onChange();
  };
  const disable = () =>
    confirm.ask({
      title: msg("admin.disableTitle", { n: u.name }),
      children: msg("admin.disableText"),
      yes: msg("admin.disable"),
      danger: true,
      act: () => change({ disabled: true }, msg("admin.disabledDone")),
    });
  const remove = () =>
    confirm.ask({
      title: msg("admin.removeTitle", { n: u.name }),
      children: msg("admin.removeText"),
      yes: msg("admin.remove"),
      danger: true,
      act: async () => {
        await got(api.DELETE("/api/v1/users/{user}", { params: { path: { user: u.id } } }));
        done(msg("admin.removed"));
        onChange();
      },
    });
  const unAdmin = () =>
    confirm.ask({
      title: `${msg("admin.unAdmin")}: ${u.name}`,
      children: u.id === me.value?.user.id ? msg("admin.unAdminOwn") : msg("admin.unAdminText"),
      yes: msg("admin.unAdmin"),
      danger: true,
      act: () => change({ admin: false }, msg("admin.adminDone")),
    });
  return (
    <>
      {confirm.open}
      {open === "password" && <ResetPassword u={u} onClose={() => show(undefined)} />}
      {open === "ways" && <WaysIn u={u} onClose={() => show(undefined)} />}
      <Menu small label={`${msg("admin.actions")}: ${u.name}`}>
        <MenuItem onClick={() => (u.id === me.value?.user.id ? route("/settings/password") : show("password"))}>
          {msg("admin.setPassword")}
        </MenuItem>
        <MenuItem onClick={() => show("ways")}>{msg("admin.tokens")}</MenuItem>
        <MenuItem onClick={() => route(`/audit?actor=${encodeURIComponent(u.name)}`)}>{msg("admin.audit")}</MenuItem>
        {u.account?.admin ? (
          <MenuItem onClick={unAdmin}>{msg("admin.unAdmin")}</MenuItem>
        ) : (
          <MenuItem onClick={() => void change({ admin: true }, msg("admin.adminDone")).catch(failed)}>
            {msg("admin.makeAdmin")}
          </MenuItem>
        )}
        {u.disabled ? (
          <MenuItem onClick={() => void change({ disabled: false }, msg("admin.enabledDone")).catch(failed)}>
            {msg("admin.enable")}
          </MenuItem>
        ) : (
          <MenuItem onClick={disable}>{msg("admin.disable")}</MenuItem>
        )}
        <MenuItem danger onClick={remove}>
          {msg("admin.remove")}
        </MenuItem>
      </Menu>
    </>
  );
}
