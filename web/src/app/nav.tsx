import { useEffect, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { waiting } from "../features/approvals/requests";
import { overlay } from "../features/shortcuts/commands";
import { me, signOut, ways } from "../shared/api/me";
import { chooseLanguage, languageName } from "../shared/i18n/choice";
import { language } from "../shared/i18n/language";
import { languages, msg } from "../shared/i18n/messages";
import { Button, failed, Icon, Logo, Menu, MenuItem } from "../shared/ui";
import { helpFor } from "../shared/ui/helplinks";
import { choose, theme } from "../shared/ui/theme";
import { type NavItem, navItems } from "./navitems";

/** Nav lists the pages, on narrow screens in a menu. */
export function Nav() {
  const [open, setOpen] = useState(false);
  const { path } = useLocation();
  useEffect(() => setOpen(false), [path]);
  useEffect(() => {
    if (!open) return;
    const key = (e: KeyboardEvent) => e.key === "Escape" && setOpen(false);
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [open]);

  const { work, team } = navItems();
  return (
    <>
      <header class="bar">
        <Button
          look="quiet"
          icon="menu"
          label={msg("shell.openNav")}
          aria-expanded={open}
          onClick={() => setOpen(true)}
        />
        <strong>Loadout</strong>
        {waiting.value > 0 && (
          <a class="push small" href="/asks">
            {msg("shell.waiting", { n: waiting.value })}
          </a>
        )}
        <Button
          class={waiting.value > 0 ? "" : "push"}
          look="quiet"
          icon="search"
          label={msg("chat.find")}
          aria-haspopup="dialog"
          onClick={() => (overlay.value = "palette")}
        />
      </header>
      {open && (
        <button
          type="button"
          class="veil"
          tabIndex={-1}
          aria-label={msg("shell.closeNav")}
          onClick={() => setOpen(false)}
        />
      )}
      <nav class={open ? "side open" : "side"} aria-label={msg("shell.nav")}>
        <a class="brand" href="/">
          <Logo size={24} /> Loadout
        </a>
        <Items items={work} path={path} />
        <p class="part">{msg("shell.team")}</p>
        <Items items={team} path={path} />
        <a class="item" href={helpFor(path)} aria-current={path.startsWith("/docs") ? "page" : undefined}>
          <Icon name="info" />
          {msg("shell.help")}
        </a>
        <Foot />
      </nav>
    </>
  );
}

function Items({ items, path }: { items: NavItem[]; path: string }) {
  const here = (href: string) =>
    href === "/" ? path === "/" || path.startsWith("/chat") : path === href || path.startsWith(href + "/");
  return (
    <>
      {items.map((i) => (
        <a key={i.href} class="item" href={i.href} aria-current={here(i.href) ? "page" : undefined}>
          <Icon name={i.icon} />
          {i.text}
          {!!i.count && (
            <span class="count">
              <span aria-hidden="true">{i.count}</span>
              <span class="visually-hidden">{msg("shell.waiting", { n: i.count })}</span>
            </span>
          )}
        </a>
      ))}
    </>
  );
}

function Foot() {
  const mark = (on: boolean) => <span class="push">{on && <Icon name="check" size={16} />}</span>;
  return (
    <div class="foot">
      {ways.value?.mode === "accounts" && me.value && (
        <Menu
          label={`${msg("shell.account")}: ${me.value.user.display || me.value.user.name}`}
          icon="people"
          text={<span class="truncate">{me.value.user.display || me.value.user.name}</span>}
          place="start up"
        >
          <MenuItem href="/settings">{msg("shell.settings")}</MenuItem>
          <MenuItem onClick={() => void signOut().catch(failed)}>{msg("shell.signOut")}</MenuItem>
        </Menu>
      )}
      <Menu label={msg("shell.theme")} icon="sun" place="start up">
        {(["system", "light", "dark"] as const).map((k) => (
          <MenuItem key={k} onClick={() => choose(k)}>
            {msg(`shell.${k}`)}
            {mark(theme.value === k)}
          </MenuItem>
        ))}
      </Menu>
      <Menu label={msg("shell.language")} icon="globe" place="start up">
        {languages.map((code) => (
          <MenuItem key={code} onClick={() => void chooseLanguage(code).catch(failed)}>
            {languageName(code)}
            {mark(language.value === code)}
          </MenuItem>
        ))}
      </Menu>
    </div>
  );
}
