import { useLocation } from "preact-iso";
import { useEffect, useState } from "preact/hooks";
import { isAdmin, me, reviews, signOut, ways } from "../api/me";
import { waiting } from "../asks/waiting";
import { Button, failed, Icon, type IconName, Menu, MenuItem } from "../ui";
import { language, speak } from "../words";
import { choose, theme } from "./theme";
import { w } from "./words";

interface Item {
  href: string;
  icon: IconName;
  text: string;
  count?: number;
}

/** The pages, at the side; on narrow screens behind a button. */
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
  const t = w();
  const work: Item[] = [
    { href: "/", icon: "chat", text: t.chat },
    { href: "/library", icon: "library", text: t.library },
    { href: "/compose", icon: "compose", text: t.compose },
    { href: "/agents", icon: "agents", text: t.agents },
    { href: "/servers", icon: "servers", text: t.servers },
  ];
  const team: Item[] = [
    { href: "/asks", icon: "asks", text: t.asks, count: waiting.value },
    ...(reviews.value ? [{ href: "/review", icon: "review" as const, text: t.review }] : []),
    { href: "/usage", icon: "usage", text: t.usage },
    { href: "/audit", icon: "audit", text: t.audit },
    { href: "/settings", icon: "settings", text: t.settings },
    ...(isAdmin.value ? [{ href: "/admin", icon: "admin" as const, text: t.admin }] : []),
  ];
  return (
    <>
      <header class="bar">
        <Button look="quiet" icon="menu" label={t.openNav} aria-expanded={open} onClick={() => setOpen(true)} />
        <strong>Loadout</strong>
        {waiting.value > 0 && <a class="push small" href="/asks">{t.waiting(waiting.value)}</a>}
      </header>
      {open && <button type="button" class="veil" tabIndex={-1} aria-label={t.closeNav} onClick={() => setOpen(false)} />}
      <nav class={open ? "side open" : "side"} aria-label={t.nav}>
        <a class="brand" href="/"><img src="/icon.svg" width="24" height="24" alt="" /> Loadout</a>
        <Items items={work} path={path} />
        <p class="part">{t.team}</p>
        <Items items={team} path={path} />
        <Foot />
      </nav>
    </>
  );
}

function Items({ items, path }: { items: Item[]; path: string }) {
  const here = (href: string) => (href === "/" ? path === "/" || path.startsWith("/chat") : path === href || path.startsWith(href + "/"));
  return (
    <>
      {items.map((i) => (
        <a key={i.href} class="item" href={i.href} aria-current={here(i.href) ? "page" : undefined}>
          <Icon name={i.icon} />
          {i.text}
          {!!i.count && <span class="count"><span aria-hidden="true">{i.count}</span><span class="visually-hidden">{w().waiting(i.count)}</span></span>}
        </a>
      ))}
    </>
  );
}

function Foot() {
  const t = w();
  const mark = (on: boolean) => <span class="push">{on && <Icon name="check" size={16} />}</span>;
  return (
    <div class="foot">
      {ways.value?.mode === "accounts" && me.value && (
        <Menu label={`${t.account}: ${me.value.user.display || me.value.user.name}`} icon="people" text={<span class="truncate">{me.value.user.display || me.value.user.name}</span>} place="start up">
          <MenuItem href="/settings">{t.settings}</MenuItem>
          <MenuItem onClick={() => void signOut().catch(failed)}>{t.signOut}</MenuItem>
        </Menu>
      )}
      <Menu label={t.theme} icon="sun" place="start up">
        {(["system", "light", "dark"] as const).map((k) => <MenuItem key={k} onClick={() => choose(k)}>{t[k]}{mark(theme.value === k)}</MenuItem>)}
      </Menu>
      <Menu label={t.language} icon="globe" place="start up">
        <MenuItem onClick={() => speak("en")}>English{mark(language.value === "en")}</MenuItem>
        <MenuItem onClick={() => speak("zh")}>简体中文{mark(language.value === "zh")}</MenuItem>
      </Menu>
    </div>
  );
}
